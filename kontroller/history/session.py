"""Spark sessions for the command line and the tests: on this machine, unless spark-submit says where. No web page;
times are UTC."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Other programs read these timestamps, and Spark can skip row groups by them. Its default allows neither.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    # Without its web page Spark still keeps a thousand queries with their plans, so keep few.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.showConsoleProgress": "false",
    # Plans have hundreds of columns. Spark and PySpark would note for each expression which line of Python made it, check
    # the plan after each rule of the optimizer, and print it with all details for the web page.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.ui.explainMode": "simple",
    # By default Spark gives up a small table that is not ready after five minutes. A busy machine needs longer.
    "spark.sql.broadcastTimeout": "-1",
}
LOCAL_SETTINGS = {
    # The collector with the highest throughput, because no request needs an answer in milliseconds. And Spark generates
    # methods of more than 8,000 bytes for wide tables, which Java compiles only with this flag.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:-DontCompileHugeMethods",
    # Small partitions are sorted within the processor's cache and memory. Spark merges those that are too small.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
# With the first compiler alone Java reserves 48 MB for compiled code. Spark fills that, and Java discards and recompiles
# code.
_FIRST_COMPILER: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
SMALL_SETTINGS = {
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC {_FIRST_COMPILER}",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for histories of some thousand records. Compiling and adaptive planning would cost more than they save."""
MIDDLE_SETTINGS = {
    "spark.driver.extraJavaOptions": f"{LOCAL_SETTINGS['spark.driver.extraJavaOptions']} {_FIRST_COMPILER}",
}
"""Settings for histories of some hundred thousand records. Only Java's second compiler would cost more than it saves."""
_ASKED_FOR_OFTEN: Final = ("PythonSQLUtils", "PythonUtils", "org.apache.spark.sql.functions")
"""Java classes that PySpark asks Java for with each column. Java searches all jars for some of them each time."""
_LARGEST_SMALL, _LARGEST_MIDDLE = 10_000_000, 100_000_000
"""The bytes of input up to which it is small, and neither small nor large: some ten thousand, and some hundred thousand
lines."""
_PACKED_FILES: Final = (".parquet", ".gz")
_PACKED: Final = 10
"""The ratio of unpacked to packed size of lines."""


class Size(Enum):
    """The size of the input, which decides how much compiling is worth."""

    SMALL = "small"
    MIDDLE = "middle"
    LARGE = "large"


_OF_SIZE: Final[Mapping[Size, dict[str, str]]] = {
    Size.SMALL: SMALL_SETTINGS,
    Size.MIDDLE: MIDDLE_SETTINGS,
    Size.LARGE: {},
}


class NoJava(Exception):
    """Spark could not be started."""


def local_session(
    name: str,
    *,
    cores: int = 2,
    memory: str = "2g",
    shuffle_partitions: int | None = None,
    size: Size = Size.LARGE,
    more: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session in this process. `size`: of its input. `more`: further settings, for example for sources that
    Spark does not include."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).with_name("conf")))
    settings = SETTINGS | LOCAL_SETTINGS | _OF_SIZE[size]
    partitions = shuffle_partitions or (cores if size is Size.SMALL else 32 * cores)
    settings |= {"spark.driver.memory": memory, "spark.sql.shuffle.partitions": str(partitions)}
    return _quiet(SparkSession.builder.master(f"local[{cores}]").appName(name), settings | dict(more or {}))


def find_size(places: Iterable[str]) -> Size:
    """Return the size of the contents of these folders. Remote places may be large."""
    if any("://" in place for place in places):
        return Size.LARGE
    files = (path for place in places for path in Path(place).rglob("*") if path.is_file())
    size_bytes = estimate_unpacked_bytes(files)
    if size_bytes <= _LARGEST_SMALL:
        return Size.SMALL
    return Size.MIDDLE if size_bytes <= _LARGEST_MIDDLE else Size.LARGE


def estimate_unpacked_bytes(files: Iterable[Path]) -> int:
    """Return the size of files, with an estimate for compressed ones."""
    return sum(path.stat().st_size * (_PACKED if path.suffix in _PACKED_FILES else 1) for path in files)


@contextmanager
def session(
    name: str, *, cores: int, memory: str, size: Size = Size.LARGE, more: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield a Spark session while the block runs. Raises `NoJava`.

    If spark-submit started this process, its settings hold. Otherwise the session runs in this process with `cores`,
    `memory`, the settings for input of this size, and `more`."""
    try:
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            spark = _quiet(SparkSession.builder.appName(name), SETTINGS)
        else:
            spark = local_session(name, cores=cores, memory=memory, size=size, more=more)
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
    java = spark.sparkContext._jvm
    for name in _ASKED_FOR_OFTEN:
        setattr(java, name, getattr(java, name))  # py4j itself remembers nothing
    return spark
