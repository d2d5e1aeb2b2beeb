"""Work in slices: the event loop has its turn after so many items, or after few that are much work."""

from collections.abc import Callable

import pytest

from controller_core.controller.loop.slices import SLICE, slice_up, turn_after
from simulation.turns import turns_during


async def turns_of_the_loop(items: int, weight: Callable[[int], int] | None = None) -> int:
    """Count the turns of another task while the items are processed."""

    async def look() -> list[int]:
        return [item async for item in (slice_up(range(items)) if weight is None else slice_up(range(items), weight))]

    seen, turns = await turns_during(look())
    assert seen == list(range(items))
    return turns


@pytest.mark.parametrize(("items", "turns"), [(0, 0), (SLICE - 1, 0), (SLICE, 1), (10 * SLICE + 1, 10)])
async def test_others_have_their_turn_after_each_slice(items: int, turns: int) -> None:
    assert await turns_of_the_loop(items) == turns


async def test_an_item_that_is_much_work_is_a_slice_by_itself() -> None:
    assert await turns_of_the_loop(10, lambda _: SLICE) == 10
    assert await turns_of_the_loop(10, lambda item: SLICE if item == 3 else 1) == 1


@pytest.mark.parametrize(("items", "turns"), [(0, 0), (SLICE - 1, 0), (SLICE, 1), (100 * SLICE, 1)])
async def test_others_have_one_turn_after_a_step_that_was_a_slice_or_more(items: int, turns: int) -> None:
    assert await turns_during(turn_after(items)) == (None, turns)
