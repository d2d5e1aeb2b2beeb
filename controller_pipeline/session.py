"""Spark on one machine, for the command line and the tests: as many cores as asked for, no web page, all times UTC."""

import os
import sys

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def local_session(
    name: str, *, cores: int = 2, memory: str = "2g", shuffle_partitions: int | None = None, packages: str = ""
) -> SparkSession:
    """A session in this process. `packages`: jars, separated by commas, for sources that Spark does not bring."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.driver.memory", memory)
    builder = builder.config("spark.sql.shuffle.partitions", shuffle_partitions or 4 * cores)
    if packages:
        builder = builder.config("spark.jars", packages)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session
