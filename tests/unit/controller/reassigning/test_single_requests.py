"""A partition may be asked to move in a znode of its own, below `/admin/partitions_reassigned`."""

import pytest

from controller_core.model.throttles import Move
from controller_core.zk import paths
from controller_core.zk.session import Create, Delete
from controller_core.zk.throttle_writes import Throttles
from simulation.checks import assert_no_log_is_nobodys, assert_sound
from simulation.cluster import Cluster, alter_reassignments, ids, tp

SINGLY = paths.PARTITIONS_REASSIGNED
ORDERS = tp("orders")


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Six brokers; `orders` with two partitions on the first three."""
    cluster.start_brokers(1, 2, 3, 4, 5, 6)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3], [2, 3, 1])
    await cluster.settle()
    return cluster


def request(partition: tuple[str, int]) -> str:
    return paths.partition_request(SINGLY, tp(*partition))


async def test_it_moves_and_the_request_goes_when_that_has_ended(served: Cluster) -> None:
    served.request_of_partition(SINGLY, ORDERS, [4, 5, 6])
    await served.settle()
    assert served.assignment(ORDERS).adding == ids([4, 5, 6])
    assert served.exists(request(ORDERS)), "it stays while the partition moves"
    await served.replicate()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert served.zk.tree.children(SINGLY) == ()
    assert_no_log_is_nobodys(served)
    assert_sound(served)


async def test_very_many_move_together(served: Cluster) -> None:
    served.create_topic("large", *([1, 2] for _ in range(150)))
    await served.settle()
    for number in range(150):
        served.request_of_partition(SINGLY, tp("large", number), [2, 3])
    await served.replicate()
    assert {tuple(served.list_replicas(tp("large", number))) for number in range(150)} == {(2, 3)}
    assert served.zk.tree.children(SINGLY) == ()
    assert_sound(served)


async def test_another_target_that_is_written_into_it_replaces_the_former_one(served: Cluster) -> None:
    served.request_of_partition(SINGLY, ORDERS, [4, 5, 6])
    await served.settle()
    served.request_of_partition(SINGLY, ORDERS, [1, 2, 4])
    await served.settle()
    assert served.assignment(ORDERS).target == ids([1, 2, 4])
    await served.replicate()
    assert served.list_replicas(ORDERS) == [1, 2, 4]
    assert served.zk.tree.children(SINGLY) == ()
    assert_no_log_is_nobodys(served)


async def test_a_move_goes_on_when_its_request_is_removed_by_hand(served: Cluster) -> None:
    served.request_of_partition(SINGLY, ORDERS, [4, 5, 6])
    await served.settle()
    served.write(Delete(path=request(ORDERS)))
    await served.replicate()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert_sound(served)


async def test_it_supplants_the_entry_of_the_same_partition_and_leaves_the_others(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6], tp("orders", 1): [4, 5]})
    await served.settle()
    served.request_of_partition(SINGLY, ORDERS, [1, 2, 4])
    await served.settle()
    assert served.assignment(ORDERS).target == ids([1, 2, 4])
    assert served.assignment(tp("orders", 1)).target == ids([4, 5])
    await served.replicate()
    assert served.list_replicas(ORDERS) == [1, 2, 4]
    assert served.list_replicas(tp("orders", 1)) == [4, 5]
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    assert served.zk.tree.children(SINGLY) == ()
    assert_sound(served)


async def test_the_same_target_in_both_is_one_move(served: Cluster) -> None:
    served.request_of_partition(SINGLY, ORDERS, [4, 5, 6])
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.replicate()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    assert served.zk.tree.children(SINGLY) == ()


async def test_a_client_that_asks_otherwise_supplants_it(served: Cluster) -> None:
    served.request_of_partition(SINGLY, ORDERS, [4, 5, 6])
    await served.settle()
    await served.active.answer(alter_reassignments({ORDERS: [1, 2, 4]}))
    await served.replicate()
    assert served.list_replicas(ORDERS) == [1, 2, 4]
    assert served.zk.tree.children(SINGLY) == ()
    assert_sound(served)


@pytest.mark.parametrize(
    ("partition", "replicas"), [(tp("unknown"), [1]), (tp("orders", 7), [1]), (tp("orders", 1), [8, 9])]
)
async def test_what_cannot_be_done_is_removed_and_the_others_go_on(
    served: Cluster, partition: tuple[str, int], replicas: list[int]
) -> None:
    served.request_of_partition(SINGLY, tp(*partition), replicas)
    served.request_of_partition(SINGLY, ORDERS, [4, 5, 6])
    await served.replicate()
    assert served.zk.tree.children(SINGLY) == ()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert any(entry["event"] == "reassignment refused" for entry in served.logs)
    assert_sound(served)


async def test_unreadable_ones_are_removed_and_odd_children_left_alone(served: Cluster) -> None:
    served.request_of_partition(SINGLY, tp("orders", 1))
    served.request_of_partition(SINGLY, ORDERS, [4, 5, 6])
    served.write(Create(path=f"{SINGLY}/orders/first"), Create(path=f"{SINGLY}/empty"))
    await served.replicate()
    assert served.zk.tree.children(f"{SINGLY}/orders") == ("first",)
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert served.active.metric("kontroller_unusable_znodes", kind="partition_reassigned") == 1
    assert served.active.metric("kontroller_unusable_znodes_found_total", kind="partition_reassigned") == 2


async def test_its_throttle_stays_until_it_has_ended(served: Cluster) -> None:
    served.kill_broker(6)
    await Throttles(served.zk.session()).set(
        "somebody", {ORDERS: Move(origin=ids([1, 2, 3]), target=ids([4, 5, 6]))}, 1000
    )
    served.start_broker(6)
    served.request_of_partition(SINGLY, ORDERS, [4, 5, 6])
    await served.settle()
    assert served.zk.tree.children(paths.THROTTLES) == ("somebody",)
    await served.replicate()
    assert served.zk.tree.children(paths.THROTTLES) == ()


async def test_the_request_of_a_topic_that_is_deleted_goes(served: Cluster) -> None:
    served.request_of_partition(SINGLY, ORDERS, [4, 5, 6])
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    assert served.zk.tree.children(SINGLY) == ()
    assert_no_log_is_nobodys(served)
    assert_sound(served)
