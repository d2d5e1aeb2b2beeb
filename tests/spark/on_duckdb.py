"""Runs the tests of this folder on DuckDB instead of Spark, if TESTS_ON_DUCKDB is set. Import it before the history."""

import os
from typing import Final

from pyspark.sql.types import DataType, StructType

from kontroller.history.engine.activation import activate

VARIABLE: Final = "TESTS_ON_DUCKDB"
ON_DUCKDB: Final = VARIABLE in os.environ
if ON_DUCKDB:
    activate()


def list_types(schema: StructType) -> list[DataType | str]:
    """Return the types of the columns. DuckDB's do not say if a list may have nulls."""
    return [each.dataType.simpleString() if ON_DUCKDB else each.dataType for each in schema]
