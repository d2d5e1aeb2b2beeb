"""An operator wakes when a window opens, and begins nothing after it has closed, with any error of its clock.

The whole installation runs in one process, in the loop's time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from controller_core.model.ids import PartitionId
from controller_operator.kubernetes.object_store import Key, Raw
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import run_beside
from tests.unit.operator.crashes.world import World, installation

RESYNC = timedelta(minutes=10)
"""The longest time after which an operator looks at every object."""
PAUSED = {"annotations": {"kontroller.dev/pause": "true"}}
TARGET = {"topic": "orders", "partition": 0, "replicas": [4, 5]}


def daily(opens_at: datetime, minutes: int) -> Raw:
    return {"windows": [{"schedule": f"{opens_at:%M %H} * * *", "durationMinutes": minutes}]}


def round_to_minutes(world: World, minutes: int) -> datetime:
    """A full minute, so long from now or up to a minute less."""
    return world.now().replace(second=0, microsecond=0) + timedelta(minutes=minutes)


async def a_move(world: World, schedule: Raw, **metadata: Any) -> Key:
    return await world.apply(
        "PartitionReassignment", "move", {"partitions": [TARGET], "schedule": schedule}, **metadata
    )


def has_begun(world: World) -> bool:
    return world.cluster.topic("orders").partitions[PartitionId(0)].target == (4, 5)


async def begins_at(world: World, within: timedelta) -> datetime:
    """Return the time at which the partition begins to move."""
    async with asyncio.timeout(within.total_seconds()):
        while not has_begun(world):  # noqa: ASYNC110 - time is the loop's own
            await asyncio.sleep(1)
    return world.now()


def story(told: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with installation() as world, run_beside(world.operate()):
            world.cluster.create_topic("orders", [1, 2])
            await told(world)

    run_fast(run())


def test_a_move_begins_when_the_window_opens_after_hours_in_which_nothing_is_written() -> None:
    async def play(world: World) -> None:
        opens_at = round_to_minutes(world, 120)
        key = await a_move(world, daily(opens_at, 60))
        await world.wait_until(lambda: world.find_reason(key) == "OutsideWindow")
        await asyncio.sleep(10)
        written = [each for each in world.writes if str(key) in each]
        await asyncio.sleep(1.5 * 3600)
        assert [each for each in world.writes if str(key) in each] == written
        begun_at = await begins_at(world, timedelta(hours=2))
        assert timedelta() <= begun_at - opens_at <= timedelta(seconds=3), "it waited for a resync"
        await world.wait_until(lambda: world.status(key)["phase"] == "Completed")

    story(play)


def test_a_status_that_is_written_slowly_does_not_begin_a_move_behind_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(world: World) -> None:
        opens_at = round_to_minutes(world, 2)
        patch = world.api.patch_status

        async def slowly(raw: Raw, status: Raw) -> Raw:
            if raw["kind"] == "PartitionReassignment" and opens_at <= world.now():
                await asyncio.sleep(90)
            return await patch(raw, status)

        monkeypatch.setattr(world.api, "patch_status", slowly)
        key = await a_move(world, {"windows": [{"schedule": f"{opens_at:%M} * * * *", "durationMinutes": 1}]})
        await world.wait_until(lambda: world.status(key).get("startTime"))
        assert world.now() > opens_at + timedelta(minutes=1)
        await world.wait_until(lambda: world.find_reason(key) == "OutsideWindow")
        assert not has_begun(world)
        monkeypatch.undo()
        following = opens_at + timedelta(hours=1)
        assert following <= await begins_at(world, timedelta(hours=2)) < following + timedelta(minutes=1)

    story(play)


@pytest.mark.parametrize("ahead", [timedelta(minutes=10), timedelta(minutes=-10), timedelta(days=365)])
def test_a_clock_that_is_wrong_begins_a_move_by_that_much_too_early_or_too_late(ahead: timedelta) -> None:
    async def play(world: World) -> None:
        world.clock_error = ahead
        opens_at = round_to_minutes(world, 60)
        key = await a_move(world, daily(opens_at, 30))
        await world.wait_until(lambda: world.find_reason(key) == "OutsideWindow")
        error = ahead % timedelta(days=1)
        begun_at = await begins_at(world, timedelta(days=1))
        late = (begun_at - opens_at + error) % timedelta(days=1)
        assert late <= timedelta(seconds=3)

    story(play)


@pytest.mark.parametrize("ahead", [timedelta(hours=3), timedelta(hours=-30), timedelta(days=365, hours=3)])
def test_a_clock_that_is_set_right_leaves_nothing_of_its_error(ahead: timedelta) -> None:
    async def play(world: World) -> None:
        world.clock_error = ahead
        opens_at = round_to_minutes(world, 60)
        key = await a_move(world, daily(opens_at, 30))
        await world.wait_until(lambda: world.find_reason(key) == "OutsideWindow")
        await asyncio.sleep(60)
        world.clock_error = timedelta()
        begun_at = await begins_at(world, timedelta(hours=3))
        assert opens_at <= begun_at <= opens_at + RESYNC + timedelta(seconds=3)

    story(play)


def test_a_paused_object_says_what_would_be_done_also_when_the_window_opens_and_closes() -> None:
    async def play(world: World) -> None:
        opens_at = round_to_minutes(world, 3)
        key = await a_move(world, daily(opens_at, 2), **PAUSED)
        await world.wait_until(lambda: world.status(key).get("nextSteps"))
        (words,) = world.status(key)["nextSteps"]
        assert words.startswith("wait, OutsideWindow: ")
        assert f"{opens_at:%Y-%m-%dT%H:%M:00Z}" in words
        await world.wait_until(lambda: world.status(key)["nextSteps"] == ["move 1 partition: orders-0"])
        assert timedelta() <= world.now() - opens_at <= timedelta(seconds=3)
        await world.wait_until(lambda: world.status(key)["nextSteps"][0].startswith("wait, OutsideWindow"))
        assert timedelta(minutes=2) <= world.now() - opens_at <= timedelta(minutes=2, seconds=3)
        assert not has_begun(world)

    story(play)
