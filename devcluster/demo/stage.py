"""The output of the demo: steps, tables of a moving partition, and expectations that are counted.

A failed expectation is shown at once, remembered, and makes the demo fail at its end. The demo goes on all the same,
because the rest is still worth seeing.
"""

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from devcluster.running.patience import SILENCE_S
from devcluster.running.processes import ConditionTimeoutError, wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The brokers of a partition, in ascending order."""

    assigned: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The place of a partition, and the time of the observation, in seconds since the table began."""

    place: Place
    seen_s: float


@dataclass(slots=True)
class Stage:
    """The demo's output, and its failed expectations."""

    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True, width=_width()))
    failures: list[str] = field(default_factory=list)
    _started_s: float = field(default_factory=time.monotonic)
    _step: int = 0

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._started_s

    def step(self, title: str, why: str) -> None:
        """Announce the next step and its purpose."""
        self._step += 1
        elapsed = f"[dim]{self.elapsed_s:5.1f} s[/]"
        self.console.print(f"\n{elapsed}  [bold cyan]{self._step}. {title}[/]")
        self.console.print(f"         [dim]{why}[/]")

    def say(self, text: str) -> None:
        self.console.print(f"         {text}")

    def show(self, command: str, output: str) -> None:
        """Show a command as the user would type it, and its output."""
        self.console.print(f"         [green]$ {command}[/]")
        for line in output.rstrip().splitlines():
            self.console.print(f"         {line}", markup=False)

    def expect(self, is_so: bool, what: str) -> None:
        """Record an expectation that can be checked now."""
        if is_so:
            self.console.print(f"         [green]✓[/] {what}")
        else:
            self.failures.append(what)
            self.console.print(f"         [bold red]✗ {what}[/]")

    def await_(self, condition: Callable[[], bool], what: str, *, silence_s: float = SILENCE_S) -> None:
        """Record an expectation that takes a while to become true."""
        began_s = time.monotonic()
        try:
            wait_until(condition, what, silence_s=silence_s)
        except ConditionTimeoutError:
            self.expect(False, f"{what} (waited {time.monotonic() - began_s:.0f} s)")
        else:
            self.expect(True, f"{what} [dim]({time.monotonic() - began_s:.1f} s)[/]")

    @contextmanager
    def watch(self, look: Callable[[], Place]) -> Iterator[list[Row]]:
        """Record each different state of a partition until the block ends, polling as fast as possible."""
        rows: list[Row] = [Row(place=look(), seen_s=0)]
        began_s = time.monotonic()
        finished = threading.Event()

        def watch() -> None:
            while not finished.is_set():
                row = Row(place=look(), seen_s=time.monotonic() - began_s)
                if row.place != rows[-1].place:
                    rows.append(row)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield rows
        finally:
            finished.set()
            watcher.join()

    def show_rows(
        self,
        rows: list[Row],
        finished: Callable[[], bool],
        explain: Callable[[Place, Place | None], str],
        *,
        deadline_s: float = 60,
    ) -> None:
        """Show the rows as they come, until `finished`."""
        began_s = time.monotonic()
        with Live(_table(rows, explain), console=self.console, auto_refresh=False) as live:
            while not finished() and time.monotonic() - began_s < deadline_s:
                live.update(_table(rows, explain), refresh=True)
            live.update(_table(rows, explain), refresh=True)
        if not self.console.is_terminal:
            self.console.print()

    def close(self, summary: Sequence[str]) -> int:
        """Show the verdict; returns the exit code."""
        lines = [*summary, f"It took {self.elapsed_s:.0f} s."]
        if self.failures:
            lines += ["", "[bold red]Not as it should be:[/]", *(f"  - {failure}" for failure in self.failures)]
        style = "red" if self.failures else "green"
        self.console.print()
        self.console.print(
            Panel("\n".join(lines), title="failed" if self.failures else "all as it should be", style=style)
        )
        return 1 if self.failures else 0


def _width() -> int:
    """Return the terminal's width; without a terminal, a width for kubectl's output."""
    return shutil.get_terminal_size((130, 24)).columns


def _table(seen: list[Row], explain: Callable[[Place, Place | None], str]) -> Table:
    rows = list(seen)
    table = Table("after", "AR", "leader", "ISR", "", box=None, padding=(0, 2), header_style="bold")
    for before, row in zip([None, *rows], rows, strict=False):
        place = row.place
        assigned, isr = (",".join(str(broker) for broker in brokers) for brokers in (place.assigned, place.isr))
        table.add_row(
            f"{row.seen_s:.2f} s",
            f"{{{assigned}}}",
            str(place.leader),
            f"{{{isr}}}",
            f"[dim]{explain(place, before.place if before else None)}[/]",
        )
    return table
