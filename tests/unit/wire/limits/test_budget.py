"""The memory that all open requests share: the requests that wait, and nothing is lost if one gives up."""

import asyncio

import pytest

from controller_core.wire.limits.budget import SMALL_BYTES, ByteBudget

BYTES = 10 * SMALL_BYTES


class Holder:
    """Takes a share, in a task of its own, until it is asked to give it back."""

    def __init__(self, budget: ByteBudget, amount: int) -> None:
        self.has_it = False
        self.done = asyncio.Event()
        self.task = asyncio.create_task(self._hold(budget, amount))

    async def _hold(self, budget: ByteBudget, amount: int) -> None:
        async with budget.share(amount):
            self.has_it = True
            await self.done.wait()

    async def give_back(self) -> None:
        self.done.set()
        await self.task


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_finds_too_little_left_waits_in_the_order_of_arrival() -> None:
    budget = ByteBudget(BYTES, most_requests=100)
    first, second, third = (Holder(budget, amount) for amount in (BYTES - SMALL_BYTES, BYTES // 2, SMALL_BYTES + 1))
    await turns()
    assert (first.has_it, second.has_it, third.has_it) == (True, False, False), "the third may not pass the second"
    await first.give_back()
    await turns()
    assert (second.has_it, third.has_it) == (True, True)
    await second.give_back()
    await third.give_back()


async def test_one_that_is_larger_than_all_of_it_has_it_alone() -> None:
    budget = ByteBudget(BYTES, most_requests=100)
    large, other = Holder(budget, 100 * BYTES), Holder(budget, SMALL_BYTES + 1)
    await turns()
    assert (large.has_it, other.has_it) == (True, False)
    await large.give_back()
    await turns()
    assert other.has_it
    await other.give_back()


async def test_a_request_gives_back_a_part_of_its_share_once_and_the_rest_at_its_end() -> None:
    budget = ByteBudget(BYTES, most_requests=100)
    for left in (SMALL_BYTES, 2 * SMALL_BYTES, 2 * BYTES):
        async with budget.share(BYTES) as shrink:
            other = Holder(budget, BYTES - 2 * SMALL_BYTES)
            await turns()
            assert not other.has_it
            shrink(left)
            shrink(BYTES)
            await turns()
            assert other.has_it is (left < BYTES)
        await turns()
        assert other.has_it
        await other.give_back()


async def test_small_requests_never_wait() -> None:
    budget = ByteBudget(BYTES, most_requests=100)
    large, small = Holder(budget, BYTES), Holder(budget, SMALL_BYTES)
    await turns()
    assert (large.has_it, small.has_it) == (True, True)
    await small.give_back()
    await large.give_back()


async def test_one_that_gives_up_waiting_leaves_its_place_and_takes_nothing_with_it() -> None:
    budget = ByteBudget(BYTES, most_requests=100)
    first, second, third = (Holder(budget, BYTES) for _ in range(3))
    await turns()
    second.task.cancel()
    await turns()
    await first.give_back()
    await turns()
    assert third.has_it
    await third.give_back()
    last = Holder(budget, BYTES)
    await turns()
    assert last.has_it
    await last.give_back()


@pytest.mark.parametrize("moment", range(6))
async def test_one_that_is_cancelled_about_the_moment_of_its_turn_takes_nothing_with_it(moment: int) -> None:
    budget = ByteBudget(BYTES, most_requests=100)
    first, second, third = (Holder(budget, BYTES) for _ in range(3))
    await turns()
    first.done.set()
    for _ in range(moment):
        await asyncio.sleep(0)
    second.task.cancel()
    await turns()
    assert third.has_it
    await third.give_back()


async def test_so_many_requests_have_a_share_however_small_they_are() -> None:
    budget = ByteBudget(BYTES, most_requests=2)
    first, second, third, fourth = (Holder(budget, 1) for _ in range(4))
    await turns()
    assert (first.has_it, second.has_it, third.has_it) == (True, True, False)
    third.task.cancel()
    await first.give_back()
    await turns()
    assert fourth.has_it
    await asyncio.gather(second.give_back(), fourth.give_back())
