"""The journal's Kafka topic: one line per message, read at once or as a stream.

Spark needs additional jars for it. The image has them (images/kontroller-history/pom.xml); elsewhere Spark downloads
them from Maven Central at its start. The topic may have a line twice, because its writer repeats sends that may have
failed; epoch and number identify a record.
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
"""The messages of a batch. Each batch reads and rewrites the days that it touches."""


class NoConnector(Exception):
    """This Spark installation cannot read from Kafka."""


def connector_settings(jars: str = "") -> dict[str, str]:
    """Return the settings of a session that reads from Kafka.

    `jars`: comma-separated paths of the connector's jars; empty: Spark has the connector, or downloads it."""
    if jars:
        return {"spark.jars": jars}
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    return {} if any((home / "jars").glob(_CONNECTOR_FILES)) else {"spark.jars.packages": CONNECTOR}


def lines(
    spark: SparkSession, topic: str, bootstrap_servers: str, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the lines (`schemas.LINES`) that are in the topic now. `line` is the offset of the message.

    `options` are Spark's options for Kafka, such as `kafka.security.protocol`. Raises `NoConnector`. Unreachable
    brokers and deleted messages raise errors later, when the rows are read.
    """
    reader = spark.read.format("kafka").options(**_options(spark, topic, bootstrap_servers, options))
    try:
        return _lines(reader.load())
    except AnalysisException as error:
        raise _translate(error) from error


def stream(
    spark: SparkSession,
    topic: str,
    bootstrap_servers: str,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the same lines as a stream from the first message on, with a limit for each batch.

    The query fails if messages were deleted before it read them. Raises `NoConnector`.
    """
    limits = {"maxOffsetsPerTrigger": str(MOST_AT_ONCE), **(options or {})}
    reader = spark.readStream.format("kafka").options(**_options(spark, topic, bootstrap_servers, limits))
    try:
        return _lines(reader.load())
    except AnalysisException as error:
        raise _translate(error) from error


def _options(
    spark: SparkSession, topic: str, bootstrap_servers: str, options: Mapping[str, str] | None
) -> dict[str, str]:
    own = {
        "kafka.bootstrap.servers": bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        # A journal is in one partition of the topic for its order, and one task would read it alone.
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


def _translate(error: AnalysisException) -> Exception:
    if "kafka" not in str(error).lower() or "data source" not in str(error).lower():
        return error
    return NoConnector(
        "this Spark has no connector for Kafka: use the image kontroller-history, or start Spark with "
        f"--packages {CONNECTOR}"
    )
