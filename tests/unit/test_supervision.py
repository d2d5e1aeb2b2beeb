"""Background work: errors are passed to a handler, and work that must go on goes on."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest
from structlog.testing import capture_logs

from controller_core.supervision import FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS, start_supervised, start_task
from simulation.virtual_time import VirtualClock, wait_until_quiet
from tests.shipped import read_sources

BEGINS_WORK: Final = re.compile(r"\b(create_task|ensure_future|Thread)\(")
AWAITED_WHERE_IT_BEGINS: Final = {
    "controller_core/client/cluster.py",
    "kontroller/history/watching/threads.py",
    "controller_core/controller/loop/side_by_side.py",
    "controller_core/controller/term/groups.py",
    "controller_core/controller/znodes/partition_states.py",
    "controller_core/controller/role/passing_on.py",
    "controller_core/controller/role/reach.py",
    "controller_core/process/signals.py",
    "controller_core/wire/listener/client_connection.py",
    "operator/controller_operator/reconciling/measuring/asking.py",
}
SUPERVISED_ITSELF: Final = {
    "controller_core/audit/trail.py": "its thread catches all that a record can raise, and goes on with the next",
    "controller_core/client/admin_client.py": "its thread has an event loop alone, and what is done there is the asker's",
    "controller_core/journal/writer.py": "its thread catches all that a batch can raise, and goes on with the next",
    "controller_core/supervision.py": "here it is done",
    "controller_core/names.py": "whoever asks for the name is told, also of an error",
    "controller_core/wire/listener/listener.py": "looks at each connection that has ended",
    "kontroller/history/progress.py": "a daemon thread that only draws the bar, and ends with the work",
    "operator/controller_operator/development.py": "the end of the work ends kopf, which hosts it, with its error",
    "operator/controller_operator/loop_thread.py": "its thread has a loop alone, and what is done there is the asker's",
    "operator/controller_operator/watching/kopf_watcher.py": "`keep` raises what ended kopf, and ends the process",
    "replica_broker/process/own_controller.py": "the broker's process awaits it beside all else, and ends with it",
}


def test_nobody_else_begins_work_that_could_end_unnoticed() -> None:
    found = {path for path, source in read_sources() if BEGINS_WORK.search(source)}
    assert found == AWAITED_WHERE_IT_BEGINS | set(SUPERVISED_ITSELF)


class Work:
    """Fails a number of times, each time after a while, and then goes on for ever or ends."""

    def __init__(self, clock: VirtualClock, failures: int, *, fails_after_ms: float = 0, ends: bool = False) -> None:
        self.begun_ms: list[float] = []
        self._clock = clock
        self._failures = failures
        self._fails_after_ms = fails_after_ms
        self._ends = ends

    async def do(self) -> None:
        self.begun_ms.append(self._clock.monotonic_ms())
        if len(self.begun_ms) <= self._failures:
            await self._clock.sleep_ms(self._fails_after_ms)
            raise ValueError(f"failure {len(self.begun_ms)}")
        if not self._ends:
            await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def supervise(
    clock: VirtualClock, work: Work, on_error: Callable[[Exception], object] | None = None
) -> AsyncIterator["asyncio.Task[None]"]:
    task = start_supervised(
        work.do, name="work", on_error=on_error, sleep_ms=clock.sleep_ms, monotonic_ms=clock.monotonic_ms
    )
    await wait_until_quiet()
    while clock.pass_to_next(10_000_000):
        await wait_until_quiet()
    yield task
    task.cancel()
    await asyncio.wait([task])


async def test_work_that_fails_is_begun_anew_and_each_failure_is_logged_and_passed_on() -> None:
    clock, reported = VirtualClock(), list[Exception]()
    work = Work(clock, failures=2)
    with capture_logs() as logs:
        async with supervise(clock, work, reported.append) as task:
            assert not task.done()
    assert len(work.begun_ms) == 3
    assert [str(error) for error in reported] == ["failure 1", "failure 2"]
    assert [(entry["work"], entry["exc_info"]) for entry in logs] == [("work", error) for error in reported]


async def test_the_pauses_between_failures_double_up_to_a_minute() -> None:
    clock = VirtualClock()
    work = Work(clock, failures=15)
    async with supervise(clock, work):
        pauses = [later - earlier for earlier, later in zip(work.begun_ms, work.begun_ms[1:], strict=False)]
    assert pauses[:3] == [FIRST_BACKOFF_MS, 2 * FIRST_BACKOFF_MS, 4 * FIRST_BACKOFF_MS]
    assert pauses[-1] == LONGEST_BACKOFF_MS


async def test_work_that_went_well_for_long_is_begun_anew_at_once() -> None:
    clock = VirtualClock()
    work = Work(clock, failures=3, fails_after_ms=600_000)
    async with supervise(clock, work):
        pauses = [later - earlier for earlier, later in zip(work.begun_ms, work.begun_ms[1:], strict=False)]
    assert pauses == [600_000 + FIRST_BACKOFF_MS] * 3


async def test_work_that_returns_is_over() -> None:
    clock = VirtualClock()
    async with supervise(clock, Work(clock, failures=1, ends=True)) as task:
        assert task.done()


async def test_work_that_is_cancelled_is_over_and_no_error() -> None:
    clock, reported = VirtualClock(), list[Exception]()
    with capture_logs() as logs:
        async with supervise(clock, Work(clock, failures=0), reported.append) as task:
            pass
    assert (task.cancelled(), reported, logs) == (True, [], [])


async def test_the_error_of_work_that_is_done_once_is_logged_and_passed_on() -> None:
    async def fail() -> None:
        raise ValueError("once")

    reported: list[Exception] = []
    with capture_logs() as logs:
        task = start_task(fail(), name="alarm", on_error=reported.append)
        await asyncio.wait([task])
        await wait_until_quiet()
    assert [str(error) for error in reported] == ["once"]
    assert [(entry["event"], entry["work"]) for entry in logs] == [("background work failed unexpectedly", "alarm")]


async def test_what_is_cancelled_before_it_began_is_never_begun() -> None:
    async def fail() -> None:
        pytest.fail("begun")

    task = start_task(fail(), name="alarm")
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
