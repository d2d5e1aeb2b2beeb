"""How tables are kept: as Parquet files alone, or as tables of Delta Lake as well. Each generation says it, so what was
chosen once holds for all commands from then on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kontroller.history.generations.errors import OtherFormat

DAYS: Final = 7
"""For how long an older version of a table can be read where nobody says it, which is Delta Lake's own default."""
OTHERS: Final = ""
"""Stands for all tables that are not named."""


class Format(StrEnum):
    """What programs beside this one find in the folder."""

    PARQUET = "parquet"
    DELTA = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What is chosen, or asked for. None: nothing is said of it."""

    format: Format | None = None
    days: Mapping[str, int] = field(default_factory=dict)
    """For how many days older versions of a table can be read, by its name; of `OTHERS`, by that."""

    @property
    def is_delta(self) -> bool:
        return self.format is Format.DELTA

    def days_of(self, table: str) -> int:
        return self.days.get(table, self.days.get(OTHERS, DAYS))

    def then(self, asked: "Keeping") -> "Keeping":
        """What holds when this held and something is asked for. Raises `OtherFormat`."""
        if self.is_delta and asked.format is Format.PARQUET:
            raise OtherFormat(
                "this history is kept in Delta Lake, where others may read it: leave --format out, or take its journals "
                "into a new folder"
            )
        chosen = Keeping(format=asked.format or self.format, days={**self.days, **asked.days})
        if chosen.days and not chosen.is_delta:
            raise OtherFormat(
                "this history is kept as Parquet, which has no older versions: give --keep-days with --format delta"
            )
        return chosen
