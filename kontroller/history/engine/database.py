"""DuckDB as the history uses it: with the functions of Spark that it lacks, and the tables of Parquet files."""

import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import duckdb
import pyarrow as pa
from duckdb.func import PythonUDFType
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kontroller.history.engine.translation import MACROS

FILE: Final = "part-0.zstd.parquet"
"""The only file that DuckDB writes into a folder. A task that runs again replaces what it had begun."""
BATCH_ROWS: Final = 10_000


@contextmanager
def open_database(*, threads: int, memory: str, keeps_order: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield an empty database while the block runs. DuckDB writes what needs more than `memory` to temporary files.

    `memory`: such as 2g. `keeps_order`: the rows of a query without an order have that of its input."""
    with tempfile.TemporaryDirectory() as spilled, duckdb.connect() as database:
        settings = {
            "threads": threads,
            "memory_limit": f"{memory.upper()}iB",
            "temp_directory": spilled,
            "preserve_insertion_order": keeps_order,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "TimeZone": "UTC",
        }
        for name, value in settings.items():
            database.execute(f"set {name} = '{value}'")
        for macro in MACROS:
            database.execute(macro)
        database.create_function("crc32", _compute_crc32, ["varchar"], "bigint", type=PythonUDFType.ARROW)
        yield database


def name_files(database: duckdb.DuckDBPyConnection, name: str, files: Sequence[str], schema: StructType) -> None:
    """Make a view of the rows of Parquet files. Files of older records lack the newer columns."""
    database.register(f"no_{name}", make_arrow_schema(schema).empty_table())
    rows = database.read_parquet([*files], hive_partitioning=False, union_by_name=True)
    rows.create_view(f"files_of_{name}")
    columns = ", ".join(f'"{each}"' for each in schema.fieldNames())
    union = f"from files_of_{name} union all by name from no_{name}"
    database.execute(f"create view {name} as select {columns} from ({union})")  # noqa: S608


def make_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the types of Arrow for the types of Spark."""
    return to_arrow_schema(schema, timezone="UTC")


def _compute_crc32(texts: pa.Array) -> pa.Array:
    return pa.array([None if text is None else zlib.crc32(text.encode()) for text in texts.to_pylist()], pa.int64())
