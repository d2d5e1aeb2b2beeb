"""Pending deletions of brokers that do not come back are remembered for long, and not for ever."""

import asyncio

import pytest

from controller_core.controller.znodes import removed_replicas_retention
from controller_core.zk import codecs, paths
from controller_core.zk.session import Delete
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings

ORDERS = tp("orders")
FORGOTTEN = "replicas that an absent broker has to delete are forgotten: empty its disks before it returns"


DAY_MS = 60_000


@pytest.fixture(autouse=True)
def short_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the days, because simulating the events of a real day takes long."""
    monkeypatch.setattr(removed_replicas_retention, "DAY_MS", DAY_MS)


@pytest.fixture
async def owed(cluster: Cluster) -> Cluster:
    """Broker 3 is down, and has a log of `orders` that it must delete when it is back; so has 4, whose disk failed."""
    cluster.settings = ProcessSettings(removed_replicas_retention_days=10)
    cluster.start_brokers(1, 2, 3, 4)
    await cluster.serve()
    cluster.create_topic("orders", [1, 3, 4])
    await cluster.settle()
    cluster.fail_log_dir(4, ORDERS)
    cluster.kill_broker(3)
    await cluster.settle()
    cluster.request_reassignment({ORDERS: [1, 2]})
    await cluster.replicate()
    assert entries(cluster) == ["3,orders,0", "4,orders,0"]
    return cluster


def entries(cluster: Cluster) -> list[str]:
    return list(cluster.zk.tree.children(paths.REMOVED_REPLICAS) or ())


async def days_pass(cluster: Cluster, days: float) -> None:
    passing = asyncio.create_task(cluster.clock.sleep_ms(days * DAY_MS))
    await cluster.settle(passing_ms=days * DAY_MS + 1)
    assert passing.done()


async def test_what_a_broker_owes_is_remembered_for_as_long_as_it_is_said_to_be(owed: Cluster) -> None:
    await days_pass(owed, 9.5)
    assert entries(owed) == ["3,orders,0", "4,orders,0"]
    owed.start_broker(3)
    await owed.settle()
    assert ORDERS not in owed.broker(3).logs
    assert entries(owed) == ["4,orders,0"]


async def test_what_a_broker_owes_that_does_not_come_back_is_forgotten_with_an_error_that_names_it(
    owed: Cluster,
) -> None:
    await days_pass(owed, 11.5)
    assert entries(owed) == ["4,orders,0"], "4 is there, and its disk may be repaired yet"
    (line,) = [entry for entry in owed.logs if entry["event"] == FORGOTTEN]
    assert (line["broker"], line["replicas"], line["partitions"], line["days"]) == (3, "1 replica", "orders-0", 10)
    owed.start_broker(3)
    await owed.settle()
    assert ORDERS in owed.broker(3).logs
    assert_sound(owed)


async def test_the_time_begins_when_a_broker_was_there_last(owed: Cluster) -> None:
    await days_pass(owed, 30)
    owed.kill_broker(4)
    await days_pass(owed, 8)
    assert entries(owed) == ["4,orders,0"]
    await days_pass(owed, 4)
    assert entries(owed) == []


async def test_the_time_goes_on_under_the_next_controllers(owed: Cluster) -> None:
    for _ in range(24):
        await days_pass(owed, 0.5)
        await owed.active.kill()
        await owed.serve()
    assert entries(owed) == ["4,orders,0"]


@pytest.mark.parametrize("ahead", ["of ZooKeeper", "of the controller"])
async def test_a_single_clock_that_is_wrong_ends_nothing(owed: Cluster, ahead: str) -> None:
    def wrong() -> int:
        return true_ms() + 1000 * DAY_MS

    true_ms = owed.clock.now_ms
    if ahead == "of ZooKeeper":
        owed.zk.tree.now_ms = wrong
    else:
        owed.clock.now_ms = wrong  # type: ignore[method-assign]  # a clock that was set wrongly
    await days_pass(owed, 5)
    await owed.active.kill()
    await owed.serve()
    assert entries(owed) == ["3,orders,0", "4,orders,0"]


async def test_nothing_is_forgotten_where_it_is_to_be_remembered_for_ever(owed: Cluster) -> None:
    owed.settings = ProcessSettings(removed_replicas_retention_days=0)
    await owed.active.kill()
    await owed.serve()
    await days_pass(owed, 100)
    assert entries(owed) == ["3,orders,0", "4,orders,0"]


async def test_entries_and_parent_that_a_person_removed_do_not_matter(owed: Cluster) -> None:
    for path in (*(f"{paths.REMOVED_REPLICAS}/{name}" for name in entries(owed)), paths.REMOVED_REPLICAS):
        owed.write(Delete(path=path))
    await days_pass(owed, 20)
    assert owed.active.terms == 1
    assert_sound(owed)


async def test_an_entry_says_the_same_after_it_was_written_anew(owed: Cluster) -> None:
    before = owed.data(f"{paths.REMOVED_REPLICAS}/4,orders,0")
    await days_pass(owed, 3)
    assert owed.data(f"{paths.REMOVED_REPLICAS}/4,orders,0") == before
    topic_id = owed.topic("orders").topic_id
    assert topic_id is not None
    assert before == codecs.encode_removed_replica(topic_id)
