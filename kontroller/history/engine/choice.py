"""The choice between Spark and DuckDB for a history."""

import os
import shutil
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

from kontroller.history.generations.locks import find_local_folder

LARGEST_BYTES: Final = 32 << 20
"""The size of a history from which on Spark computes it: the tables of some 1,000,000 records."""
_PACKED: Final = 8
"""The ratio of the sizes of a journal and of its tables."""
_PACKED_FILES: Final = (".parquet", ".gz")
_ADDRESS: Final = "://"
_SERVED: Final = ("http://", "https://")


class Engine(StrEnum):
    """The program that computes tables."""

    AUTO = "auto"
    DUCKDB = "duckdb"
    SPARK = "spark"


class NotHere(Exception):
    """DuckDB cannot do it. The message says why, and what to do."""


def choose(asked: Engine, location: str, taken_in: Sequence[str] = ()) -> Engine:
    """Return the engine for a history: DuckDB if the history and the new records are small and on this machine, or if
    there is no Java.

    `taken_in`: the places with new records. Raises `NotHere`."""
    if asked is Engine.SPARK or "PYSPARK_GATEWAY_PORT" in os.environ:
        return Engine.SPARK
    here = find_local_folder(location)
    remote = [] if here else [location]
    remote += [place for place in taken_in if _ADDRESS in place and not place.startswith(_SERVED)]
    if here is None or remote:
        if asked is Engine.DUCKDB:
            raise NotHere(f"DuckDB cannot read {remote[0]}: give --engine spark")
        return Engine.SPARK
    if asked is Engine.DUCKDB or not _has_java():
        return Engine.DUCKDB
    if any(place.startswith(_SERVED) for place in taken_in):
        # Nobody knows how large they are before they are fetched.
        return Engine.SPARK
    size_bytes = sum(_measure(Path(place), "*") for place in taken_in if _ADDRESS not in place)
    return Engine.DUCKDB if size_bytes + _measure(here, "*.parquet") <= LARGEST_BYTES else Engine.SPARK


def _measure(folder: Path, pattern: str) -> int:
    """Return the size of the files of a folder, as tables."""
    files = [file for file in folder.rglob(pattern) if file.is_file()]
    return sum(file.stat().st_size // (1 if file.suffix in _PACKED_FILES else _PACKED) for file in files)


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None) is not None
