"""Reports are many queries of few rows here."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
"""Settings for many queries of few rows, which take longer to compile than to run."""


@pytest.fixture(scope="module", autouse=True)
def quick(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in QUICK}
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)
