"""The commands on real clusters under both controllers: their output, their exit codes, and their confirmations."""

import json
from pathlib import Path

import pytest

from controller_core.client.reassigning.assignments import format_partitions, format_reassignment
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from devcluster.clients import tools
from tests.real.conformance.client.commands import Kontroller, kontroller_of
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.tools.test_java_tools import fill

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


@pytest.fixture
def kontroller(cluster: ConformanceCluster) -> Kontroller:
    """The command, which bootstraps at a broker that is not the controller."""
    return kontroller_of(cluster, cluster.kafka.broker(cluster.order[1]).address)


def plan(tmp_path: Path, targets: dict[tuple[str, int], list[int]]) -> str:
    file = tmp_path / "plan.json"
    moves = {
        TopicPartition(TopicName(topic), PartitionId(partition)): tuple(map(BrokerId, replicas))
        for (topic, partition), replicas in targets.items()
    }
    file.write_text(format_reassignment(moves))
    return str(file)


def test_a_topic_lives_from_its_creation_to_its_deletion(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str
) -> None:
    of = ("--topic", name)
    created = kontroller.run("topics", "create", *of, "--replica-assignment", "1:2", "--config", "retention.ms=60000")
    assert (created.code, created.out) == (0, f"topic {name} is created\n")
    cluster.wait_until_served(name)
    again = kontroller.run("topics", "create", *of, "--partitions", "1")
    assert again.code == 1
    assert again.err == f"kontroller: topic {name}: Topic '{name}' already exists. (TOPIC_ALREADY_EXISTS 36)\n"
    assert kontroller.run("topics", "create", *of, "--if-not-exists").code == 0
    wanted = ("topics", "alter", *of, "--partitions", "2", "--add-config", "retention.ms=5000")
    asked = kontroller.run(*wanted, "--validate-only", "--fail-on-changes")
    would = "configurations: retention.ms: would be done\npartitions: 1 to 2: would be done\n"
    assert (asked.code, asked.out) == (3, would)
    altered = kontroller.run(*wanted)
    assert (altered.code, altered.out) == (0, "configurations: retention.ms: done\npartitions: 1 to 2: done\n")
    cluster.wait_until_served(name, 2)
    cluster.wait_until_everybody_knows(name, 1)
    again = kontroller.run(*wanted, "--fail-on-changes")
    assert (again.code, again.out) == (0, f"topic {name} needs no change\n")
    (described,) = kontroller.run("topics", "describe", *of, "-o", "json").json()
    assert described["configs"] == {"retention.ms": "5000"}
    assert described["partitions"][0] == {"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1, 2]}
    shown = kontroller.run("topics", "describe", *of).out
    assert f"{name}: 2 partitions, replication factor 2, configurations: retention.ms=5000\n" in shown
    listed = kontroller.run("topics", "list", "-o", "json").json()
    assert name in listed["alive"]
    assert listed["markedForDeletion"] == "unknown"
    assert "marked for deletion: unknown" in kontroller.run("topics", "list").out
    refused = kontroller.run("topics", "delete", *of)
    assert refused.code == 2
    assert "there is no terminal to confirm this: give --yes" in refused.err
    assert cluster.exists(f"/brokers/topics/{name}")
    assert kontroller.run("topics", "delete", *of, "--yes").code == 0
    cluster.wait_until_gone(f"/brokers/topics/{name}")
    again = kontroller.run("topics", "delete", *of, "--yes", "--if-exists", "-o", "json")
    assert (again.code, again.json()[0]["result"]) == (0, "missing"), again
    missing = kontroller.run("topics", "delete", *of, "--yes")
    assert missing.code == 1
    assert missing.err.splitlines()[-1].endswith("(UNKNOWN_TOPIC_OR_PARTITION 3)")


def test_a_topic_is_altered_by_an_assignment_and_by_configurations_that_go(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str
) -> None:
    cluster.serve_topic(name, [[1, 2]], {"retention.ms": "9", "cleanup.policy": "compact"})
    cluster.wait_until_everybody_knows(name)
    alter = ("topics", "alter", "--topic", name, "--partitions", "2", "--replica-assignment", "3:1,1:2")
    altered = kontroller.run(*alter, "--delete-config", "cleanup.policy", "-o", "json")
    assert altered.code == 0, altered
    assert [step["result"] for step in altered.json()["steps"]] == ["done", "done", "done"]
    cluster.wait_until_moved(name, [3, 1])
    cluster.wait_until_served(name, 2)
    assert cluster.znodes.read_assignment(name, 1) == [1, 2]
    for partition in (0, 1):
        cluster.wait_until_everybody_knows(name, partition)
    (described,) = kontroller.run("topics", "describe", "--topic", name, "-o", "json").json()
    assert described["configs"] == {"retention.ms": "9"}
    assert [each["replicas"] for each in described["partitions"]] == [[3, 1], [1, 2]]


def test_kafka_s_tool_and_ours_read_each_other_s_plans(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str, tmp_path: Path
) -> None:
    cluster.serve_topic(name, [[1, 2]])
    there = plan(tmp_path, {(name, 0): [3, 1]})
    started = kontroller.run("reassign", "start", "--reassignment-json-file", there, "--throttle", "10000000")
    assert (started.code, started.out.splitlines()[-1]) == (0, "all 1 partitions are at their targets")
    back = next(line for line in started.out.splitlines() if line.startswith("{"))
    assert cluster.znodes.read_assignment(name, 0) == [3, 1]
    assert "throttled" not in json.dumps(cluster.znodes.read(f"/config/topics/{name}"))
    assert "throttled" not in json.dumps(cluster.znodes.read("/config/brokers/3") or {})
    theirs = ("--reassignment-json-file", there)
    servers = cluster.kafka.bootstrap_servers
    said = cluster.run_tool(tools.REASSIGN_PARTITIONS, "--verify", *theirs, bootstrap=servers)
    assert f"Reassignment of partition {name}-0 is completed." in said.stdout
    verified = kontroller.run("reassign", "verify", *theirs, "-o", "json")
    assert (verified.code, verified.json()[0]["result"]) == (0, 1)
    (tmp_path / "back.json").write_text(back)
    undo = ("--reassignment-json-file", str(tmp_path / "back.json"))
    done = cluster.run_tool(tools.REASSIGN_PARTITIONS, "--execute", *undo, bootstrap=servers)
    assert done.returncode == 0, done.stdout + done.stderr
    cluster.wait_until_moved(name, [1, 2])
    not_there = kontroller.run("reassign", "verify", *theirs)
    assert not_there.code == 1
    assert "1 of 1 partitions are not at their target, and do not move there" in not_there.err


def test_what_one_writes_the_other_s_tools_read(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str, tmp_path: Path
) -> None:
    def theirs(tool: str, *arguments: str) -> str:
        done = cluster.run_tool(tool, *arguments, bootstrap=cluster.kafka.bootstrap_servers)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    of = ("--topic", name)
    assert (
        kontroller.run("topics", "create", *of, "--replica-assignment", "1:2", "--config", "retention.ms=9").code == 0
    )
    cluster.wait_until_served(name)
    cluster.wait_until_everybody_knows(name)
    said = theirs(tools.TOPICS, "--describe", *of)
    assert "retention.ms=9" in said
    assert "Replicas: 1,2" in said
    theirs(tools.TOPICS, "--alter", *of, "--partitions", "2")
    entity = ("--entity-type", "topics", "--entity-name", name)
    theirs(tools.CONFIGS, "--alter", *entity, "--add-config", "retention.ms=7,cleanup.policy=compact")
    cluster.wait_until_served(name, 2)
    cluster.wait_until_everybody_knows(name, 1)
    (described,) = kontroller.run("topics", "describe", *of, "-o", "json").json()
    assert (described["partitionCount"], described["configs"]) == (
        2,
        {"retention.ms": "7", "cleanup.policy": "compact"},
    )
    moved = ("--reassignment-json-file", plan(tmp_path, {(name, 0): [2, 1]}))
    theirs(tools.REASSIGN_PARTITIONS, "--execute", *moved)
    cluster.wait_until_moved(name, [2, 1])
    cluster.wait_until_everybody_knows(name)
    assert kontroller.run("reassign", "verify", *moved).code == 0
    chosen = tmp_path / "chosen.json"
    chosen.write_text(format_partitions([TopicPartition(TopicName(name), PartitionId(0))]))
    theirs(tools.LEADER_ELECTION, "--election-type", "preferred", "--path-to-json-file", str(chosen))
    cluster.wait_until_led(name, 2)
    cluster.wait_until_everybody_knows(name)
    assert kontroller.run("elect", "verify", "--path-to-json-file", str(chosen)).code == 0
    theirs(tools.TOPICS, "--delete", *of)
    cluster.wait_until_gone(f"/brokers/topics/{name}")


def test_a_move_under_way_is_listed_verified_left_by_ctrl_c_and_cancelled(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str, tmp_path: Path
) -> None:
    first, second, third = cluster.order
    cluster.serve_topic(name, [[first, second]])
    cluster.wait_until_everybody_knows(name)
    fill(cluster, name)
    there = ("--reassignment-json-file", plan(tmp_path, {(name, 0): [first, third]}))
    terminal = kontroller.start_at_terminal("reassign", "start", *there, "--throttle", "1000")
    terminal.wait_for("0/1")
    terminal.interrupt()
    ended = terminal.end()
    assert ended.code == 130
    assert "the move goes on without this command" in ended.out
    verified = kontroller.run("reassign", "verify", *there)
    assert verified.code == 3
    assert "in_progress" in verified.out
    assert f"topic: {name}\n" in kontroller.run("reassign", "list", "-o", "yaml").out
    cancelled = kontroller.run("reassign", "cancel", *there)
    assert cancelled.out == f"the move of {name}-0 is cancelled\n", cancelled
    assert kontroller.run("reassign", "list").out == "nothing moves\n"
    assert kontroller.run("reassign", "cancel", *there).out == "none of these partitions moved\n"


def test_leaders_are_elected_by_file_by_name_and_all_together(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str
) -> None:
    cluster.serve_topic(name, [[1, 2]])
    cluster.znodes.reassign({(name, 0): [2, 1]})
    cluster.wait_until_moved(name, [2, 1])
    cluster.wait_until_everybody_knows(name)
    one = ("--topic", name, "--partition", "0")
    # A broker that was paused by another test may have to join the ISR first.
    cluster.wait(lambda: kontroller.run("elect", "verify", *one).code == 3, "its first replica could lead")
    file = format_partitions([TopicPartition(TopicName(name), PartitionId(0))])
    elected = kontroller.run("elect", "preferred", "--path-to-json-file", "-", "-o", "json", stdin=file)
    assert (elected.code, elected.json()) == (0, [{"topic": name, "partition": 0, "error": None}])
    cluster.wait_until_led(name, 2)
    cluster.wait_until_everybody_knows(name)
    assert kontroller.run("elect", "verify", *one).code == 0
    assert kontroller.run("elect", "preferred", "--all-topic-partitions").code == 0
    assert kontroller.run("elect", "preferred").code == 2
    ghost = kontroller.run("elect", "preferred", "--topic", "ghost", "--partition", "0", "-o", "json")
    assert ghost.code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION 3" in ghost.json()[0]["error"]
    assert ghost.err.startswith("kontroller: ghost-0: ")
    assert len(ghost.err.splitlines()) == 1


def test_an_unclean_election_is_asked_about_first(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str
) -> None:
    cluster.serve_topic(name, [[1, 2]])
    one = ("--topic", name, "--partition", "0")
    terminal = kontroller.start_at_terminal("elect", "unclean", *one)
    said = terminal.wait_for("[y/N]?")
    assert f"Please confirm the unclean election of {name}-0: records that only dead replicas have are lost." in said
    terminal.type("\n")
    ended = terminal.end()
    assert ended.code == 1
    assert "nothing is elected" in ended.out
    assert kontroller.run("elect", "unclean", *one, "--yes").code == 0


def test_a_partition_without_a_leader_is_led_by_a_replica_that_was_not_in_sync(
    cluster: ConformanceCluster, kontroller: Kontroller, name: str
) -> None:
    first, second, third = cluster.order
    reaching = kontroller_of(cluster, cluster.kafka.broker(first).address)
    cluster.serve_topic(name, [[second, third]], {"unclean.leader.election.enable": "false"})
    cluster.leave_in_isr(name, [second])
    cluster.kafka.broker(second).kill()
    cluster.wait_until_led(name, -1)
    cluster.wait_until_everybody_knows(name)
    one = ("--topic", name, "--partition", "0")
    preferred = reaching.run("elect", "preferred", *one)
    assert preferred.code == 1
    assert "(PREFERRED_LEADER_NOT_AVAILABLE 80)" in preferred.err
    elected = reaching.run("elect", "unclean", *one, "--yes", "-o", "json")
    assert (elected.code, elected.json()) == (0, [{"topic": name, "partition": 0, "error": None}]), elected
    assert cluster.znodes.leader(name, 0) == third
    cluster.kafka.start()
    cluster.wait_until_served(name)


def count_unserved(cluster: ConformanceCluster) -> tuple[int, int]:
    """Return the number of partitions without a leader, and of those without all their replicas, from ZooKeeper."""
    states = [
        (cluster.znodes.state(topic, partition), replicas)
        for topic in cluster.znodes.client.get_children("/brokers/topics")
        for partition, replicas in cluster.znodes.partitions(topic).items()
    ]
    without_leader = sum(state["leader"] == -1 for state, _ in states)
    return without_leader, sum(len(state["isr"]) < len(replicas) for state, replicas in states)


def test_the_cluster_is_described(cluster: ConformanceCluster, kontroller: Kontroller) -> None:
    described = kontroller.run("cluster", "describe", "-o", "json").json()
    assert described["controller"] == cluster.znodes.controller()
    assert described["clusterId"] == cluster.znodes.read("/cluster/id")["id"]
    assert {node["id"] for node in described["nodes"]} >= {1, 2, 3}

    def is_counted() -> bool:
        said = kontroller.run("cluster", "describe", "-o", "json").json()
        return (said["offline"], said["underReplicated"]) == count_unserved(cluster)

    # Other tests leave topics here, and some of those lack a replica for good.
    cluster.wait(is_counted, "the brokers' metadata is that of ZooKeeper")
    assert f"controller {described['controller']}" in kontroller.run("cluster", "describe").out


def test_features_are_described_and_refused_where_stock_brokers_are(
    cluster: ConformanceCluster, kontroller: Kontroller
) -> None:
    described = kontroller.run("features", "describe", "--controller").json()
    host, port = cluster.controller_address
    assert described == {
        "status": "OK",
        "supported_features": {},
        "finalized_features": {"epoch": described["finalized_features"]["epoch"]},
        "host": host,
        "port": port,
    }
    terminal = kontroller.start_at_terminal(
        "features", "update", "--feature-upgrade", "f:2", "--feature-upgrade", "g:1"
    )
    said = terminal.wait_for("[Y/n]?")
    assert "Please confirm before finalizing the upgrade of the following features:\n" in said
    assert "1. f from none (existing) to v2 (new)\n2. g from none (existing) to v1 (new)\n" in said
    terminal.type("Y\n")
    ended = terminal.end()
    assert ended.code == 1
    assert "INVALID_REQUEST 42" in ended.out
    terminal = kontroller.start_at_terminal("features", "disable", "--features", "f,g")
    assert "Please confirm deletion of the following features:\n1. f\n2. g\n" in terminal.wait_for("[Y/n]?")
    terminal.type("n\n")
    assert "nothing is changed" in terminal.end().out


WRONG_COMMANDS = {
    "a server that is none": ("cluster", "describe", "--bootstrap-server", "nowhere"),
    "a file that is not there": ("reassign", "verify", "--reassignment-json-file", "/no/where.json"),
    "a file that is none": ("reassign", "verify", "--reassignment-json-file", "/etc/passwd"),
    "a level that is none": ("features", "update", "--feature-upgrade", "f:x"),
    "a level of 0": ("features", "update", "--yes", "--feature-upgrade", "f:0"),
    "no feature": ("features", "update",),
    "a configuration that is none": ("topics", "create", "--topic", "t", "--config", "a"),
    "an assignment that is none": ("topics", "create", "--topic", "t", "--replica-assignment", "1;2"),
    "nothing to alter": ("topics", "alter", "--topic", "t-unknown", "--add-config", "a=1", "--add-config", "a=2"),
    "properties that are none": ("cluster", "describe", "--command-config", "/no/where.properties"),
    "an option that is missing": ("topics", "create"),
    "an option that is none": ("topics", "list", "--all"),
}  # fmt: skip


@pytest.mark.parametrize("arguments", WRONG_COMMANDS.values(), ids=WRONG_COMMANDS)
def test_a_wrong_command_says_what_to_change_in_one_line(kontroller: Kontroller, arguments: tuple[str, ...]) -> None:
    ended = kontroller.run(*arguments)
    assert ended.code == 2, ended
    assert len(ended.err.splitlines()) == 1
    assert ended.err.startswith("kontroller: ")


def test_nobody_who_answers_is_said_when_the_time_is_over(unused_tcp_port: int) -> None:
    ended = Kontroller(f"127.0.0.1:{unused_tcp_port}").run("topics", "list", "--timeout-ms", "500")
    assert ended.code == 1
    assert ended.err.startswith("kontroller: ")
    assert len(ended.err.splitlines()) == 1
