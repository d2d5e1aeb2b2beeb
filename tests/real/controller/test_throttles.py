"""A throttle slows a reassignment on real brokers, can be raised while it runs, and is removed however it ends."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from controller_core.client.cluster import Cluster
from controller_core.client.properties import ClientProperties
from controller_core.client.reassigning.throttle_configs import read_throttle_configs
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import Move, broker_entity
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.session import ZkSession
from controller_core.zk.throttle_writes import Throttles
from devcluster.clusters.kontroller import run_command
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import (
    wait_until_empty,
    wait_until_gone,
    wait_until_in_sync,
    wait_until_moved,
    wait_until_unregistered,
)
from tests.real.controller.clusters import OurCluster

pytestmark = pytest.mark.timeout(400)

RECORD_BYTES, RECORDS = 100_000, 200
A_LITTLE, SLOW, FAST = 5 * RECORD_BYTES, RECORD_BYTES, 100 * RECORD_BYTES * RECORDS
"""Bytes that are on the target when a move certainly runs and is far from its end; and limits, per second."""


def act_over_zookeeper(cluster: OurCluster, act: Callable[[ZkSession], Awaitable[None]]) -> None:
    """Do the operator's work with its own session."""

    async def run() -> None:
        zk = await KazooSession.connect(
            cluster.kafka.zookeeper_connect, session_timeout_ms=30_000, connect_timeout_ms=30_000
        )
        try:
            await act(zk)
        finally:
            await zk.close()

    asyncio.run(run())


def throttle(cluster: OurCluster, topic: str, source: int, target: int, bytes_per_second: int) -> None:
    move = Move(origin=(BrokerId(source),), target=(BrokerId(target),))
    moves = {TopicPartition(TopicName(topic), PartitionId(0)): move}
    act_over_zookeeper(cluster, lambda zk: Throttles(zk).set(f"test of {topic}", moves, bytes_per_second))


def fill(cluster: OurCluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(topic, number.to_bytes(4, "big") * (RECORD_BYTES // 4), partition=0)
        producer.poll(0)
    assert producer.flush(120) == 0


def bytes_on(cluster: OurCluster, topic: str, broker: int) -> int:
    return sum(path.stat().st_size for path in (cluster.kafka.broker(broker).log_folder / f"{topic}-0").glob("*.log"))


def begin_slowly(cluster: OurCluster, topic: str, source: int, target: int) -> None:
    """Start a move that has copied a little of its data, and has most of it left."""
    cluster.serve_topic(topic, [[source]])
    fill(cluster, topic)
    throttle(cluster, topic, source, target, SLOW)
    for broker in (source, target):
        wait_until(
            lambda broker=broker: str(SLOW) in read_rates(cluster, broker).values(),  # type: ignore[misc]  # a lambda with a default
            f"broker {broker} knows its throttle",
        )
    cluster.znodes.reassign({(topic, 0): [target]})
    wait_until(lambda: bytes_on(cluster, topic, target) >= A_LITTLE, "the move has begun")
    assert bytes_on(cluster, topic, target) < RECORD_BYTES * RECORDS / 2, "it was not slowed"
    assert cluster.znodes.read_assignment(topic, 0) == [target, source], "it should still run"


def set_configs(cluster: OurCluster, topic: str) -> dict[str, dict[str, str]]:
    """Return the configurations that are not empty."""
    paths = [f"/config/topics/{topic}", *(f"/config/brokers/{broker}" for broker in cluster.kafka.brokers)]
    configs = {path: (cluster.znodes.read(path) or {"config": {}})["config"] for path in paths}
    return {path: config for path, config in configs.items() if config}


def wait_until_nothing_is_left(cluster: OurCluster, topic: str) -> None:
    wait_until(lambda: not set_configs(cluster, topic), "no throttle is configured")
    wait_until_empty(cluster.znodes, "/kontroller/throttles")


def test_a_throttled_move_is_slow_until_the_limit_is_raised_and_leaves_nothing(our_cluster: OurCluster) -> None:
    begin_slowly(our_cluster, "narrow", 1, 2)
    throttle(our_cluster, "narrow", 1, 2, FAST)
    wait_until_moved(our_cluster.znodes, "narrow", [2])
    wait_until_nothing_is_left(our_cluster, "narrow")
    assert our_cluster.znodes.is_served("narrow", [0])


def test_a_throttle_ends_with_a_move_that_is_cancelled(our_cluster: OurCluster) -> None:
    begin_slowly(our_cluster, "returned", 3, 4)
    our_cluster.znodes.rewrite_reassignment({("returned", 0): [3]})
    wait_until_moved(our_cluster.znodes, "returned", [3])
    wait_until_nothing_is_left(our_cluster, "returned")
    our_cluster.wait_until_no_stray_replicas("returned", 0)


def test_a_throttle_outlives_a_killed_controller_and_not_its_move(our_cluster: OurCluster) -> None:
    begin_slowly(our_cluster, "bereaved", 5, 6)
    our_cluster.controller.restart_whole()
    assert set_configs(our_cluster, "bereaved")["/config/topics/bereaved"] == {
        "leader.replication.throttled.replicas": "0:5",
        "follower.replication.throttled.replicas": "0:6",
    }
    throttle(our_cluster, "bereaved", 5, 6, FAST)
    wait_until_moved(our_cluster.znodes, "bereaved", [6])
    wait_until_nothing_is_left(our_cluster, "bereaved")


def test_a_throttle_ends_with_its_topic(our_cluster: OurCluster) -> None:
    begin_slowly(our_cluster, "doomed-move", 1, 2)
    our_cluster.znodes.mark_for_deletion("doomed-move")
    wait_until_gone(our_cluster.znodes, "/brokers/topics/doomed-move")
    wait_until_nothing_is_left(our_cluster, "doomed-move")


@pytest.mark.timeout(600)
def test_a_command_s_throttle_off_a_dead_broker_is_the_controller_s_and_ends_with_the_move(
    our_cluster: OurCluster, tmp_path: Path
) -> None:
    """The dead broker has its throttle as soon as it returns during the move."""
    our_cluster.serve_topic("bereft", [[4, 5]])
    fill(our_cluster, "bereft")
    our_cluster.kafka.broker(4).kill()
    wait_until_unregistered(our_cluster.znodes, 4)
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"bereft","partition":0,"replicas":[5,6]}]}')
    there = ("--reassignment-json-file", str(plan), "--bootstrap-server", our_cluster.kafka.broker(5).address)
    started = run_command("reassign", "start", *there, "--throttle", str(SLOW // 2), "--no-wait")
    assert started.returncode == 0, started.stderr
    assert "broker 4 is down: the throttle applies there from the next start" in started.stderr
    assert "the controller removes the throttle with the move" in started.stderr
    rates = dict.fromkeys(("leader.replication.throttled.rate", "follower.replication.throttled.rate"), str(SLOW // 2))
    assert set_configs(our_cluster, "bereft") == {
        "/config/topics/bereft": {
            "leader.replication.throttled.replicas": "0:4,0:5",
            "follower.replication.throttled.replicas": "0:6",
        },
        **{f"/config/brokers/{broker}": rates for broker in (4, 5, 6)},
    }
    wait_until(lambda: bytes_on(our_cluster, "bereft", 6) >= A_LITTLE, "the move has begun")
    assert bytes_on(our_cluster, "bereft", 6) < RECORD_BYTES * RECORDS / 2, "it was not slowed"
    our_cluster.kafka.broker(4).start()
    wait_until_in_sync(our_cluster.znodes, "bereft", 4, 5)
    assert read_rates(our_cluster, 4) == rates, "as the broker itself says"
    again = run_command("reassign", "start", *there, "--throttle", str(FAST), "--additional", "--no-wait")
    assert again.returncode == 0, again.stderr
    wait_until_moved(our_cluster.znodes, "bereft", [5, 6])
    wait_until_nothing_is_left(our_cluster, "bereft")


def read_rates(cluster: OurCluster, broker: int) -> dict[str, str]:
    """Return the dynamic rates of a broker, as it describes itself."""
    entity = broker_entity(BrokerId(broker))

    async def run() -> dict[str, str]:
        servers = {"bootstrap.servers": cluster.kafka.broker(broker).address}
        call = Cluster.create(ClientProperties.parse(servers)).call()
        return dict((await read_throttle_configs(call.target_broker(BrokerId(broker)), [entity]))[entity])

    return asyncio.run(run())
