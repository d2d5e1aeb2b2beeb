"""An operator that sees everything late, in part, or not at all for a while comes to the same end.

While a scenario runs, watches of the API server are cut or must list again, their events come late and without those in
between, ZooKeeper's watches fire late, and ZooKeeper is out of reach. Afterwards the state is as without disturbances,
and neither this operator nor the next one has anything left to write.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_operator.kubernetes.object_api import ApiUnavailable
from simulation.fast_loop import run_fast
from tests.unit.examples import examples
from tests.unit.operator.crashes import test_crashes
from tests.unit.operator.crashes.operated import End, differences, run_beside
from tests.unit.operator.crashes.test_crashes import (
    SCENARIOS,
    Scenario,
    run_to_the_end,
)
from tests.unit.operator.crashes.world import World, installation

TIMED: Final = (test_crashes.partitions_move_in_windows, test_crashes.a_large_partition_moves)
"""Say when something has to be seen."""
RACED: Final = (test_crashes.a_move_is_taken_back, test_crashes.a_move_with_a_limit_is_taken_back)
"""A move that is seen late to be taken back may have come to its end."""
LATE_S: Final = (0.2, 3.0)
Disturbance = tuple[float, str]
DISTURBANCES: Final = st.lists(
    st.tuples(
        st.sampled_from((0.0, 0.05, 0.3, 2.0, 9.0)),
        st.sampled_from(("late", "very late", "timely", "cut", "forgotten", "out of reach", "within reach")),
    ),
    min_size=1,
    max_size=10,
)


async def disturb(world: World, disturbances: Sequence[Disturbance]) -> None:
    for after_s, what in disturbances:
        await asyncio.sleep(after_s)
        match what:
            case "late" | "very late":
                world.late_s = LATE_S[what == "very late"]
            case "timely":
                world.late_s = 0.0
            case "cut":
                await world.api.interrupt(ApiUnavailable("the connection was lost"))
            case "forgotten":
                await world.api.restart()
            case "out of reach":
                world.take_zookeeper_away()
            case "within reach":
                world.bring_zookeeper_back()
    await calm(world)


async def calm(world: World) -> None:
    world.late_s = 0.0
    world.bring_zookeeper_back()


async def run_disturbed(scenario: Scenario, disturbances: Sequence[Disturbance]) -> End:
    """Return the state at the end. No operator has anything left to write."""
    async with installation() as world:
        async with run_beside(world.operate()):
            async with run_beside(disturb(world, disturbances)):
                await scenario(world)
            await calm(world)
            await world.wait_until_quiet()
        end, written = world.end(), list(world.writes)
        async with run_beside(world.operate()):
            await world.wait_until_quiet()
        assert world.writes == written
        return end


@pytest.mark.parametrize(
    "scenario", [each for each in SCENARIOS if each not in TIMED], ids=lambda scenario: scenario.__name__
)
def test_whatever_is_seen_late_or_not_at_all_the_end_is_the_same(scenario: Scenario) -> None:
    end, _ = run_fast(run_to_the_end(scenario))

    @examples(6)
    @given(disturbances=DISTURBANCES)
    def whatever_happens(disturbances: Sequence[Disturbance]) -> None:
        after = run_fast(run_disturbed(scenario, disturbances))
        assert scenario in RACED or differences(after, end) == {}

    whatever_happens()
