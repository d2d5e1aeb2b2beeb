"""Writes kontroller/history/folding/duckdb.sql, the definitions of the fold's tables as SQL for DuckDB.

python -m scripts.duckdb_sql [FILE]
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyspark.sql

from scripts.duckdb_sql.frames import Column, Frame, Functions, Steps, Window

FILE: Final = Path(__file__).parents[2] / "kontroller" / "history" / "folding" / "duckdb.sql"
_HEAD: Final = "Generated from kontroller/history/transforms by `make sql`: change these instead.\n"
_FUNCTIONS: Final = "pyspark.sql.functions"


def compile_definitions() -> str:
    """Return the content of the file. Afterwards PySpark's functions are of no use in this process."""
    functions = Functions(_FUNCTIONS)
    vars(pyspark.sql).update(functions=functions, DataFrame=Frame, Column=Column, Window=Window)
    sys.modules[_FUNCTIONS] = functions
    from kontroller.history.folding.definitions import DEFINITIONS  # it imports the names that were replaced

    texts = [_HEAD]
    for definition in DEFINITIONS:
        steps = Steps()
        steps.database.create_function("crc32", len, ["varchar"], "bigint")
        make: Callable[..., Any] = definition.make
        rows = make(*(steps.add_table(table.name, table.schema) for table in definition.reads))
        texts.append(f"{definition.name}\n{steps.text(rows, definition.schema)}")
    return "".join(f"-- {text}" for text in texts)


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else FILE).write_text(compile_definitions())
