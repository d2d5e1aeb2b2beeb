"""Somebody gave single znodes an ACL that lets the controller only read them. Everything else is served."""

import pytest

from controller_core.controller.loop.faults import RETRY_MS
from controller_core.model.transitions import PartitionStatus
from controller_core.wire.messages import ErrorCode
from controller_core.zk import paths
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp

FOREIGN, ORDERS = tp("foreign"), tp("orders")
REPORT = "partition state cannot be written, left as it is"


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Three brokers; 1 leads `foreign`, whose state only others may write, and `orders`."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("foreign", [1, 2, 3])
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    cluster.zk.tree.read_only.add(paths.partition_state(FOREIGN))
    return cluster


def count_unusable(cluster: Cluster, kind: str) -> float:
    return cluster.active.metric("kontroller_unusable_znodes", kind=kind) or 0


def list_reports(cluster: Cluster) -> list[str]:
    return [line["path"] for line in cluster.logs if line["event"] == REPORT]


async def test_a_state_that_cannot_be_written_costs_only_its_own_partition_the_leader(served: Cluster) -> None:
    served.kill_broker(1)
    await served.settle()
    process = served.active
    assert process.terms == 1
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert served.leadership(FOREIGN) == (1, [1, 2, 3])
    assert process.term.state.partition_status[FOREIGN] is PartitionStatus.OFFLINE
    assert process.metric("kontroller_offline_partitions") == 1
    assert count_unusable(served, "partition_state") == 1
    served.kill_broker(3)
    await served.settle()
    assert list_reports(served) == [paths.partition_state(FOREIGN)], "reported once"
    assert served.leadership(ORDERS) == (2, [2])


async def test_a_partition_is_led_again_at_the_next_event_after_its_acl_was_corrected(served: Cluster) -> None:
    served.kill_broker(1)
    await served.settle()
    served.zk.tree.read_only.clear()
    served.start_broker(1)
    await served.replicate()
    assert count_unusable(served, "partition_state") == 0
    assert served.leadership(FOREIGN)[0] in served.live
    assert_sound(served)


async def test_the_next_controller_serves_everything_else(served: Cluster) -> None:
    await served.active.kill()
    served.kill_broker(1)
    await served.serve()
    await served.settle()
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert count_unusable(served, "partition_state") == 1


async def test_a_leader_that_may_not_have_another_isr_drops_its_request(served: Cluster) -> None:
    assert await served.alter_isr(FOREIGN, [1, 2]) is ErrorCode.ineligible_replica
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.none
    assert await served.alter_isr(FOREIGN, [1, 3]) is ErrorCode.ineligible_replica
    assert list_reports(served) == [paths.partition_state(FOREIGN)]


async def test_a_topic_below_which_nothing_can_be_created_gets_no_leader(served: Cluster) -> None:
    served.zk.tree.read_only.add(paths.topic(tp("new").topic))
    served.create_topic("new", [1, 2])
    served.create_topic("other", [1, 2])
    await served.settle()
    assert served.leadership(tp("other")) == (1, [1, 2])
    assert not served.exists(paths.partitions(tp("new").topic))
    (report,) = (line for line in served.logs if line["event"] == REPORT)
    assert f"access to {paths.partitions(tp('new').topic)} " in report["error"]
    served.zk.tree.read_only.clear()
    served.bounce_broker(3)
    await served.settle()
    assert served.leadership(tp("new")) == (1, [1, 2])


async def test_a_topic_whose_znodes_cannot_be_deleted_waits(served: Cluster) -> None:
    served.zk.tree.read_only.add(paths.partition(FOREIGN))
    served.request_deletion("foreign")
    served.request_deletion("orders")
    await served.settle()
    assert not served.exists(paths.topic(ORDERS.topic))
    assert count_unusable(served, "delete_topic") == 1
    served.zk.tree.read_only.clear()
    await served.settle(passing_ms=RETRY_MS)
    assert not served.exists(paths.topic(FOREIGN.topic))
    assert_sound(served)


async def test_a_topic_that_cannot_be_rewritten_is_not_moved(served: Cluster) -> None:
    served.zk.tree.read_only.add(paths.topic(FOREIGN.topic))
    served.request_reassignment({FOREIGN: [2, 3], ORDERS: [2, 3]})
    await served.settle()
    await served.replicate()
    assert served.list_replicas(ORDERS) == [2, 3]
    assert served.list_replicas(FOREIGN) == [1, 2, 3]
    assert served.active.terms == 1
