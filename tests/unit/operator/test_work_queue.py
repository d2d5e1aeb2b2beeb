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
