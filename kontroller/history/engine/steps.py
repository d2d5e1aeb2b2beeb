"""The steps of data frames as SQL, and the queries that they make."""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import duckdb
from duckdb.func import PythonUDFType

from kontroller.history.engine.columns import PARSERS
from kontroller.history.engine.records import make_parser
from kontroller.history.engine.translation import translate_item, translate_kind

_PLAIN: Final = re.compile(r"(?:([lr])\.)?(?:`(\w+)`|((?!true$|false$|null$)[A-Za-z_]\w*))")


class Step(NamedTuple):
    sql: str
    parents: tuple[str, ...]


@dataclass(slots=True)
class Steps:
    """The steps in a database. Equal steps are one. The name of a step is that of its columns' source as well."""

    database: duckdb.DuckDBPyConnection
    steps: dict[str, Step] = field(default_factory=dict)
    names: dict[Step, str] = field(default_factory=dict)
    known_columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    """The parsers of JSON that the database has."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while the database is used: a connection runs one query at a time."""

    def add(self, items: Sequence[str], source: Sequence[str], parents: tuple[str, ...]) -> str:
        """Add a step that selects Spark's `items` from the parents, with the texts of `source` around their names."""
        first, *texts = source
        tables = first + "".join(f"{parent}{text}" for parent, text in zip(parents, texts, strict=True))
        columns = self.known_columns.get(parents[0], ())
        written: list[str] = []
        names: list[str] = []
        inner: dict[str, str] = {}
        for item in items:
            if item == "*":
                written.append("*")
                names += columns or self.columns(parents[0])
                continue
            if plain := _PLAIN.fullmatch(item):
                name = plain[2] or plain[3]
                written.append(f'{plain[1]}."{name}"' if plain[1] else f'"{name}"')
            else:
                sql, name, windows = translate_item(item)
                inner |= dict(windows)
                written.append(f'{sql} as "{name}"' if name else sql)
            names.append(name)
        if inner:
            tables = f"(select *, {', '.join(f'{sql} as {name}' for name, sql in inner.items())} from {tables})"  # noqa: S608
            written = [f"* exclude ({', '.join(inner)})" if each == "*" else each for each in written]
        step = Step(f"select {', '.join(written)} from {tables}", parents)  # noqa: S608
        with self.lock:
            if step not in self.names:
                name = f"s{len(self.steps)}"
                self.names[step], self.steps[name] = name, step
                if all(names):
                    self.known_columns[name] = tuple(names)
            return self.names[step]

    def columns(self, name: str) -> tuple[str, ...]:
        if name not in self.known_columns:
            with self.lock:
                self.known_columns[name] = tuple(self.bind(name).columns)
        return self.known_columns[name]

    def bind(self, name: str) -> duckdb.DuckDBPyRelation:
        """Return the rows of a step, which are not computed yet."""
        for function, parser in list(PARSERS.items()):
            if function not in self.functions:
                self.functions.add(function)
                kind = translate_kind(parser.schema)
                parse = make_parser(parser.schema, parser.corrupt)
                self.database.create_function(function, parse, ["varchar"], kind, type=PythonUDFType.ARROW)
        return self.database.sql(self.query(name))

    def query(self, name: str, select: str = "from", *, is_inlined: bool = False) -> str:
        """Return one query for the rows of a step. `is_inlined`: DuckDB keeps no step while the query runs."""
        uses = self._count_uses(name)
        ctes = ",\n".join(
            f"{step} as {'' if uses[step] > 1 and not is_inlined else 'not '}materialized ({self.steps[step].sql})"
            for step in sorted(uses, key=lambda step: int(step[1:]))
        )
        return f"{f'with {ctes}' if ctes else ''}\n{select} {name}"

    def _count_uses(self, name: str) -> dict[str, int]:
        """Return the steps that a step is made of, and how often each is used."""
        uses: dict[str, int] = {}
        found = [name]
        while found:
            step = found.pop()
            if step in self.steps:
                uses[step] = uses.get(step, 0) + 1
                if uses[step] == 1:
                    found += self.steps[step].parents
        return uses
