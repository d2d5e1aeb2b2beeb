"""Shows the progress of slow work: a spinner in the main thread of a terminal, otherwise plain lines with the elapsed
time.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

_LINE_INTERVAL_S = 20.0

_console = Console(stderr=True, highlight=False)


class Step:
    """Slow work in progress; `detail` is its progress, such as `812 of 2151 packages`."""

    def __init__(self, description: str) -> None:
        self.description = description
        self.detail = ""

    def __str__(self) -> str:
        return f"{self.description} ({self.detail})" if self.detail else self.description


def say(text: str) -> None:
    """Print a line between those of the steps."""
    _console.print(text, soft_wrap=True, markup=False)


@contextmanager
def step(description: str) -> Iterator[Step]:
    """Show `description` and the elapsed time while the block runs, and its outcome at the end."""
    shown = Step(description)
    started = time.monotonic()
    outcome = "failed"
    try:
        with _spinner(shown) if _has_terminal() else _print_elapsed(shown):
            yield shown
        outcome = "done"
    except KeyboardInterrupt:
        outcome = "interrupted"
        raise
    finally:
        say(f"{description}: {outcome} ({time.monotonic() - started:.0f} s)")


@contextmanager
def stages(description: str, total: int) -> Iterator[Callable[[], None]]:
    """Show which share of `total` stages is done, up to 100 %. Call the yielded function at the end of each stage.

    The steps of a stage are shown below the share.
    """
    with _bar(description, total) if _has_terminal() else _print_share(description, total) as advance:
        yield advance


@contextmanager
def _bar(description: str, total: int) -> Iterator[Callable[[], None]]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console) as shown:
        task = shown.add_task(description, total=total)
        yield lambda: shown.advance(task)


@contextmanager
def _print_share(description: str, total: int) -> Iterator[Callable[[], None]]:
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        say(f"{description}: {100 * done // total} %")

    yield advance


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
def _print_elapsed(step: Step) -> Iterator[None]:
    started = time.monotonic()
    say(f"{step} ...")
    with every(_LINE_INTERVAL_S, lambda: say(f"{step}: {time.monotonic() - started:.0f} s")):
        yield


@contextmanager
def every(interval_s: float, report: Callable[[], object]) -> Iterator[None]:
    """Call `report` repeatedly while the block runs."""
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
