"""A generation of a store: the list of folders that make up its tables. It is one small file that never changes.

A part of a table is a folder below the table's own. It is named after the write that made it, `12-3f9a01`. If the table
is divided, the names of cluster and day follow: `12-3f9a01/of=prod`, `12-3f9a01/of=prod/day=2026-01-31`. Parts never
change either: a change adds parts, then a generation that lists them, so readers of an older generation are not
disturbed.

Tables can be derived from another store. Their generation then names the parts that they were made of (`Made`), so that
the next run finds what is new.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NewType
from urllib.parse import unquote

from pydantic import TypeAdapter, ValidationError

from kontroller.history.generations.errors import Damaged
from kontroller.history.generations.keeping import Keeping

Part = NewType("Part", str)
Parts = Mapping[str, tuple[Part, ...]]
"""The parts of tables, by the tables' names."""
FOLDER: Final = "generations"
_UNNAMED: Final = "__HIVE_DEFAULT_PARTITION__"
"""Spark's folder name for an empty text or a null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The source of derived tables: the number and the parts of another store's generation, and a text that changes
    with the definitions."""

    by: str
    number: int
    parts: Parts

    def news(self, before: "Made | None") -> Parts | None:
        """Return the parts that are new since `before`, or None if everything must be made again.

        That is so if there is no `before`, if the definitions differ, or if the source has not only grown because
        somebody restored an older copy."""
        if before is None or before.by != self.by:
            return None
        news = {table: exclude_parts(parts, before.parts.get(table, ())) for table, parts in self.parts.items()}
        # A new part with an older number comes from a restored copy.
        is_later = all(_number_of(part) > before.number for parts in news.values() for part in parts)
        is_all_there = all(_days(parts) <= _days(self.parts.get(table, ())) for table, parts in before.parts.items())
        return news if is_later and is_all_there else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """`parts` has each table that was ever written. `made` names the source if the tables are derived from another
    store. `keeping` is the format of the tables."""

    number: int
    parts: Parts
    made: Made | None = None
    keeping: Keeping = field(default_factory=Keeping)

    def make_next(self, parts: Parts, made: Made | None = None, keeping: Keeping | None = None) -> "Generation":
        """Return the next generation, in which these parts replace those of the tables that are given."""
        return Generation(
            number=self.number + 1, parts={**self.parts, **parts}, made=made, keeping=keeping or self.keeping
        )

    def all_parts(self) -> frozenset[tuple[str, Part]]:
        """Return all parts with the names of their tables."""
        return frozenset((table, part) for table, parts in self.parts.items() for part in parts)

    @property
    def file(self) -> str:
        return file_of(self.number)

    def text(self) -> str:
        return _FILE.dump_json(self, indent=1, exclude_defaults=True).decode() + "\n"


NOTHING: Final = Generation(number=0, parts={})
"""The generation of a store before its first change."""
_FILE: Final = TypeAdapter(Generation)


def generation_of(text: str, place: str) -> Generation:
    """Parse the text of a generation's file. Raises `Damaged`."""
    try:
        return _FILE.validate_json(text)
    except ValidationError as error:
        raise Damaged(
            f"{place} is not a valid list of the tables' files: restore it from a backup, or remove it to go back to "
            "an older file beside it"
        ) from error


def file_of(number: int) -> str:
    """Return the path of a generation's file, relative to the store's folder."""
    return f"{FOLDER}/{number:010}.json"


def numbers_in(names: list[str], suffix: str = ".json") -> list[int]:
    """Return the sorted numbers that files with this suffix are named after, such as those of generations."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def new_write(number: int) -> str:
    """Return a name for the parts of a write towards a generation. Each attempt gets a name of its own."""
    return f"{number}-{secrets.token_hex(4)}"


def is_of(write: str, number: int) -> bool:
    """Return True if a write of this name was made for this generation."""
    return write.partition("-")[0] == str(number)


def is_left_over(write: str, newest: int) -> bool:
    """Return True if a write of this name can no longer enter a generation, because its number is taken."""
    number = write.partition("-")[0]
    return number.isdecimal() and int(number) <= newest


def write_of(part: Part) -> str:
    """Return the name of the write that made a part."""
    return part.partition("/")[0]


def day_of(part: Part) -> str:
    """Return the cluster and day of a part of a divided table. Parts with the same value replace each other."""
    return part.partition("/")[2]


def cluster_of(part: Part) -> str:
    """Return the cluster of a part of a divided table; "" for rows without a cluster."""
    folder = folder_of(part).removeprefix("of=")
    return "" if folder == _UNNAMED else unquote(folder)


def folder_of(part: Part) -> str:
    """Return the name of the folder of a part's cluster, such as `of=prod`."""
    return day_of(part).partition("/")[0]


def is_without_day(part: Part) -> bool:
    """Return True if a part has the rows whose day is unknown."""
    return part.endswith(f"/day={_UNNAMED}")


def replace_days(old: tuple[Part, ...], new: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a divided table after the days of `new` are replaced."""
    days = {day_of(part) for part in new}
    return tuple(sorted((*(part for part in old if day_of(part) not in days), *new), key=day_of))


def replace_clusters(old: tuple[Part, ...], clusters: Collection[str], new: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts of a divided table after all parts of these clusters are replaced by `new`."""
    return tuple(sorted((*(part for part in old if cluster_of(part) not in clusters), *new), key=day_of))


def replace_days_from(old: tuple[Part, ...], days: Mapping[str, str], new: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts of a table divided by day after each cluster's parts from its day on are replaced by `new`."""
    return tuple(sorted((*(part for part in old if not is_from(part, days)), *new), key=day_of))


def is_from(part: Part, days: Mapping[str, str]) -> bool:
    """Return True if a part of a table divided by day is of one of these clusters, and of its day (such as 2026-01-31)
    or later."""
    day, of_cluster = date_of(part), days.get(cluster_of(part))
    return of_cluster is not None and (day is None or day >= of_cluster)


def date_of(part: Part) -> str | None:
    """Return the day of a part of a table divided by day, such as 2026-01-31; None after the year 9999 or without a
    day."""
    day = part.rpartition("/day=")[2]
    return day if len(day) == len("2026-01-31") else None


def select_clusters(parts: Iterable[Part], clusters: Collection[str]) -> tuple[Part, ...]:
    return tuple(part for part in parts if cluster_of(part) in clusters)


def _number_of(part: Part) -> int:
    """Return the number of the generation that a part was written for."""
    return int(part.partition("-")[0])


def _days(parts: Iterable[Part]) -> set[str]:
    return {day_of(part) for part in parts}


def exclude_parts(parts: tuple[Part, ...], old: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts that are not among the old ones."""
    known = set(old)
    return tuple(part for part in parts if part not in known)
