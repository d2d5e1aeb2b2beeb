"""Says what is going on while something slow runs: a spinner on a terminal, plain lines with the elapsed time
elsewhere.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

_LINE_INTERVAL_S = 20.0

_console = Console(stderr=True, highlight=False)


@contextmanager
def step(description: str) -> Iterator[None]:
    """Shows `description` and the time it takes while the block runs, and whether it ended well."""
    started = time.monotonic()
    outcome = "failed"
    try:
        with _spinner(description) if _console.is_terminal else _elapsed_lines(description):
            yield
        outcome = "done"
    finally:
        _console.print(f"{description}: {outcome} ({time.monotonic() - started:.0f} s)", soft_wrap=True)


@contextmanager
def _spinner(description: str) -> Iterator[None]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=_console, transient=True) as shown:
        shown.add_task(description, total=None)
        yield


@contextmanager
def _elapsed_lines(description: str) -> Iterator[None]:
    started = time.monotonic()
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(_LINE_INTERVAL_S):
            _console.print(f"{description}: {time.monotonic() - started:.0f} s", soft_wrap=True)

    _console.print(f"{description} ...", soft_wrap=True)
    reporter = threading.Thread(target=report, daemon=True, name="progress")
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()
