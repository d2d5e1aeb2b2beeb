"""Fixtures for tests of processes."""

import signal
from collections.abc import Iterator
from types import FrameType

import pytest


class Interrupted(Exception):
    """Stands for the KeyboardInterrupt of Ctrl-C."""


@pytest.fixture
def interruptible() -> Iterator[type[Exception]]:
    """SIGUSR1 interrupts the main thread with this exception."""

    def interrupt(_signum: int, _frame: FrameType | None) -> None:
        raise Interrupted

    previous = signal.signal(signal.SIGUSR1, interrupt)
    yield Interrupted
    signal.signal(signal.SIGUSR1, previous)
