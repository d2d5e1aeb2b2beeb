"""Moves that are started, throttled, watched and cancelled by our commands and by Kafka's tool, each reading the
other's.

Also a command whose controller changes while it waits.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from devcluster.clients.tools import REASSIGN_PARTITIONS
from tests.real.conformance.client.commands import Kontroller, kontroller_of
from tests.real.conformance.client.test_moving_controller import bring_back, move_controller
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.tools.test_java_tools import fill, plan_file, run, throttles

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SLOW = ("--throttle", "1000")
"""A throttle at which a follower copies a first piece of twenty megabytes, and then waits."""


@pytest.fixture
def kontroller(cluster: ConformanceCluster) -> Kontroller:
    """The command, which bootstraps at a broker that is not the controller."""
    return kontroller_of(cluster, cluster.kafka.broker(cluster.order[1]).address)


def parse_plans(said: str) -> list[dict[str, Any]]:
    """Return the plans that Kafka's tool has printed."""
    return [json.loads(line) for line in said.splitlines() if line.startswith('{"version"')]


def test_a_move_of_ours_is_watched_given_again_and_cancelled_by_kafka_s_tool(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str, tmp_path: Path
) -> None:
    first, second, third = cluster.order
    cluster.serve_topic(name, [[first, second]])
    cluster.serve_topic(f"{name}-other", [[first]])
    cluster.wait_until_everybody_knows(name)
    cluster.wait_until_everybody_knows(f"{name}-other")
    fill(cluster, name)
    there = ("--reassignment-json-file", plan_file(tmp_path, name, [first, third]))
    started = kontroller.run("reassign", "start", *there, *SLOW, "--no-wait", "-o", "json")
    assert (started.code, started.json()["state"]) == (0, "begun"), started
    assert started.json()["before"]["partitions"][0]["replicas"] == [first, second]
    assert f"{name}-0: " in run(cluster, REASSIGN_PARTITIONS, "--list")
    assert "is still in progress" in run(cluster, REASSIGN_PARTITIONS, "--verify", *there)
    assert follower_rate(cluster, third) == "1000"

    other = ("--reassignment-json-file", plan_file(tmp_path, f"{name}-other", [second]))
    refused = kontroller.run("reassign", "start", *other)
    assert (refused.code, refused.out) == (1, "")
    assert f"{name}-0 is moving already" in refused.err
    stale = tmp_path / "stale"
    stale.mkdir()
    old = ("--reassignment-json-file", plan_file(stale, name, [second, third]))
    assert kontroller.run("reassign", "verify", *old).code == 1
    done = kontroller.run("reassign", "start", *other, "--additional", *SLOW)
    assert done.code == 0, done
    is_left = "throttles stay" in done.err
    assert is_left is cluster.is_kafkas_own, "Kontroller removes the throttle of a move alone"
    assert follower_rate(cluster, third) == "1000", "neither an old plan nor another move unthrottles this one"

    terminal = kontroller.start_at_terminal("reassign", "start", *there, "--additional", "--throttle", "2000")
    terminal.wait_for("0/1")
    terminal.wait_for("MB left")
    cluster.wait(lambda: follower_rate(cluster, third) == "2000", "the move has another throttle")
    terminal.wait_for("/s, ")
    terminal.interrupt()
    ended = terminal.end()
    assert ended.code == 130
    assert "the move goes on without this command" in ended.out
    assert f'"replicas":[{first},{second}]' in ended.out, "the way back is not that of a move in its midst"

    assert "Successfully cancelled" in run(cluster, REASSIGN_PARTITIONS, "--cancel", *there)
    assert throttles(cluster, name) == []
    assert kontroller.run("reassign", "list").out == "nothing moves\n"
    cluster.wait_until_moved(name, [first, second])
    cluster.wait_until_everybody_knows(name)
    verified = kontroller.run("reassign", "verify", *there, "-o", "json")
    assert (verified.code, verified.json()[0]["meaning"]) == (1, "failed")


def test_a_move_of_kafka_s_tool_is_read_cancelled_and_unthrottled_by_ours(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str, tmp_path: Path
) -> None:
    first, second, third = cluster.order
    cluster.serve_topic(name, [[first, second]])
    cluster.wait_until_everybody_knows(name)
    fill(cluster, name)
    there = ("--reassignment-json-file", plan_file(tmp_path, name, [first, third]))
    (present,) = parse_plans(run(cluster, REASSIGN_PARTITIONS, "--execute", *there, *SLOW))
    (moving,) = kontroller.run("reassign", "list", "-o", "json").json()
    assert (moving["adding"], moving["removing"]) == ([third], [second])
    assert kontroller.run("reassign", "verify", *there).code == 3
    cancelled = kontroller.run("reassign", "cancel", *there, "--preserve-throttles", "-o", "json")
    assert (cancelled.code, cancelled.json()[0]["result"]) == (0, "cancelled"), cancelled
    assert "No partition reassignments found" in run(cluster, REASSIGN_PARTITIONS, "--list")
    assert throttles(cluster, name), "they were to be preserved"
    cluster.wait_until_moved(name, [first, second])
    cluster.wait_until_everybody_knows(name)
    back = tmp_path / "back.json"
    back.write_text(json.dumps(present))
    verified = kontroller.run("reassign", "verify", "--reassignment-json-file", str(back), "--preserve-throttles")
    assert verified.code == 0, "what Kafka's tool prints as the present assignment is read, and is it"
    assert throttles(cluster, name)
    assert kontroller.run("reassign", "verify", "--reassignment-json-file", str(back)).code == 0
    assert throttles(cluster, name) == [], "also those of a broker that is in no plan any more"

    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    wanted = ("--topics-to-move-json-file", str(topics), "--broker-list", f"{second},{third}")
    _, proposed = parse_plans(run(cluster, REASSIGN_PARTITIONS, "--generate", *wanted))
    moved = kontroller.run("reassign", "start", "--reassignment-json-file", "-", stdin=json.dumps(proposed))
    assert moved.code == 0, moved
    assert sorted(cluster.znodes.read_assignment(name, 0)) == sorted((second, third))
    assert "is completed" in run(
        cluster, REASSIGN_PARTITIONS, "--verify", "--reassignment-json-file", write_plan(tmp_path, proposed)
    )


def test_a_throttled_move_of_ours_that_is_cancelled_leaves_no_throttle(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str, tmp_path: Path
) -> None:
    first, second, third = cluster.order
    cluster.serve_topic(name, [[first, second]])
    cluster.wait_until_everybody_knows(name)
    fill(cluster, name)
    there = ("--reassignment-json-file", plan_file(tmp_path, name, [third, first]))
    assert kontroller.run("reassign", "start", *there, *SLOW, "--no-wait").code == 0
    waited = kontroller.run("reassign", "start", *there, *SLOW, "--additional", "--timeout-ms", "3000", "-o", "json")
    assert (waited.code, waited.json()["state"]) == (1, "begun"), waited
    assert "the move goes on without this command" in waited.err
    cancelled = kontroller.run("reassign", "cancel", *there)
    assert (cancelled.code, cancelled.out) == (0, f"the move of {name}-0 is cancelled\n"), cancelled
    assert throttles(cluster, name) == []
    cluster.wait_until_moved(name, [first, second])


def test_replicas_move_to_the_log_directories_of_a_plan_and_kafka_s_tool_finds_them_there(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str, tmp_path: Path
) -> None:
    first, second, third = cluster.order
    cluster.serve_topic(name, [[first, second]])
    cluster.wait_until_everybody_knows(name)
    fill(cluster, name)
    present = cluster.directory_of(first, name)
    other = next(each for each in cluster.log_directories(first) if each != present)
    entry: dict[str, Any] = {"topic": name, "partition": 0, "replicas": [first, third]}
    for directory in cluster.log_directories(third):  # a new replica is created in either, as the plan says
        entry["log_dirs"] = [str(other), str(directory)]
        file = write_plan(tmp_path, {"version": 1, "partitions": [entry]})
        moved = kontroller.run("reassign", "start", "--reassignment-json-file", file, "-o", "json")
        assert (moved.code, moved.json()["state"]) == (0, "ended"), moved
        assert (cluster.directory_of(first, name), cluster.directory_of(third, name)) == (other, directory)
        told = run(cluster, REASSIGN_PARTITIONS, "--verify", "--reassignment-json-file", file)
        assert told.count("completed successfully") == 2, told
        verified = kontroller.run("reassign", "verify", "--reassignment-json-file", file, "-o", "json")
        assert [each["place"] for each in verified.json()[0]["log_dirs"]] == ["there", "there"], verified
    ((before, *_),) = [each["log_dirs"] for each in moved.json()["before"]["partitions"]]
    assert before == str(other), "the way back names the directories"
    entry["log_dirs"] = [str(other), "/nowhere"]
    refused = kontroller.run(
        "reassign", "start", "--reassignment-json-file", write_plan(tmp_path, {"version": 1, "partitions": [entry]})
    )
    assert refused.code == 1
    assert f"/nowhere is not a log directory of broker {third}, which has " in refused.err


def test_a_command_that_waits_for_a_move_outlives_its_controller(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str, tmp_path: Path
) -> None:
    first, second, third = cluster.order
    cluster.serve_topic(name, [[first, second]])
    cluster.wait_until_everybody_knows(name)
    fill(cluster, name)
    there = ("--reassignment-json-file", plan_file(tmp_path, name, [first, third]))
    epoch = cluster.controller_epoch()
    waiting = kontroller.start_at_terminal("reassign", "start", *there, *SLOW)
    waiting.wait_for("0/1")
    move_controller(cluster)
    bring_back(cluster)
    cluster.wait(lambda: cluster.controller_epoch() > epoch, "another term has begun")
    again = kontroller.run("reassign", "start", *there, "--additional", "--throttle", "100000000", "--no-wait")
    assert again.code == 0, again
    ended = waiting.end()
    assert ended.code == 0, ended
    assert "all 1 partitions are at their targets" in ended.out
    assert throttles(cluster, name) == []


def follower_rate(cluster: ConformanceCluster, broker: int) -> str | None:
    config = (cluster.znodes.read(f"/config/brokers/{broker}") or {}).get("config", {})
    found = config.get("follower.replication.throttled.rate")
    assert found is None or isinstance(found, str)
    return found


def write_plan(folder: Path, plan: dict[str, Any]) -> str:
    file = folder / "proposed.json"
    file.write_text(json.dumps(plan))
    return str(file)
