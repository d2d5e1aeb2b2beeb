"""The format of tables: Parquet files alone, or Delta Lake's log beside them.

Each generation records it, so a choice holds for all later commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kontroller.history.generations.errors import OtherFormat

DAYS: Final = 7
"""Days for which older versions of a table stay readable unless the user says otherwise. It is Delta Lake's own
default."""
OTHERS: Final = ""
"""The key for all tables that are not named."""


class Format(StrEnum):
    """The format that other programs find in the folder."""

    PARQUET = "parquet"
    DELTA = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The format that is in use, or asked for. None means that nothing is said."""

    format: Format | None = None
    days: Mapping[str, int] = field(default_factory=dict)
    """Days for which older versions of a table stay readable, by the table's name. `OTHERS` is the key for all other
    tables."""

    @property
    def is_delta(self) -> bool:
        return self.format is Format.DELTA

    def days_of(self, table: str) -> int:
        return self.days.get(table, self.days.get(OTHERS, DAYS))

    def then(self, asked: "Keeping") -> "Keeping":
        """Return the format after `asked` is applied to this one. Raises `OtherFormat`."""
        if self.is_delta and asked.format is Format.PARQUET:
            raise OtherFormat(
                "this history has the format Delta Lake, and other programs may read it: omit --format, or ingest its "
                "journals into a new folder"
            )
        chosen = Keeping(format=asked.format or self.format, days={**self.days, **asked.days})
        if chosen.days and not chosen.is_delta:
            raise OtherFormat(
                "this history has the format Parquet, which has no older versions: use --keep-days with --format delta"
            )
        return chosen
