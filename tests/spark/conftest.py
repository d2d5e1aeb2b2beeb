"""One session for all tests of the pipeline, of Spark or of DuckDB. All tests in this folder are marked `spark`."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from devcluster.running.tokens import SPARK, machine_tokens
from kontroller.history.engine.session import open_session
from kontroller.history.session import Size, local_session
from tests.spark.on_duckdb import ON_DUCKDB

_TIMEOUT_S = 2400
"""The first test that asks for the session or for a shared table waits for it. On two busy cores only a hang takes this
long. All later tests in the process then fail, too, because they read the answer to the interrupted call."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.fixture(scope="session", autouse=True)
def spark_tokens() -> Iterator[None]:
    """Room on this machine for one Spark, also for tests that start it in a process of its own."""
    if ON_DUCKDB:
        yield
        return
    with machine_tokens().hold(SPARK):
        yield


@pytest.fixture(scope="session")
def spark(spark_tokens: None) -> Iterator[SparkSession]:
    if ON_DUCKDB:
        with open_session(cores=2, memory="1g") as opened:
            yield cast("SparkSession", opened)
        return
    session = local_session("tests", shuffle_partitions=2, size=Size.SMALL)
    yield session
    session.stop()
