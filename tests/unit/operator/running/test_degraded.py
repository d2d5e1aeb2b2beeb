"""A KafkaCluster shows at once that its cluster is degraded, and is written seldom however much changes."""

from collections.abc import Sequence
from typing import Any, Final

import pytest

from controller_core.model.ids import BrokerId, ControllerEpoch, PartitionId, TopicPartition
from controller_core.model.metadata import TopicAssignment
from controller_core.zk import codecs, paths
from controller_core.zk.session import ANY_VERSION, Create, Delete, SetData
from controller_operator.reconciling import object_writer
from tests.unit.operator.clusters import ORDERS, ORDERS_ID, assign, broker, lead, raw
from tests.unit.operator.running.operating import CLUSTER, CONNECT, Operating, run_operator

ORDERS_0: Final = TopicPartition(ORDERS, PartitionId(0))
BROKER_3: Final = paths.broker(BrokerId(3))
NEVER_S: Final = 1_000.0
"""A pause that no test outlasts."""


def encode_state(isr: Sequence[int]) -> bytes:
    return codecs.encode_partition_state(lead(1, isr).leader_and_isr, ControllerEpoch(1))


def read_degraded(around: Operating) -> dict[str, Any]:
    return around.condition(CLUSTER, "Degraded")


def status(around: Operating) -> dict[str, Any]:
    found: dict[str, Any] = (around.api.peek(CLUSTER) or {}).get("status", {})
    return found


def states(around: Operating) -> dict[int, str]:
    return {each["id"]: each["state"] for each in status(around)["brokers"]}


def writes(around: Operating) -> int:
    return sum(key == CLUSTER for key, _ in around.api.status_patches)


async def create_orders(around: Operating) -> None:
    """Creates a topic with one partition, which has replicas on all three brokers."""
    await around.wait_for_reason(CLUSTER, "Reconciled")
    assignment = TopicAssignment(topic_id=ORDERS_ID, partitions={PartitionId(0): assign([1, 2, 3])})
    await around.write(
        Create(path=paths.topic(ORDERS), data=codecs.encode_topic(assignment)),
        Create(path=paths.partitions(ORDERS)),
        Create(path=paths.partition(ORDERS_0)),
        Create(path=paths.partition_state(ORDERS_0), data=encode_state([1, 2, 3])),
    )
    await around.wait_until(lambda: status(around)["counts"]["partitions"] == 1)
    assert read_degraded(around)["status"] == "False"


async def change_isr(around: Operating, *isr: int) -> None:
    """Changes the ISR of the partition, and waits until the operator has looked at its cluster because of it."""
    looks = around.looks("KafkaCluster")
    await around.write(SetData(path=paths.partition_state(ORDERS_0), data=encode_state(isr), version=ANY_VERSION))
    await around.wait_until(lambda: around.looks("KafkaCluster") > looks)


async def test_a_dead_broker_is_named_at_once_although_counts_have_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_writer, "_LEAST_BETWEEN_PROGRESS_S", NEVER_S)
    async with run_operator() as around:
        await around.wait_for_reason(CLUSTER, "Reconciled")
        await around.write(Delete(path=BROKER_3))
        await around.wait_until(lambda: read_degraded(around)["status"] == "True")
        assert (read_degraded(around)["reason"], read_degraded(around)["message"]) == (
            "BrokersMissing",
            "broker 3 is missing",
        )
        assert around.condition(CLUSTER)["status"] == "True"
        assert states(around) == {1: "Registered", 2: "Registered", 3: "Missing"}
        await around.wait_until(lambda: around.events("BrokersGone"))


async def test_a_broker_that_is_back_is_registered_again_and_the_cluster_is_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(object_writer, "_LEAST_BETWEEN_PROGRESS_S", 0.05)
    async with run_operator() as around:
        await create_orders(around)
        await around.write(Delete(path=BROKER_3))
        await change_isr(around, 1, 2)
        words = "broker 3 is missing; 1 of 1 partition under-replicated"
        await around.wait_until(lambda: read_degraded(around)["message"] == words)
        await around.write(Create(path=BROKER_3, data=codecs.encode_broker(broker(3))))
        await change_isr(around, 1, 2, 3)
        await around.wait_until(lambda: read_degraded(around)["status"] == "False")
        assert states(around) == {1: "Registered", 2: "Registered", 3: "Registered"}


async def test_a_cluster_that_is_degraded_again_and_again_is_written_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_operator() as around:
        await create_orders(around)
        monkeypatch.setattr(object_writer, "_LEAST_BETWEEN_PROGRESS_S", NEVER_S)
        before = writes(around)
        for _ in range(10):
            await change_isr(around, 1, 2)
            await change_isr(around, 1, 2, 3)
        assert (read_degraded(around)["status"], writes(around) - before) == ("True", 1)


async def test_a_cluster_out_of_sight_is_not_known_to_be_degraded() -> None:
    async with run_operator(unreachable_grace_seconds=0) as around:
        await create_orders(around)
        await around.write(Delete(path=BROKER_3))
        await around.wait_until(lambda: read_degraded(around)["status"] == "True")
        around.take_zookeeper_away()
        await around.wait_until(lambda: read_degraded(around)["status"] == "Unknown")
        assert states(around)[3] == "Missing", "what was seen last stays"
        around.bring_zookeeper_back()
        await around.wait_until(lambda: read_degraded(around)["status"] == "True")


async def test_a_paused_cluster_stays_as_it_was_last_seen() -> None:
    async with run_operator() as around:
        await create_orders(around)
        await around.write(Delete(path=BROKER_3))
        await around.wait_until(lambda: read_degraded(around)["status"] == "True")
        paused = raw("KafkaCluster", {}, name="demo", annotations={"kontroller.dev/pause": "true"})
        await around.api.apply({**paused, "spec": {"zookeeper": {"connect": CONNECT}}})
        await around.wait_for_reason(CLUSTER, "Paused")
        assert read_degraded(around)["status"] == "True"
