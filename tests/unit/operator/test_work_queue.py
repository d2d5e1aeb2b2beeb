"""Every object is looked at, never by two workers at once, and no more often than needed."""

import asyncio

from controller_operator.kubernetes.object_store import Key
from controller_operator.reconciling.work_queue import WorkQueue

A, B = Key("KafkaTopic", "shop", "a"), Key("KafkaTopic", "shop", "b")


async def test_a_key_that_is_added_often_is_handed_out_once() -> None:
    queue = WorkQueue()
    queue.add([A, B, A, A])
    assert [await queue.take(), await queue.take()] == [A, B]
    assert len(queue) == 0


async def test_a_key_that_changes_while_it_is_worked_on_is_handed_out_again_afterwards() -> None:
    queue = WorkQueue()
    queue.add([A])
    taken = await queue.take()
    queue.add([A])
    assert len(queue) == 0
    queue.release(taken)
    assert await queue.take() == A
    queue.release(A)
    assert len(queue) == 0


async def test_of_several_times_the_earliest_counts() -> None:
    queue = WorkQueue()
    queue.add_later(A, 3600)
    queue.add_later(A, 0)
    queue.add_later(A, 3600)
    async with asyncio.timeout(10):
        assert await queue.take() == A
    queue.close()


async def test_a_waiting_worker_is_woken() -> None:
    queue = WorkQueue()
    worker = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add([B])
    assert await worker == B


async def test_what_changes_goes_before_what_is_only_looked_at_as_well() -> None:
    queue = WorkQueue()
    others = [Key("KafkaTopic", "shop", f"t{number}") for number in range(100)]
    queue.add_unhurried([*others, A])
    queue.add([A, B])
    assert {await queue.take(), await queue.take()} == {A, B}
    assert len(queue) == 100


async def test_what_nobody_changes_is_looked_at_all_the_same_while_others_change() -> None:
    queue = WorkQueue()
    queue.add_unhurried([A])
    queue.add(Key("KafkaTopic", "shop", f"t{number}") for number in range(100))
    assert A in [await queue.take() for _ in range(20)]


async def test_a_key_waits_in_one_lane_only() -> None:
    queue = WorkQueue()
    queue.add([A])
    queue.add_unhurried([A, B])
    queue.add([B])
    assert [await queue.take(), await queue.take()] == [A, B]
    assert len(queue) == 0


async def test_a_waiting_worker_is_woken_by_what_is_not_urgent_too() -> None:
    queue = WorkQueue()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        taken = group.create_task(queue.take())
        await asyncio.sleep(0)
        queue.add_unhurried([A])
    assert taken.result() == A
