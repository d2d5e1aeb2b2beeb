"""Spark for the command line and the tests: on one machine, unless spark-submit says where. No web page, all times UTC."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # As other programs read times, and as Spark skips what is of other times: its own default has neither.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    # What only its web page would show is kept all the same, a thousand queries with their plans.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.showConsoleProgress": "false",
}
LOCAL_SETTINGS = {
    # The collector that gets most done: nobody waits for an answer in milliseconds. And what Spark makes for tables of many
    # columns is compiled: methods of more than 8,000 bytes are not, unless Java is told.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:-DontCompileHugeMethods",
    # What is sorted at once fits into the processor's cache, and into memory; what is small is put together again.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
SMALL_SETTINGS = {
    # The first compiler alone has room for 48 MB of code, which Spark fills: then Java forgets code, and compiles it again.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}
"""For histories of some thousand records: compiling, and planning again in between, would take longer than they save."""
SMALL_BYTES: Final = 20_000_000
"""Lines of so many bytes, some ten thousand, are small."""
_PACKED_FILES: Final = (".parquet", ".gz")
_PACKED: Final = 10
"""How many times as large lines are."""


class NoJava(Exception):
    """Spark could not be started."""


def local_session(
    name: str,
    *,
    cores: int = 2,
    memory: str = "2g",
    shuffle_partitions: int | None = None,
    is_small: bool = False,
    more: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session in this process. `is_small`: whether it is for `SMALL_SETTINGS`; `more`: settings besides, as of
    sources that Spark does not bring."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).with_name("conf")))
    settings = SETTINGS | LOCAL_SETTINGS | (SMALL_SETTINGS if is_small else {})
    partitions = shuffle_partitions or (cores if is_small else 32 * cores)
    settings |= {"spark.driver.memory": memory, "spark.sql.shuffle.partitions": str(partitions)}
    return _quiet(SparkSession.builder.master(f"local[{cores}]").appName(name), settings | dict(more or {}))


def is_small(places: Iterable[str]) -> bool:
    """Whether `SMALL_SETTINGS` are for what is in these folders; what is elsewhere may be large."""
    if any("://" in place for place in places):
        return False
    return unpacked_bytes(path for place in places for path in Path(place).rglob("*") if path.is_file()) < SMALL_BYTES


def unpacked_bytes(files: Iterable[Path]) -> int:
    """How large files are, those that are packed about as large as the lines in them."""
    return sum(path.stat().st_size * (_PACKED if path.suffix in _PACKED_FILES else 1) for path in files)


@contextmanager
def session(
    name: str, *, cores: int, memory: str, is_small: bool = False, more: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Spark while the block runs: where and how spark-submit says, if that started this process, else in this process with
    `cores` and `memory`, the settings for what `is_small`, and `more`. Raises `NoJava`."""
    try:
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            spark = _quiet(SparkSession.builder.appName(name), SETTINGS)
        else:
            spark = local_session(name, cores=cores, memory=memory, is_small=is_small, more=more)
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        fetched = (more or {}).get("spark.jars.packages")
        why = f", and access to Maven Central for {fetched}, or the files of its jars" if fetched else ""
        raise NoJava(f"Spark did not start: it needs Java 17 or newer, on the PATH or in JAVA_HOME{why}") from error
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
