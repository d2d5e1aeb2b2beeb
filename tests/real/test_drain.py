"""`kontroller drain` and `kontroller ready` with unmodified brokers, under Kafka's own controller and under ours.

Their purpose: a broker that is stopped after its drain costs no producer an error, and the next one is not stopped
before this one is back.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from devcluster.clients.load import AckedProducer
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import (
    serve_topic,
    wait_until_acknowledged,
    wait_until_in_sync,
    wait_until_led,
)
from tests.real.conformance.clusters import ConformanceCluster

_PROPERTIES = {"controlled.shutdown.retry.backoff.ms": 100}
_LONG_S = 120
CONTROLLERS = ("kafka", "kontroller")
TWO = {"min.insync.replicas": "2"}


@pytest.fixture(scope="module", params=CONTROLLERS)
def started(
    request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper
) -> Iterator[ConformanceCluster]:
    name = f"drained-{request.param}"
    with (
        KafkaCluster(servers_folder, zookeeper, properties=_PROPERTIES, chroot=f"/{name}") as kafka,
        open_client(kafka.zookeeper_connect) as client,
        ExitStack() as stack,
    ):
        own = None
        if request.param == "kontroller":
            own = ControllerProcess(servers_folder, kafka.zookeeper_connect, name=f"{name}-controller")
            stack.enter_context(own)
        yield ConformanceCluster(kafka=kafka, znodes=ClusterZnodes(client), own_controller=own)


@pytest.fixture
def cluster(started: ConformanceCluster) -> ConformanceCluster:
    """The cluster with all brokers alive and all replicas in sync, whatever the last test left."""
    started.kafka.start()
    for broker in started.kafka.brokers:
        wait_until(lambda broker=broker: is_ready(started, broker), f"{broker} is ready")  # type: ignore[misc]  # a lambda with a default
    return started


def drain_command(
    cluster: ConformanceCluster, broker: int, *, timeout_s: int = _LONG_S, patience_s: int = 60
) -> list[str]:
    return [
        *("drain", "--bootstrap-server", cluster.kafka.bootstrap_servers, "--broker-id", str(broker)),
        *("--timeout-ms", str(timeout_s * 1000), "--replicas-timeout-ms", str(patience_s * 1000)),
    ]


def drain(
    cluster: ConformanceCluster, broker: int, *, timeout_s: int = _LONG_S, patience_s: int = 60
) -> subprocess.CompletedProcess[str]:
    command = drain_command(cluster, broker, timeout_s=timeout_s, patience_s=patience_s)
    return run_command(*command, timeout_s=timeout_s + 60)


@contextmanager
def run_drain(cluster: ConformanceCluster, broker: int) -> Iterator[subprocess.Popen[str]]:
    """Run a drain, which ends with the test."""
    command = [sys.executable, "-m", "kontroller", *drain_command(cluster, broker)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def find_line(process: subprocess.Popen[str], what: str) -> str:
    """Return the first line with these words; the test's own timeout is its deadline."""
    assert process.stdout is not None
    for line in process.stdout:
        if what in line:
            return line
    raise AssertionError(f"the drain ended and never said {what!r}")


def ready(cluster: ConformanceCluster, broker: int, broker_id: int | None = None) -> subprocess.CompletedProcess[str]:
    address = cluster.kafka.broker(broker).address
    return run_command("ready", "--bootstrap-server", address, "--broker-id", str(broker_id or broker))


def is_ready(cluster: ConformanceCluster, broker: int) -> bool:
    return ready(cluster, broker).returncode == 0


def test_a_drained_broker_leads_nothing_and_its_stop_costs_no_producer_anything(cluster: ConformanceCluster) -> None:
    third, stopping, second = cluster.order
    topic = "drained"
    cluster.serve_topic(topic, [[stopping, second, third], [second, stopping, third], [stopping, third, second]], TWO)
    cluster.serve_topic("only-here", [[stopping]])
    with nothing_lost(cluster.kafka.bootstrap_servers, topic) as producer:
        drained = drain(cluster, stopping)
        assert drained.returncode == 0, drained
        for partition in range(3):
            assert cluster.read_state(topic, partition).leader in (second, third)
            assert cluster.read_state(topic, partition).leadership[1] == sorted([second, third])
        assert "unavailable while it is stopped: only-here-0" in drained.stdout
        cluster.wait(lambda: "3 of" in ready(cluster, stopping).stdout, "the broker knows that it is out of sync")
        assert ready(cluster, stopping).returncode == 1
        cluster.kafka.broker(stopping).stop()
        assert ready(cluster, stopping).returncode == 1
        assert drain(cluster, stopping).returncode == 0
        cluster.kafka.broker(stopping).start()
        cluster.wait(lambda: is_ready(cluster, stopping), "the broker is ready again")
        assert [sorted(cluster.znodes.isr(topic, partition)) for partition in range(3)] == [sorted(cluster.order)] * 3
    assert producer.stop().errors == []


def test_with_kontroller_others_no_longer_count_on_a_drained_broker_which_may_be_drained_again(
    cluster: ConformanceCluster,
) -> None:
    """A leader that takes it for alive acknowledges nothing before the drained replica has copied it."""
    third, second, stopping = cluster.order
    cluster.serve_topic("relieved", [[stopping, second, third]], TWO)
    assert drain(cluster, stopping).returncode == 0

    def is_alive(broker: int) -> bool:
        return broker in {known.node_id for known in cluster.metadata(second).brokers}

    cluster.wait(lambda: is_alive(stopping) == cluster.is_kafkas_own, "Kontroller makes the others forget the broker")
    assert stopping in cluster.znodes.live_brokers()
    again = drain(cluster, stopping)
    assert (again.returncode, "is drained and may be stopped" in again.stdout) == (0, True), again
    if not cluster.is_kafkas_own:
        with (
            cluster.pause_broker(stopping),
            AckedProducer(cluster.kafka.broker(second).address, "relieved") as producer,
        ):
            wait_until_acknowledged(producer, 10)
    cluster.kafka.broker(stopping).restart()
    cluster.wait(lambda: is_alive(stopping), "the others see it as alive when it is back")


def test_it_serves_on_while_a_partition_cannot_spare_it_and_is_drained_when_it_can(cluster: ConformanceCluster) -> None:
    leading, stopping, missing = cluster.order
    topic = "cannot-spare"
    cluster.serve_topic(topic, [[stopping, leading, missing]], TWO)
    cluster.kafka.broker(missing).kill()
    wait_until_in_sync(cluster.znodes, topic, leading, stopping)
    with nothing_lost(cluster.kafka.bootstrap_servers, topic) as producer:
        refused = drain(cluster, stopping, patience_s=3)
        assert refused.returncode == 1, refused
        reason = refused.stderr.splitlines()[-1]
        assert f"{topic}-0 (ISR " in reason
        assert f"broker {missing} (not alive: " in reason
        assert reason.endswith("; nothing was changed")
        with run_drain(cluster, stopping) as waiting:
            assert f"{topic}-0 (ISR " in find_line(waiting, "too few replicas in sync")
            wait_until_acknowledged(producer, 100)
            assert cluster.read_state(topic).leadership == (stopping, sorted([stopping, leading]))
            cluster.kafka.broker(missing).start()
            find_line(waiting, "is drained and may be stopped")
            assert waiting.wait() == 0
        assert cluster.read_state(topic).leadership[1] == sorted([leading, missing])
        cluster.kafka.broker(stopping).restart()
        # Messages are read back through any broker, and one that has just started knows no topic.
        cluster.wait_until_everybody_knows(topic)
    assert producer.stop().errors == []


def test_brokers_that_are_drained_together_are_stopped_one_after_the_other(cluster: ConformanceCluster) -> None:
    staying, *stopped = cluster.order
    first, second = sorted(stopped)
    topic = "together"
    cluster.serve_topic(topic, [[first, second, staying], [second, staying, first]], TWO)
    with run_drain(cluster, second) as waiting, run_drain(cluster, first) as going:
        find_line(going, "is drained and may be stopped")
        find_line(waiting, "too few replicas in sync")
        assert len(cluster.znodes.isr(topic, 0)) == 2
        cluster.kafka.broker(first).restart()
        find_line(waiting, "is drained and may be stopped")
    assert sorted(cluster.znodes.isr(topic, 0)) == sorted([first, staying])
    cluster.kafka.broker(second).restart()


def test_a_drained_broker_leads_again_without_waiting_for_the_next_check(
    servers_folder: RunFolder, zookeeper: ZooKeeper
) -> None:
    """Leaders are checked every 300 s, and clients forget an address in a second."""
    settings = {"auto_leader_rebalance_enable": True, "address_cache_seconds": 1}
    with (
        KafkaCluster(servers_folder, zookeeper, properties=_PROPERTIES, brokers=2, chroot="/leads-again") as kafka,
        open_client(kafka.zookeeper_connect) as client,
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="giving-back", settings=settings) as controller,
    ):
        znodes = ClusterZnodes(client)
        serve_topic(znodes, "led", [[1, 2]])
        checks = 'kontroller_event_time_seconds_count{event="BalanceDue"}'
        wait_until(lambda: bool(controller.metric(checks)), "the first check of the term is over")
        kafka.broker(1).stop()
        wait_until_led(znodes, "led", 2)
        kafka.broker(1).start()
        wait_until_led(znodes, "led", 1)


def check_cluster(kafka: KafkaCluster, *, timeout_s: int = 60) -> subprocess.CompletedProcess[str]:
    timeout = ("--timeout-ms", str(timeout_s * 1000))
    return run_command("check", "cluster", "--bootstrap-server", kafka.bootstrap_servers, *timeout)


def test_a_check_says_who_is_the_controller(cluster: ConformanceCluster) -> None:
    checked = check_cluster(cluster.kafka)
    controller = cluster.znodes.controller()
    assert checked.returncode == 0, checked
    assert f": {controller} at {cluster.bootstrap} is the controller, say all of 1,2,3" in checked.stdout


def test_a_broker_that_nobody_knows_has_nothing_to_hand_over(cluster: ConformanceCluster) -> None:
    unknown = drain(cluster, 77)
    assert unknown.returncode == 0
    assert "broker 77 is not registered" in unknown.stdout
    assert "broker 77 is not registered, or shuts down" in ready(cluster, 1, broker_id=77).stdout


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_without_zookeeper_and_controller_it_gives_up_in_time(servers_folder: RunFolder, controller: str) -> None:
    name = f"abandoned-{controller}"
    with (
        ZooKeeper(servers_folder, name=f"{name}-zookeeper") as zookeeper,
        KafkaCluster(servers_folder, zookeeper, brokers=2, chroot=f"/{name}") as kafka,
        ExitStack() as stack,
    ):
        own = None
        if controller == "kontroller":
            own = ControllerProcess(servers_folder, kafka.zookeeper_connect, name=f"{name}-controller")
            stack.enter_context(own)
        with open_client(kafka.zookeeper_connect) as client:
            znodes = ClusterZnodes(client)
            serve_topic(znodes, "shared", [[1, 2]])
        if own is not None:
            own.process.kill()
        zookeeper.kill()
        ended = run_command(
            *("drain", "--bootstrap-server", kafka.bootstrap_servers, "--broker-id", "1", "--timeout-ms", "5000")
        )
        assert ended.returncode == 1, ended
        assert "gave up after 5 s" in ended.stderr
        if own is not None:
            assert "does not answer as the controller" in check_cluster(kafka, timeout_s=3).stderr
