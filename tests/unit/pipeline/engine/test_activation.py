"""DuckDB's data frames replace PySpark's only before the history's modules are imported."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("first", "is_possible"),
    [
        ("import pyspark.sql.functions", True),
        ("import kontroller.cli.history", True),
        ("import kontroller.history.store", False),
        (
            "from kontroller.history.engine.activation import activate; activate(); import kontroller.history.store",
            True,
        ),
    ],
)
def test_it_is_too_late_once_a_module_has_spark_functions(first: str, is_possible: bool) -> None:
    ask = "from kontroller.history.engine.activation import is_possible; print(is_possible())"
    said = subprocess.run([sys.executable, "-c", f"{first}; {ask}"], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == str(is_possible)
