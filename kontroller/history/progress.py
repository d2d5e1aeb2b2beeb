"""Progress of a long job: a bar of Spark's tasks on a terminal, otherwise a line when a step begins and one when it
ends."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

_LOOK_INTERVAL_S = 0.3


@dataclass(slots=True)
class Steps:
    """The steps of a job on `spark`, printed on standard error."""

    spark: SparkSession
    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))

    @contextmanager
    def step(self, description: str) -> Iterator[None]:
        """Show the step while the block runs, then its duration."""
        started = time.monotonic()
        outcome = "failed"
        try:
            with self._bar(description) if self.console.is_terminal else self._line(description):
                yield
            outcome = "done"
        finally:
            self.console.print(f"{description}: {outcome} ({time.monotonic() - started:.0f} s)", soft_wrap=True)

    @contextmanager
    def _line(self, description: str) -> Iterator[None]:
        self.console.print(f"{description} ...", soft_wrap=True)
        yield

    @contextmanager
    def _bar(self, description: str) -> Iterator[None]:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        ended = threading.Event()
        with Progress(*columns, console=self.console, transient=True) as shown:
            bar = shown.add_task(description, total=None)
            if not isinstance(self.spark, SparkSession):
                # DuckDB has no tasks to count.
                yield
                return
            watcher = threading.Thread(target=self._watch, args=(shown, bar, ended), daemon=True, name="progress")
            watcher.start()
            try:
                yield
            finally:
                ended.set()
                watcher.join()

    def _watch(self, shown: Progress, bar: TaskID, ended: threading.Event) -> None:
        tracker = self.spark.sparkContext.statusTracker()
        while not ended.wait(_LOOK_INTERVAL_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            if known:
                completed = sum(stage.numCompletedTasks for stage in known)
                shown.update(bar, completed=completed, total=sum(stage.numTasks for stage in known))


def estimate(input_bytes: int, bytes_per_second: float) -> str:
    """Return the size and the rough duration in words."""
    seconds = input_bytes / bytes_per_second
    size = f"{input_bytes / 1e6:,.1f} MB" if input_bytes < 1e9 else f"{input_bytes / 1e9:,.1f} GB"
    if seconds < 60:
        return f"{size}, less than a minute"
    return f"{size}, about {seconds / 60:,.0f} min" if seconds < 5400 else f"{size}, about {seconds / 3600:,.1f} h"
