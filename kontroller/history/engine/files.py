"""Files of lines that are read, and files of rows that are written below folders."""

import gzip
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS_IN_A_GROUP: Final = 1 << 15
"""The rows that are held in memory, and that readers can skip together."""
_IGNORED: Final = ("_", ".")
_PLAIN: Final = frozenset("!$&'()*+,;=:@/-._~")
"""The characters beside letters and digits that an address of a file keeps."""
NONE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of the folder of rows without a value."""
LAST_DAY: Final = "+294247-01-10"
"""The day of the largest time, which DuckDB takes for infinity."""
_UNSAFE: Final = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(each) for each in range(32)}
"""The characters that Spark does not write into the name of a folder."""
_BOM: Final = b"\xef\xbb\xbf"


def list_files(place: str | Path, patterns: Sequence[str]) -> Iterator[Path]:
    """Yield the file of a place, or the files below it whose names match, as Spark would choose them."""
    path = Path(place)
    if path.is_file():
        yield path
        return
    for parent, folders, names in os.walk(path, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith(_IGNORED))
        for name in sorted(names):
            if not name.startswith(_IGNORED) and any(fnmatch(name, each) for each in patterns):
                yield Path(parent, name)


def expand_pattern(pattern: str) -> list[str]:
    """Return the patterns that a pattern with alternatives in braces stands for."""
    first, _, rest = pattern.partition("{")
    among, _, last = rest.partition("}")
    return [f"{first}{each}{last}" for each in among.split(",")]


def unescape_pattern(place: str) -> str:
    """Return the path of a pattern that matches only one."""
    return re.sub(r"\\(.)", r"\1", place)


def read_lines(path: Path, longest: int) -> list[str]:
    """Return the lines of a file, without those that have `longest` or more bytes with their ends."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = data.removeprefix(_BOM).splitlines(keepends=True)
    return [line.rstrip(b"\r\n").decode(errors="replace") for line in lines if len(line) < longest]


def name_file(path: Path) -> str:
    """Return the address of a file, as Spark writes it."""
    text = str(path.absolute())
    return "file:" + "".join(
        each if each.isalnum() or each in _PLAIN or ord(each) > 127 else f"%{ord(each):02X}" for each in text
    )


def name_day(time: str) -> str:
    """Return DuckDB's SQL for the day of a time as the text in the name of a folder."""
    day = f"cast(cast({time} as date) as text)"
    return (
        f"case when isinf({time}) then '{LAST_DAY}' when year({time}) > 9999 then '+' || {day} "
        f"else coalesce({day}, '{NONE}') end"
    )


def name_folder(value: object) -> str:
    """Return the text of a value in the name of a folder, as Spark writes it."""
    if value == "":
        return NONE
    return "".join(f"%{ord(each):02X}" if each in _UNSAFE else each for each in str(value))


def write_divided(
    batches: Iterable[pa.RecordBatch], folder: Path, names: Sequence[str], kind: pa.Schema, file: str
) -> None:
    """Write rows, sorted by the columns `names`, into a folder for the values of these columns. Raises `OSError`."""
    for values, pieces in groupby(cut(batches, names), itemgetter(0)):
        place = folder.joinpath(*(f"{name}={name_folder(value)}" for name, value in zip(names, values, strict=True)))
        write_file(place / file, kind, (piece for _, piece in pieces))


def write_file(path: Path, kind: pa.Schema, pieces: Iterable[pa.RecordBatch]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, kind, compression="zstd", store_schema=False) as written:
        for group in join(piece.select(kind.names).cast(kind) for piece in pieces):
            written.write_table(group)


def cut(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[tuple[tuple[object, ...], pa.RecordBatch]]:
    """Cut batches at each change of these columns, and yield the values with the rows."""
    for batch in batches:
        columns = [batch.column(name) for name in names]
        ends = {0, len(batch)}
        for column in columns:
            is_other = pc.not_equal(column[1:], column[:-1])
            ends |= {1 + index for index in pc.indices_nonzero(is_other).to_pylist()}
        for first, last in pairwise(sorted(ends)):
            yield tuple(column[first].as_py() for column in columns), batch.slice(first, last - first)


def join(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join and cut rows to tables of `ROWS_IN_A_GROUP`."""
    held: list[pa.RecordBatch] = []
    missing = ROWS_IN_A_GROUP
    for piece in pieces:
        left = piece
        while len(left):
            held.append(left.slice(0, missing))
            left = left.slice(missing)
            missing -= len(held[-1])
            if not missing:
                yield pa.Table.from_batches(held).combine_chunks()
                held, missing = [], ROWS_IN_A_GROUP
    if held:
        yield pa.Table.from_batches(held).combine_chunks()
