"""Statistics of the soak: performed and skipped operations, and records in the controllers' logs."""

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from devcluster.soak.operations import Operation, kind_of

_UNEXPECTED: Final = "unexpected error"


@dataclass(slots=True)
class Tally:
    """Counts of operations by kind; used by several threads."""

    done: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record_done(self, operation: Operation) -> None:
        with self._lock:
            self.done[kind_of(operation)] += 1

    def record_skipped(self, operation: Operation) -> None:
        with self._lock:
            self.skipped[kind_of(operation)] += 1

    def table(self) -> Table:
        table = Table("operation", "done", "skipped", box=None, padding=(0, 2), header_style="bold")
        for kind in sorted(self.done.keys() | self.skipped.keys()):
            table.add_row(kind, str(self.done[kind]), str(self.skipped[kind] or ""))
        table.add_row("all", str(self.done.total()), str(self.skipped.total()), style="bold")
        return table


@dataclass(slots=True, kw_only=True)
class ControllerRecord:
    """The records in the logs of our controllers."""

    terms: int = 0
    elections: int = 0
    """Changes of a partition's leader to another one."""
    unexpected: list[str] = field(default_factory=list)
    """Lines about unexpected errors of a controller, each with its log."""


def read_controller_logs(paths: Iterable[Path]) -> ControllerRecord:
    """Read all logs of our controllers."""
    record = ControllerRecord()
    for path in paths:
        for line in path.read_text(errors="replace").splitlines():
            if _UNEXPECTED in line or line.startswith("Traceback"):
                record.unexpected.append(f"{path}: {line[:400]}")
        for entry in _entries(path):
            record.terms += entry.get("event") == "became the controller"
            if entry.get("event") == "leadership" and _is_election(entry):
                record.elections += len(entry["partitions"])
    return record


def _entries(path: Path) -> Iterator[Mapping[str, Any]]:
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except ValueError:
                continue  # A killed controller leaves half a line.


def _is_election(entry: Mapping[str, Any]) -> bool:
    before, after = (str(entry.get(name) or "").partition("/")[0] for name in ("before", "after"))
    return after not in (before, "-1")
