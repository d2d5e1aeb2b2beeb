"""The SQL for DuckDB is that of the definitions. tests/spark/folding/test_embedded.py compares its rows with Spark's."""

import subprocess
import sys
from pathlib import Path

from kontroller.history.folding.definitions import DEFINITIONS
from kontroller.history.folding.embedded import read_sql
from scripts.duckdb_sql.__main__ import FILE


def test_the_sql_is_what_the_definitions_compile_to(tmp_path: Path) -> None:
    # In a process of its own, because the compiler replaces PySpark's functions.
    compiled = tmp_path / FILE.name
    subprocess.run([sys.executable, "-m", "scripts.duckdb_sql", compiled], check=True)
    assert compiled.read_text() == FILE.read_text(), "run `make sql`"


def test_each_definition_has_its_sql() -> None:
    assert read_sql().keys() == {definition.name for definition in DEFINITIONS}
