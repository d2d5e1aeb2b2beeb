"""A move that waits for another one names it, even if they refer to different KafkaClusters of the same Kafka
cluster."""

from collections.abc import Callable
from typing import Any

import pytest

from controller_core.zk import codecs, paths
from controller_core.zk.session import Create
from controller_operator.kubernetes.object_store import Key
from tests.unit.operator.plans.reassignment.test_reassignment import make_request
from tests.unit.operator.tenants.operated import Operated, kafka_cluster


def make_spec(topic: str, cluster: str = "demo") -> dict[str, Any]:
    return {
        "clusterRef": {"name": cluster, "namespace": "platform"},
        "partitions": [{"topic": topic, "partition": 0, "replicas": [3, 1]}],
    }


@pytest.fixture
async def operated(operating: Callable[..., Operated]) -> Operated:
    """One Kafka cluster with two KafkaClusters for it, and another one."""
    zookeeper, other = await kafka_cluster("orders", "bills"), await kafka_cluster("orders", cluster_id="another")
    operator = operating({"zk": zookeeper, "zk-alias": zookeeper, "other": other})
    everybody = [{"namespace": "*"}]
    for name, host in {"demo": "zk", "alias": "zk-alias", "elsewhere": "other"}.items():
        await operator.cluster(name, host, everybody, creationTimestamp="2024-01-01T00:00:00Z")
    return operator


async def message_of(operated: Operated, name: str, spec: dict[str, Any]) -> str:
    key: Key = await operated.add("PartitionReassignment", name, spec, namespace="shop")
    await operated.look(key)
    ready = operated.ready(key)
    return f"{ready['reason']}: {ready['message']}"


async def test_the_object_is_named_for_which_it_waits(operated: Operated) -> None:
    assert (await message_of(operated, "first", make_spec("orders"))).startswith("Progressing")
    assert (await message_of(operated, "elsewhere", make_spec("orders", "elsewhere"))).startswith("Progressing")
    other = {**make_spec("orders", "alias"), "partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 2]}]}
    told = await message_of(operated, "second", other)
    assert told == "WaitingForOtherReassignment: orders-0 moves elsewhere at present, for shop/first"


async def test_what_does_not_overlap_waits_for_nothing(operated: Operated) -> None:
    assert (await message_of(operated, "first", make_spec("orders"))).startswith(
        "Progressing: 1 of 1 partitions are on"
    )
    assert (await message_of(operated, "second", make_spec("bills"))).startswith(
        "Progressing: 1 of 1 partitions are on"
    )


async def test_what_a_tool_asked_for_is_nobody_s(operated: Operated) -> None:
    data = codecs.encode_reassignment(make_request({0: [1, 3]}).partitions)
    await operated.sessions[0].transact([Create(path=paths.REASSIGN_PARTITIONS, data=data)])
    await operated.wait_for_change()
    assert "not for any PartitionReassignment" in await message_of(operated, "second", make_spec("orders"))
