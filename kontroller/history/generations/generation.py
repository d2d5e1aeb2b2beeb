"""A generation of a store: which folders its tables are made of. It is one small file, which is never changed.

A table's part is a folder below the table's own, named by the write that made it, `12-3f9a01`, and, where the table is
divided by cluster, or by cluster and day, by these: `12-3f9a01/of=prod`, `12-3f9a01/of=prod/day=2026-01-31`. Parts are not
changed either. So a change adds parts, then the file of the generation that has them; whoever reads an older generation
goes on with its parts.

The tables of one store may be made of those of another. Their generation says of which parts, so that who makes them again
knows what is new (`Made`).
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
"""Of tables, by their names."""
FOLDER: Final = "generations"
_UNNAMED: Final = "__HIVE_DEFAULT_PARTITION__"
"""What Spark calls the folder of an empty text, or of none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What tables were made of: the generation of another store with this number and these parts; and by which
    definitions, as a text that is another one whenever they may be."""

    by: str
    number: int
    parts: Parts

    def news(self, before: "Made | None") -> Parts | None:
        """The parts that are here and not in what was made before; None where that cannot be gone on with: there is none,
        it was made by other definitions, or what it was made of has not only grown, as somebody went back to a copy."""
        if before is None or before.by != self.by:
            return None
        news = {table: without(parts, before.parts.get(table, ())) for table, parts in self.parts.items()}
        is_later = all(_number_of(part) > before.number for parts in news.values() for part in parts)
        is_all_there = all(_days(parts) <= _days(self.parts.get(table, ())) for table, parts in before.parts.items())
        return news if is_later and is_all_there else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """`parts`: of each table that was ever written. `made`: of what, where that is another store's tables. `keeping`: how
    they are kept."""

    number: int
    parts: Parts
    made: Made | None = None
    keeping: Keeping = field(default_factory=Keeping)

    def after(self, parts: Parts, made: Made | None = None, keeping: Keeping | None = None) -> "Generation":
        """The next one, with these parts of some tables in place of theirs."""
        return Generation(
            number=self.number + 1, parts={**self.parts, **parts}, made=made, keeping=keeping or self.keeping
        )

    def all_parts(self) -> frozenset[tuple[str, Part]]:
        """With the names of their tables."""
        return frozenset((table, part) for table, parts in self.parts.items() for part in parts)

    @property
    def file(self) -> str:
        return file_of(self.number)

    def text(self) -> str:
        return _FILE.dump_json(self, indent=1, exclude_defaults=True).decode() + "\n"


NOTHING: Final = Generation(number=0, parts={})
"""What a store is before the first change."""
_FILE: Final = TypeAdapter(Generation)


def generation_of(text: str, place: str) -> Generation:
    """Raises `Damaged`."""
    try:
        return _FILE.validate_json(text)
    except ValidationError as error:
        raise Damaged(
            f"{place} does not say which files the tables are in: restore it from a copy, or, if there is an older file "
            "beside it, remove it to go back to that one"
        ) from error


def file_of(number: int) -> str:
    """Where a generation is below the store's folder."""
    return f"{FOLDER}/{number:010}.json"


def numbers_in(names: list[str], suffix: str = ".json") -> list[int]:
    """The numbers that files of this kind are named by, in their order: those of generations."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def new_write(number: int) -> str:
    """A name for the parts of a write towards a generation, which no other attempt at it has."""
    return f"{number}-{secrets.token_hex(4)}"


def is_of(write: str, number: int) -> bool:
    """Whether a write of that name was one towards this generation."""
    return write.partition("-")[0] == str(number)


def is_left_over(write: str, newest: int) -> bool:
    """Whether a write of that name cannot become part of a generation any more, as its number has been given."""
    number = write.partition("-")[0]
    return number.isdecimal() and int(number) <= newest


def write_of(part: Part) -> str:
    """The write that made a part."""
    return part.partition("/")[0]


def day_of(part: Part) -> str:
    """The cluster and day of a part of a divided table: parts of which these are the same replace each other."""
    return part.partition("/")[2]


def cluster_of(part: Part) -> str:
    """The cluster of a part of a divided table; "" is that of what has none."""
    folder = day_of(part).partition("/")[0].removeprefix("of=")
    return "" if folder == _UNNAMED else unquote(folder)


def is_without_day(part: Part) -> bool:
    """Whether a part has the rows of which nothing says a day."""
    return part.endswith(f"/day={_UNNAMED}")


def with_days(old: tuple[Part, ...], new: tuple[Part, ...]) -> tuple[Part, ...]:
    """Parts of a divided table in which some days are replaced."""
    days = {day_of(part) for part in new}
    return tuple(sorted((*(part for part in old if day_of(part) not in days), *new), key=day_of))


def with_clusters(old: tuple[Part, ...], clusters: Collection[str], new: Iterable[Part]) -> tuple[Part, ...]:
    """Parts of a divided table in which those of some clusters are replaced by these, however many there are."""
    return tuple(sorted((*(part for part in old if cluster_of(part) not in clusters), *new), key=day_of))


def with_days_from(old: tuple[Part, ...], days: Mapping[str, str], new: Iterable[Part]) -> tuple[Part, ...]:
    """Parts of a table that is divided by day, in which of some clusters all from a day on are replaced by these."""
    return tuple(sorted((*(part for part in old if not is_from(part, days)), *new), key=day_of))


def is_from(part: Part, days: Mapping[str, str]) -> bool:
    """Whether a part of a table that is divided by day is of one of these clusters, and of its day (as 2026-01-31) or a
    later one."""
    day, of_cluster = date_of(part), days.get(cluster_of(part))
    return of_cluster is not None and (day is None or day >= of_cluster)


def date_of(part: Part) -> str | None:
    """The day of a part of a table that is divided by day, as 2026-01-31; None after the year 9999, or without one."""
    day = part.rpartition("/day=")[2]
    return day if len(day) == len("2026-01-31") else None


def of_clusters(parts: Iterable[Part], clusters: Collection[str]) -> tuple[Part, ...]:
    return tuple(part for part in parts if cluster_of(part) in clusters)


def _number_of(part: Part) -> int:
    """The number of the generation that a part was written for."""
    return int(part.partition("-")[0])


def _days(parts: Iterable[Part]) -> set[str]:
    return {day_of(part) for part in parts}


def without(parts: tuple[Part, ...], old: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts that are not among the old ones."""
    known = set(old)
    return tuple(part for part in parts if part not in known)
