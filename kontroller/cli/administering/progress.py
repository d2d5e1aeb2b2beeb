"""Progress of a move on one line of a terminal: finished partitions, bytes left, speed, and time left."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from controller_core.supervision import start_supervised
from kontroller import AdminError
from kontroller.screen import format_duration

if TYPE_CHECKING:
    from kontroller import AdminClient

_EVERY_S: Final = 2.0
_REFRESHES: Final = 2
"""Per second."""


@asynccontextmanager
async def display_progress(admin: "AdminClient", reassignment: str) -> AsyncIterator[None]:
    """Show the progress on standard error while the block runs, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    columns = (TextColumn("moving"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=_REFRESHES) as shown:
        work = start_supervised(lambda: _keep_showing(admin, reassignment, shown), name="progress of a move")
        try:
            yield
        finally:
            work.cancel()


async def _keep_showing(admin: "AdminClient", reassignment: str, shown: Progress) -> None:
    task = shown.add_task("partitions", total=None)
    speed = Speed()
    while True:
        try:
            found = await admin.progress_of_reassignment(reassignment)
        except AdminError:  # if the error lasts, the wait itself reports it
            shown.update(task, description="partitions; the cluster does not answer at present")
        else:
            description = speed.describe(found.bytes_left, time.monotonic())
            shown.update(task, completed=found.done, total=found.total, description=description)
        await asyncio.sleep(_EVERY_S)


class Speed:
    """The speed at which a number of bytes falls."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def describe(self, bytes_left: int | None, now_s: float) -> str:
        """Return the bytes left, and since the first call also the speed and the time left."""
        if bytes_left is None:
            return "partitions; bytes left unknown"
        if self._first is None or bytes_left > self._first[0]:
            self._first = (bytes_left, now_s)
        before, since_s = self._first
        left = f"partitions, {decimal(bytes_left)} left"
        if now_s <= since_s or bytes_left >= before:
            return left
        rate = (before - bytes_left) / (now_s - since_s)
        return f"{left}, {decimal(round(rate))}/s, {format_duration(bytes_left / rate)} left"
