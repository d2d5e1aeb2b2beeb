"""The journal's Kafka topic: lines as they are in files, one a message, at once or as they come.

Spark needs jars for it that it does not bring: the image has them (images/kontroller-history/pom.xml), elsewhere Spark
fetches them from Maven Central when it starts. A line may be in the topic twice, as its writer repeats what may not have
arrived: whoever reads goes by epoch and number.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
_CONNECTOR_FILES: Final = "spark-sql-kafka-*.jar"
MOST_AT_ONCE: Final = 2_000_000
"""Messages of a batch. What a day has is read and written again for each batch that has some of it."""


class NoConnector(Exception):
    """This Spark cannot read from Kafka."""


def connector_settings(jars: str = "") -> dict[str, str]:
    """Settings for a session that is to read from Kafka. `jars`: paths of the connector's jars, separated by commas;
    without them Spark has the connector itself, or fetches it."""
    if jars:
        return {"spark.jars": jars}
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    return {} if any((home / "jars").glob(_CONNECTOR_FILES)) else {"spark.jars.packages": CONNECTOR}


def lines(
    spark: SparkSession, topic: str, bootstrap_servers: str, options: Mapping[str, str] | None = None
) -> DataFrame:
    """The lines (`schemas.LINES`) that are in the topic now; `line` is the message's offset.

    `options` are Spark's for Kafka, such as `kafka.security.protocol`. Raises `NoConnector`; that the brokers are out of
    reach, or what was to be read is not there any more, is raised where the rows are read.
    """
    reader = spark.read.format("kafka").options(**_options(spark, topic, bootstrap_servers, options))
    try:
        return _lines(reader.load())
    except AnalysisException as error:
        raise _translated(error) from error


def stream(
    spark: SparkSession,
    topic: str,
    bootstrap_servers: str,
    options: Mapping[str, str] | None = None,
    *,
    most_at_once: int = MOST_AT_ONCE,
) -> DataFrame:
    """The same lines as a stream, from the first that is in the topic; not more than so many in a batch.

    The query ends with an error where messages were deleted before it read them. Raises `NoConnector`.
    """
    limits = {"maxOffsetsPerTrigger": str(most_at_once), **(options or {})}
    reader = spark.readStream.format("kafka").options(**_options(spark, topic, bootstrap_servers, limits))
    try:
        return _lines(reader.load())
    except AnalysisException as error:
        raise _translated(error) from error


def _options(
    spark: SparkSession, topic: str, bootstrap_servers: str, options: Mapping[str, str] | None
) -> dict[str, str]:
    own = {
        "kafka.bootstrap.servers": bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        # A journal is in order in one partition of the topic, which one task would read alone.
        "minPartitions": str(spark.sparkContext.defaultParallelism),
    }
    return own | dict(options or {})


def _lines(messages: DataFrame) -> DataFrame:
    return messages.select(
        f.col("value").cast("string").alias("value"),
        f.concat("topic", f.lit("-"), "partition").alias("source"),
        f.col("topic").alias("journal"),
        f.col("offset").alias("line"),
    )


def _translated(error: AnalysisException) -> Exception:
    if "kafka" not in str(error).lower() or "data source" not in str(error).lower():
        return error
    return NoConnector(
        "this Spark has no connector for Kafka: use the image kontroller-history, or start Spark with "
        f"--packages {CONNECTOR}"
    )
