"""Spark for the command line and the tests: on one machine, unless spark-submit says where. No web page, all times UTC."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


class NoJava(Exception):
    """Spark could not be started."""


def local_session(
    name: str, *, cores: int = 2, memory: str = "2g", shuffle_partitions: int | None = None, packages: str = ""
) -> SparkSession:
    """A session in this process. `packages`: jars, separated by commas, for sources that Spark does not bring."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).with_name("conf")))
    settings = SETTINGS | LOCAL_SETTINGS
    settings |= {"spark.driver.memory": memory, "spark.sql.shuffle.partitions": str(shuffle_partitions or 4 * cores)}
    if packages:
        settings["spark.jars"] = packages
    return _quiet(SparkSession.builder.master(f"local[{cores}]").appName(name), settings)


@contextmanager
def session(name: str, *, cores: int, memory: str) -> Iterator[SparkSession]:
    """Spark while the block runs: where spark-submit says, if that started this process, else in this process with
    `cores` and `memory`. Raises `NoJava`."""
    try:
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            spark = _quiet(SparkSession.builder.appName(name), SETTINGS)
        else:
            spark = local_session(name, cores=cores, memory=memory)
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise NoJava("Spark did not start: it needs Java 17 or newer, on the PATH or in JAVA_HOME") from error
    try:
        yield spark
    finally:
        spark.stop()


def _quiet(builder: SparkSession.Builder, settings: dict[str, str]) -> SparkSession:
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
