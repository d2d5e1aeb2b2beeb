"""Design v2 of seed 003 with real parts: three processes on a real ZooKeeper, no controller, and unmodified clients."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from devcluster.clients import tools
from devcluster.clusters.kafka import lose_directory
from devcluster.clusters.kontroller import run_command
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_acknowledged, wait_until_in_sync

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

LINES = [f"line {number}" for number in range(300)]


@dataclass(frozen=True, slots=True, kw_only=True)
class V2Cluster:
    connect: str
    brokers: dict[int, PythonBroker]
    client: KazooClient

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def admin(self, command: str, *arguments: str) -> None:
        done = run_command("admin", command, "--zookeeper", self.connect, *arguments, program="replica_broker")
        assert done.returncode == 0, done

    def leader(self, topic: str) -> int | None:
        try:
            data = self.client.get(f"/brokers/topics/{topic}/0/leader")[0]
        except NoNodeError:
            return None
        return int(data.split(b",")[0])

    def brokers_in(self, topic: str, name: str) -> list[int]:
        data = self.client.get(f"/brokers/topics/{topic}/0/{name}")[0]
        return sorted(int(part) for part in data.split(b",") if part)

    def directory_of(self, topic: str, broker: int) -> Path | None:
        """Return the log directory that has partition 0 of a topic."""
        folder = self.brokers[broker].log_folder
        found = [each for each in (folder, folder.with_name("log-2")) if (each / f"{topic}-0").exists()]
        return found[0] if found else None

    def isr(self, topic: str, _partition: int) -> list[int]:
        return self.brokers_in(topic, "ISR")

    def wait_until_led_by_another(self, topic: str, former: int) -> None:
        wait_until(lambda: self.leader(topic) not in (None, former), "another leads")


@pytest.fixture(scope="module")
def v2(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[V2Cluster]:
    connect = f"{zookeeper.connect}/design-v2"
    with ExitStack() as stack:
        brokers = {}
        for broker in (1, 2, 3):
            name = f"v2-{broker}"
            directories = [servers_folder.data(name) / "log", servers_folder.data(name) / "log-2"]
            settings = {
                "design": "v2",
                "min_insync_replicas": 2,
                "log_directory": [str(directory) for directory in directories],
            }
            brokers[broker] = PythonBroker(servers_folder, connect, broker, name=name, settings=settings)
            stack.enter_context(brokers[broker])
        client = stack.enter_context(open_client(connect))
        yield V2Cluster(connect=connect, brokers=brokers, client=client)


@pytest.fixture
def cluster(v2: V2Cluster) -> Iterator[V2Cluster]:
    """The cluster with all three brokers alive. Nothing unexpected may happen to them, and nobody may become a
    controller.
    """
    for broker in v2.brokers.values():
        if not broker.process.is_running:
            broker.start()
    yield v2
    for broker in v2.brokers.values():
        for words in ("failed unexpectedly", "could not be answered", "Traceback"):
            assert words not in broker.log(), f"a broker's log has {words!r}: {broker.process.log_path}"
    assert set(v2.client.get_children("/")) == {"brokers", "cluster"}


def test_kafkas_own_console_tools_write_and_read(cluster: V2Cluster) -> None:
    cluster.admin("create-topic", "--topic", "spoken", "--replica-assignment", "2:3:1")
    wait_until_in_sync(cluster, "spoken", 1, 2, 3)
    produced = tools.run_tool(
        tools.CONSOLE_PRODUCER,
        *("--bootstrap-server", cluster.brokers[1].address, "--topic", "spoken"),
        stdin="\n".join(LINES),
    )
    assert (produced.returncode, produced.stderr) == (0, ""), produced.stderr
    consumed = tools.run_tool(
        tools.CONSOLE_CONSUMER,
        *("--bootstrap-server", cluster.brokers[3].address, "--topic", "spoken", "--partition", "0"),
        *("--offset", "earliest", "--max-messages", str(len(LINES)), "--timeout-ms", "60000"),
    )
    assert consumed.stdout.splitlines() == LINES, consumed.stderr


def test_nothing_acknowledged_is_lost_when_leaders_are_killed(cluster: V2Cluster) -> None:
    cluster.admin("create-topic", "--topic", "loaded", "--replica-assignment", "1:2:3")
    wait_until_in_sync(cluster, "loaded", 1, 2, 3)
    with nothing_lost(cluster.bootstrap, "loaded", more_than=200) as producer:
        for _ in range(2):
            killed = cluster.leader("loaded")
            assert killed is not None
            cluster.brokers[killed].kill()
            cluster.wait_until_led_by_another("loaded", killed)
            wait_until_acknowledged(producer, 200)
            cluster.brokers[killed].start()
            wait_until_in_sync(cluster, "loaded", 1, 2, 3)


def test_a_leader_whose_log_directory_is_lost_gives_up_and_serves_the_rest_on(cluster: V2Cluster) -> None:
    cluster.admin("create-topic", "--topic", "on-two-disks", "--replica-assignment", "1:2:3")
    wait_until_in_sync(cluster, "on-two-disks", 1, 2, 3)
    with nothing_lost(cluster.bootstrap, "on-two-disks", more_than=200) as producer:
        leader = cluster.leader("on-two-disks")
        assert leader is not None
        directory = cluster.directory_of("on-two-disks", leader)
        assert directory is not None
        lose_directory(directory)
        cluster.wait_until_led_by_another("on-two-disks", leader)
        wait_until_acknowledged(producer, 200)
        wait_until_in_sync(cluster, "on-two-disks", *(broker for broker in cluster.brokers if broker != leader))
        assert str(leader) in cluster.client.get_children("/brokers/ids")
        directory.unlink()
        cluster.brokers[leader].restart()
        wait_until_in_sync(cluster, "on-two-disks", 1, 2, 3)


def test_what_is_deleted_while_a_broker_is_down_is_gone_when_it_is_back(cluster: V2Cluster) -> None:
    cluster.admin("create-topic", "--topic", "gone", "--replica-assignment", "1:2:3")
    wait_until_in_sync(cluster, "gone", 1, 2, 3)
    cluster.brokers[3].kill()
    wait_until(lambda: "3" not in cluster.client.get_children("/brokers/ids"), "broker 3 is dead")
    cluster.admin("delete-topic", "--topic", "gone")
    assert cluster.directory_of("gone", 3) is not None
    assert cluster.client.get_children("/brokers/state/3"), "it is told to close its replica when it is back"
    cluster.brokers[3].start()
    assert [cluster.directory_of("gone", broker) for broker in cluster.brokers] == [None] * 3
    assert "gone" not in cluster.client.get_children("/brokers/topics")


def test_a_partition_moves_with_its_messages(cluster: V2Cluster) -> None:
    cluster.admin("create-topic", "--topic", "moved", "--replica-assignment", "1:2")
    wait_until_in_sync(cluster, "moved", 1, 2)
    with nothing_lost(cluster.bootstrap, "moved", more_than=200):
        cluster.admin("reassign", "--topic", "moved", "--partition", "0", "--replicas", "2,3")
    assert cluster.brokers_in("moved", "replicas") == [2, 3]
    wait_until(lambda: cluster.directory_of("moved", 1) is None, "the log left behind is deleted")
