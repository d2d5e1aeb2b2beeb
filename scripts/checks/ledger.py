"""The ledger of passed tests: docs/ledger.json.

It has a row for each test file and for each rehearsal, such as `make demo`. `make nightly` runs the longest not run
first, and writes the ledger after each step, so a run can be stopped at any time and continued later.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

LEDGER: Final = Path("docs/ledger.json")
OLDEST_FOR_A_RELEASE: Final = timedelta(days=7)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The last runs of one file or rehearsal. Times are in UTC."""

    ran: datetime
    """The start of the last run, whatever its outcome."""
    passed: datetime | None = None
    """The start of the last run that passed; None if none has."""
    commit: str = ""
    """The commit of the last run that passed."""
    seconds: float = 0
    """The duration of the last run that passed."""
    quick_seconds: float = 0
    """The part of `seconds` for cases that are not marked `nightly`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All rows by name, and the last commit for which `.ci/run` passed."""

    rows: Mapping[str, Row]
    green: str = ""

    def replace_row(self, name: str, row: Row) -> "Ledger":
        """Return the ledger with one row added or replaced."""
        return replace(self, rows={**self.rows, name: row})

    def longest_not_run(self, names: Iterable[str]) -> list[str]:
        """Return the names in the order of their last run, those that never ran first."""
        return sorted(names, key=lambda name: (self._ran(name), name))

    def stale(self, names: Iterable[str], now: datetime) -> list[str]:
        """Return the names that have not passed within seven days. They block a release."""
        return [name for name in names if not self._is_fresh(name, now)]

    def _ran(self, name: str) -> datetime:
        row = self.rows.get(name)
        return _NEVER if row is None else row.ran

    def _is_fresh(self, name: str, now: datetime) -> bool:
        row = self.rows.get(name)
        return row is not None and row.passed is not None and now - row.passed <= OLDEST_FOR_A_RELEASE


def read_ledger(path: Path = LEDGER) -> Ledger:
    """Return the ledger; an empty one if there is no file."""
    if not path.exists():
        return Ledger(rows={})
    content = json.loads(path.read_text())
    return Ledger(green=content["green"], rows={name: _row(fields) for name, fields in content["rows"].items()})


def write_ledger(ledger: Ledger, path: Path = LEDGER) -> None:
    """Write the ledger, one line for each row, sorted by name."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(_fields(row))}" for name, row in sorted(ledger.rows.items()))
    written = path.with_suffix(".new")
    written.write_text(f'{{"green": {json.dumps(ledger.green)}, "rows": {{\n{rows}\n}}}}\n')
    written.replace(path)


def _row(fields: Mapping[str, str | float]) -> Row:
    passed = fields.get("passed")
    return Row(
        ran=_moment(str(fields["ran"])),
        passed=_moment(str(passed)) if passed else None,
        commit=str(fields.get("commit", "")),
        seconds=float(fields.get("seconds", 0)),
        quick_seconds=float(fields.get("quick_seconds", 0)),
    )


def _fields(row: Row) -> dict[str, str | float]:
    ran = {"ran": _text(row.ran)}
    if row.passed is None:
        return {**ran}
    return {
        **ran,
        "passed": _text(row.passed),
        "commit": row.commit,
        "seconds": round(row.seconds, 1),
        "quick_seconds": round(row.quick_seconds, 1),
    }


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC)
