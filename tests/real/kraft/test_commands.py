"""The admin commands on a cluster without ZooKeeper."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from controller_core.client.cluster import Cluster
from controller_core.client.properties import ClientProperties
from controller_core.client.reassigning.throttle_configs import read_throttle_configs
from controller_core.model.ids import BrokerId
from controller_core.model.throttles import FOLLOWER_RATE, broker_entity
from devcluster.clusters.kontroller import run_command
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from tests.real.kraft.releases import RELEASES
from tests.real.operator.operated import fill

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

TOPIC = "orders"


@pytest.fixture(scope="module", params=RELEASES)
def kraft(request: pytest.FixtureRequest, servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Three brokers with two log directories each, three controllers, and a topic with a replica on each broker."""
    name, properties = f"commanded-{request.param}", {"min.insync.replicas": 2}
    with KRaftCluster(
        servers_folder, name=name, properties=properties, version=request.param, log_directories=2
    ) as cluster:
        command(cluster, "topics", "create", "--topic", TOPIC, "--partitions", "3", "--replication-factor", "3")
        yield cluster


def command(kraft: KRaftCluster, *arguments: str) -> str:
    """Return the output of a command, which must succeed."""
    done = run_command(*arguments, "--bootstrap-server", kraft.bootstrap_servers)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def read_rate(kraft: KRaftCluster, broker: int) -> str | None:
    """Return the throttle of what a broker receives."""
    entity = broker_entity(BrokerId(broker))

    async def run() -> str | None:
        call = Cluster.create(ClientProperties.parse({"bootstrap.servers": kraft.broker(broker).address})).call()
        return (await read_throttle_configs(call.target_broker(BrokerId(broker)), [entity]))[entity].get(FOLLOWER_RATE)

    return asyncio.run(run())


def pod_command(kraft: KRaftCluster, name: str, broker: int) -> "subprocess.CompletedProcess[str]":
    bootstrap = kraft.broker(broker).address if name == "ready" else kraft.bootstrap_servers
    return run_command(name, "--bootstrap-server", bootstrap, "--broker-id", str(broker))


def wait_until_ready(kraft: KRaftCluster, broker: int) -> None:
    wait_until(lambda: pod_command(kraft, "ready", broker).returncode == 0, f"broker {broker} is ready")


def test_the_controller_is_who_leads_the_quorum_also_after_that_one_was_killed(kraft: KRaftCluster) -> None:
    def describe_controller() -> int | None:
        shown: int | None = json.loads(command(kraft, "cluster", "describe", "-o", "json"))["controller"]
        return shown

    former = describe_controller()
    assert former in kraft.controllers
    checked = run_command("check", "cluster", "--bootstrap-server", kraft.bootstrap_servers)
    assert re.search(rf"{former} leads the quorum of controllers in epoch \d+, and all of 1,2,3 know", checked.stdout)
    kraft.controller(former).kill()
    wait_until(lambda: describe_controller() not in (former, None), "another leads")
    assert run_command("check", "cluster", "--bootstrap-server", kraft.bootstrap_servers).returncode == 0
    kraft.controller(former).start()


def test_topics_are_imported_with_what_was_set_for_them_and_nothing_else(kraft: KRaftCluster) -> None:
    config = ("--config", "retention.ms=5000", "--config", "min.insync.replicas=3")
    command(kraft, "topics", "create", "--topic", "two", "--partitions", "2", "--replication-factor", "2", *config)
    where = ("--cluster", "demo", "--without-kubernetes", "--bootstrap-server", kraft.bootstrap_servers)
    done = run_command("import", *where)
    assert done.returncode == 0, done.stderr
    specs = {each["metadata"]["name"]: each["spec"] for each in yaml.safe_load_all(done.stdout)}
    shape = {"clusterRef": {"name": "demo"}, "partitions": 2, "replicationFactor": 2}
    assert specs["two"] == {**shape, "config": {"retention.ms": "5000"}}
    assert specs[TOPIC] == {**shape, "partitions": 3, "replicationFactor": 3}
    assert "topic two: config leaves out min.insync.replicas, which the topic keeps: " in done.stderr
    command(kraft, "topics", "delete", "--topic", "two", "--yes")


def test_a_move_off_a_dead_broker_is_throttled_and_a_broker_that_returns_has_its_throttle(
    kraft: KRaftCluster, tmp_path: Path
) -> None:
    """The command waits, and throttles the broker when it returns."""
    command(kraft, "topics", "create", "--topic", "heavy", "--replica-assignment", "3:1")
    fill(kraft, "heavy")
    kraft.broker(3).kill()
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"heavy","partition":0,"replicas":[1,2]}]}')
    there = ("--reassignment-json-file", str(plan), "--bootstrap-server", kraft.broker(1).address)
    at = [sys.executable, "-m", "kontroller", "reassign", "start", *there, "--throttle", "10000"]
    with subprocess.Popen(at, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as waiting:
        wait_until(lambda: read_rate(kraft, 2) == "10000", "the broker that receives is throttled")
        kraft.broker(3).start()
        wait_until(lambda: read_rate(kraft, 3) == "10000", "the broker that returned is throttled")
        faster = run_command("reassign", "start", *there, "--throttle", "1000000000", "--additional", "--no-wait")
        assert "the throttle stays after the move" in faster.stderr
        said = waiting.communicate(timeout=120)[1]
    assert waiting.returncode == 0, said
    assert "broker 3 is down, and only the other brokers are throttled" in said
    wait_until(lambda: {read_rate(kraft, broker) for broker in (1, 2, 3)} == {None}, "no broker is throttled")


def test_a_broker_drains_stops_and_is_ready_again_while_producers_with_acks_all_are_never_refused(
    kraft: KRaftCluster,
) -> None:
    with nothing_lost(kraft.bootstrap_servers, TOPIC) as producer:
        for broker in kraft.brokers.values():
            drained = pod_command(kraft, "drain", broker.node_id)
            assert drained.returncode == 0, drained.stdout + drained.stderr
            broker.stop()
            broker.start()
            wait_until_ready(kraft, broker.node_id)
    assert producer.stop().errors == []


def test_replicas_move_between_log_directories(kraft: KRaftCluster, tmp_path: Path) -> None:
    """A new replica is created in its directory, and one that exists is copied there (KIP-858)."""
    command(kraft, "topics", "create", "--topic", "placed", "--replica-assignment", "1:2")

    def directories_of(broker: int) -> list[Path]:
        return [each for each in kraft.broker(broker).log_directories if (each / "placed-0").exists()]

    def directory_of(broker: int) -> Path:
        (found,) = directories_of(broker)
        return found

    wait_until(lambda: len(directories_of(1)) == 1, "the topic has a log")
    target = next(each for each in kraft.broker(1).log_directories if each != directory_of(1))
    for directory in kraft.broker(3).log_directories:
        entry = {"topic": "placed", "partition": 0, "replicas": [1, 3], "log_dirs": [str(target), str(directory)]}
        file = tmp_path / "plan.json"
        file.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8-sig")
        plan = ("--reassignment-json-file", str(file))
        command(kraft, "reassign", "start", *plan)
        assert (directory_of(1), directory_of(3)) == (target, directory)
        (verified,) = json.loads(command(kraft, "reassign", "verify", *plan, "-o", "json"))
        assert [each["place"] for each in verified["log_dirs"]] == ["there", "there"]
