"""A session that computes data frames with DuckDB, in place of Spark's."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import Row, StructType, _create_row

from kontroller.history.engine.database import BATCH_ROWS, FILE, make_arrow_schema, name_files, open_database
from kontroller.history.engine.files import (
    NONE,
    expand_pattern,
    list_files,
    name_day,
    name_file,
    read_lines,
    unescape_pattern,
    write_divided,
    write_file,
)
from kontroller.history.engine.frames import Frame
from kontroller.history.engine.steps import Steps
from kontroller.history.generations.locks import find_local_folder

LONGEST_LINE: Final = "mapreduce.input.linerecordreader.line.maxlength"
"""The option of the longest line, in bytes with its end."""


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """PySpark's `SparkSession`, as far as the history uses it. DuckDB runs one query at a time, on all its cores."""

    database: duckdb.DuckDBPyConnection
    steps: Steps
    cores: int = 1
    numbers: "count[int]" = field(default_factory=count)
    conf: "Settings" = field(default_factory=lambda: Settings())

    @property
    def read(self) -> "Reader":
        return Reader(session=self)

    def createDataFrame(self, rows: Iterable[Any], schema: StructType | str) -> "Rows":  # noqa: N802
        kind = _arrow_schema(schema)
        given = [row if isinstance(row, dict) else dict(zip(kind.names, row, strict=True)) for row in rows]
        return self.add_table(pa.Table.from_pylist(given, kind))

    def add_table(self, rows: pa.Table) -> "Rows":
        with self.steps.lock:
            name = f"t{next(self.numbers)}"
            self.database.register(name, rows)
            return self.name_rows(name, rows.column_names)

    def add_files(self, files: Sequence[str], schema: StructType) -> "Rows":
        """Return the rows of Parquet files."""
        if not files:
            return self.createDataFrame([], schema)
        with self.steps.lock:
            name = f"t{next(self.numbers)}"
            name_files(self.database, name, files, schema)
            return self.name_rows(name, schema.fieldNames())

    def keep(self, rows: "Rows") -> "Rows":
        """Compute rows and keep them."""
        with self.steps.lock:
            name = f"t{next(self.numbers)}"
            relation = self.compute(rows)
            relation.create(name)
            return self.name_rows(name, relation.columns)

    def compute(self, rows: "Rows") -> duckdb.DuckDBPyRelation:
        relation = self.steps.bind(rows.name)
        # DuckDB's sums of integers are larger than Spark's.
        large = [name for name, kind in zip(relation.columns, relation.types, strict=True) if str(kind) == "HUGEINT"]
        if large:
            casts = ", ".join(f'"{name}"::bigint as "{name}"' for name in large)
            return relation.project(f"* replace ({casts})")
        return relation

    @property
    def sparkContext(self) -> "Context":  # noqa: N802
        return Context(defaultParallelism=self.cores)

    def name_rows(self, name: str, columns: Sequence[str]) -> "Rows":
        """Return the rows of a table or view of the database."""
        self.steps.known_columns[name] = tuple(columns)
        return Rows(steps=self.steps, name=name, sparkSession=self)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows(Frame):
    """Rows that can be computed."""

    sparkSession: Session  # noqa: N815

    @property
    def schema(self) -> StructType:
        with self.steps.lock:
            return from_arrow_schema(self.sparkSession.compute(self.limit(0)).to_arrow_table().schema)

    def collect(self) -> list[Row]:
        rows = self.toArrow()
        names = rows.column_names
        return [_create_row(names, [*each]) for each in _list_values(rows)]

    def toArrow(self) -> pa.Table:  # noqa: N802
        with self.steps.lock:
            return self.sparkSession.compute(self).to_arrow_table()

    def first(self) -> Row | None:
        return next(iter(self.limit(1).collect()), None)

    def count(self) -> int:
        with self.steps.lock:
            return len(self.sparkSession.compute(self))

    def apply_to_groups(
        self,
        keys: Sequence[str],
        names: Sequence[str],
        made: Callable[[Sequence[Row]], Iterable[Mapping[str, object]]],
        schema: StructType,
    ) -> "Rows":
        """Return the rows that `made` returns for the rows with equal keys. It receives the columns `names`."""
        groups: dict[tuple[object, ...], list[Row]] = {}
        for row in self.select(*dict.fromkeys((*keys, *names))).collect():
            groups.setdefault(tuple(row[key] for key in keys), []).append(row)
        found = [row for group in groups.values() for row in made(group)]
        return self.sparkSession.createDataFrame(found, schema)

    @property
    def write(self) -> "Writer":
        return Writer(rows=self)

    def persist(self, _: object = None) -> "Rows":
        return self.sparkSession.keep(self)

    localCheckpoint = persist  # noqa: N815

    def unpersist(self) -> None:
        with self.steps.lock:
            self.sparkSession.database.execute(f"drop table if exists {self.name}")


@contextmanager
def open_session(*, cores: int, memory: str) -> Iterator[Session]:
    """Yield a session while the block runs. DuckDB writes what needs more than `memory` to temporary files."""
    with open_database(threads=cores, memory=memory) as database:
        yield Session(database=database, steps=Steps(database), cores=cores)


def _list_values(rows: pa.Table) -> Iterable[Sequence[Any]]:
    columns = [
        [_make_value(value, column.type) for value in column.to_pylist(maps_as_pydicts="strict")]
        for column in rows.columns
    ]
    return zip(*columns, strict=True) if columns else ()


def _make_value(value: Any, kind: pa.DataType) -> Any:
    """Return a value of PySpark: structs are rows."""
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_struct(kind):
        values = [_make_value(value[each.name], each.type) for each in kind]
        return _create_row([each.name for each in kind], values)
    if pa.types.is_map(kind):
        return {key: _make_value(each, kind.item_type) for key, each in value.items()}
    return [_make_value(each, kind.value_type) for each in value]


def _arrow_schema(schema: StructType | str) -> pa.Schema:
    if isinstance(schema, StructType):
        return make_arrow_schema(schema)
    kinds = {"string": pa.string(), "int": pa.int32(), "long": pa.int64()}
    pairs = (each.split() for each in schema.split(","))
    return pa.schema({name: kinds[kind] for name, kind in pairs})


class PathNotFound(AnalysisException):
    """A place to read does not exist."""

    def getCondition(self) -> str:  # noqa: N802
        return "PATH_NOT_FOUND"


class Settings(dict[str, str]):
    """Spark's settings, which have no effect here."""

    def set(self, name: str, value: str) -> None:
        self[name] = value

    def unset(self, name: str) -> None:
        self.pop(name, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """PySpark's `SparkContext`, as far as the history uses it."""

    defaultParallelism: int  # noqa: N815
    master: str = "duckdb"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """PySpark's reader of files."""

    session: Session
    kinds: StructType = field(default_factory=StructType)
    given: Mapping[str, str] = field(default_factory=dict)

    def schema(self, kinds: StructType) -> "Reader":
        return replace(self, kinds=kinds)

    def option(self, name: str, value: str) -> "Reader":
        return self.options(**{name: value})

    def options(self, **given: str) -> "Reader":
        return replace(self, given={**self.given, **given})

    def parquet(self, *places: str) -> Rows:
        files: list[str] = []
        for place in places:
            found = sorted(list_files(find_local_folder(place) or place, ["*.parquet"]))
            if not found:
                raise PathNotFound(message=f"{place} has no file with rows")
            files += map(str, found)
        return self.session.add_files(files, self.kinds)

    def text(self, places: Sequence[str]) -> Rows:
        """Return the lines of files (`value`), and the address of the file of each."""
        patterns, longest = expand_pattern(self.given["pathGlobFilter"]), int(self.given[LONGEST_LINE])
        texts: list[pa.Array] = []
        files: list[pa.Array] = []
        for place in places:
            for path in list_files(unescape_pattern(place), patterns):
                texts.append(pa.array(read_lines(path, longest), pa.string()))
                name = pa.repeat(pa.scalar(name_file(path)), len(texts[-1]))
                files.append(pa.StructArray.from_arrays([name], ["file_path"]))
        of_file = pa.chunked_array(files, pa.struct({"file_path": pa.string()}))
        return self.session.add_table(pa.table({"value": pa.chunked_array(texts, pa.string()), "_metadata": of_file}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """PySpark's writer of files."""

    rows: Rows
    names: tuple[str, ...] = ()

    def mode(self, _: str) -> "Writer":
        return self

    def partitionBy(self, *names: str) -> "Writer":  # noqa: N802
        return replace(self, names=names)

    def parquet(self, folder: str) -> None:
        """Write the rows in their order, into a folder for the values of the dividing columns. Raises `OSError`."""
        columns = [name for name in self.rows.columns if name not in self.names]
        with self.rows.steps.lock:
            order = self.rows.order or self.names
            rows = self.rows.orderBy(*order) if order else self.rows
            relation = self.rows.sparkSession.compute(rows)
            kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
            named = ", ".join(f'{_name_value(name, kinds[name])} as "{name}"' for name in self.names)
            relation = relation.project(f"* replace ({named})") if named else relation
            place = find_local_folder(folder) or Path(folder)
            place.mkdir(parents=True)
            # The connection is of no use until the reader is closed.
            with relation.to_arrow_reader(BATCH_ROWS) as reader:
                kind = pa.schema([reader.schema.field(name) for name in columns])
                if self.names:
                    write_divided(reader, place, self.names, kind, FILE)
                else:
                    write_file(place / FILE, kind, reader)


def _name_value(name: str, kind: str) -> str:
    return name_day(f'"{name}"') if kind == "DATE" else f"coalesce(cast(\"{name}\" as text), '{NONE}')"
