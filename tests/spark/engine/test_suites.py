"""The tests of the definitions hold on DuckDB as well."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.spark.on_duckdb import VARIABLE

_HERE: Final = Path(__file__).parents[1]
_OF_SPARK_ALONE: Final = (
    "as_tasks_wrote_it", "in_disorder_gives_the_same_tables", "no_answer_sorts", "replaced_leave_the_others_alone",
    "runs_without_python", "TestALargeTable",
)  # fmt: skip
"""Parts of the names of tests that look at Spark's plans and tasks, or make rows with Spark alone."""
_SUITES: Final = {
    "answers": ("answers",),
    "audit": ("audit",),
    "clocks": ("clocks",),
    "intake": ("sources/test_lines.py", "test_accounts.py", "test_bad_layers.py", "test_layers.py", "test_min_isr.py"),
    "reports": ("reports",),
    "store": ("test_store.py",),
}


@pytest.mark.parametrize("places", _SUITES.values(), ids=_SUITES.keys())
def test_what_holds_on_spark_holds_on_duckdb(places: tuple[str, ...], tmp_path: Path) -> None:
    # In a process of its own, because the data frames of DuckDB take the place of PySpark's.
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", "-p", "no:xdist"]
    chosen = " and ".join(f"not {each}" for each in _OF_SPARK_ALONE)
    environment = os.environ | {VARIABLE: "1", "JAVA_HOME": str(tmp_path)}
    ran = subprocess.run(
        [*command, f"--basetemp={tmp_path / 'tests'}", "-k", chosen, *(str(_HERE / place) for place in places)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
