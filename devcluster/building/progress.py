"""Says what is going on while something slow runs: a spinner where a terminal is the main thread's own, plain lines
with the elapsed time elsewhere.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

_LINE_INTERVAL_S = 20.0

_console = Console(stderr=True, highlight=False)


class Step:
    """Something slow that runs; `detail` says how far it is, such as `812 of 2151 packages`."""

    def __init__(self, description: str) -> None:
        self.description = description
        self.detail = ""

    def __str__(self) -> str:
        return f"{self.description} ({self.detail})" if self.detail else self.description


def say(text: str) -> None:
    """A line among those of the steps."""
    _console.print(text, soft_wrap=True, markup=False)


@contextmanager
def step(description: str) -> Iterator[Step]:
    """Shows `description` and the time it takes while the block runs, and whether it ended well."""
    shown = Step(description)
    started = time.monotonic()
    outcome = "failed"
    try:
        with _spinner(shown) if _has_terminal() else _elapsed_lines(shown):
            yield shown
        outcome = "done"
    finally:
        say(f"{description}: {outcome} ({time.monotonic() - started:.0f} s)")


def _has_terminal() -> bool:
    return _console.is_terminal and threading.current_thread() is threading.main_thread()


@contextmanager
def _spinner(step: Step) -> Iterator[None]:
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=_console, transient=True) as shown:
        task = shown.add_task(str(step), total=None)
        with every(0.5, lambda: shown.update(task, description=str(step))):
            yield


@contextmanager
def _elapsed_lines(step: Step) -> Iterator[None]:
    started = time.monotonic()
    say(f"{step} ...")
    with every(_LINE_INTERVAL_S, lambda: say(f"{step}: {time.monotonic() - started:.0f} s")):
        yield


@contextmanager
def every(interval_s: float, report: Callable[[], object]) -> Iterator[None]:
    """Calls `report` again and again while the block runs."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(interval_s):
            report()

    reporter = threading.Thread(target=repeat, daemon=True, name="progress")
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()
