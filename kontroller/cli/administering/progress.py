"""How far a move is, on one line of a terminal: partitions that are done, bytes left, how fast, and how long yet."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from controller_core.supervision import supervised
from kontroller.client.errors import AdminError

if TYPE_CHECKING:
    from kontroller.client.admin_client import AdminClient

_EVERY_S: Final = 2.0
_REFRESHES: Final = 2
"""A second."""


@asynccontextmanager
async def shown_progress(admin: "AdminClient", reassignment: str) -> AsyncIterator[None]:
    """Shows it for as long as the block takes, on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    columns = (TextColumn("moving"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=_REFRESHES) as shown:
        work = supervised(lambda: _keep_showing(admin, reassignment, shown), name="progress of a move")
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
        except AdminError:  # the wait itself says what is wrong, where it stays so
            shown.update(task, description="partitions; the cluster does not answer at present")
        else:
            description = speed.in_words(found.bytes_left, time.monotonic())
            shown.update(task, completed=found.done, total=found.total, description=description)
        await asyncio.sleep(_EVERY_S)


class Speed:
    """How fast something becomes less."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def in_words(self, bytes_left: int | None, now_s: float) -> str:
        """What is left at a moment, and by the time since the first one, how fast it goes and how long yet."""
        if bytes_left is None:
            return "partitions; how many bytes are left is not known"
        if self._first is None or bytes_left > self._first[0]:
            self._first = (bytes_left, now_s)
        before, since_s = self._first
        left = f"partitions, {decimal(bytes_left)} left"
        if now_s <= since_s or bytes_left >= before:
            return left
        rate = (before - bytes_left) / (now_s - since_s)
        return f"{left}, {decimal(round(rate))}/s, {_duration(bytes_left / rate)} yet"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
