"""Without the jars for Kafka, the error says what to do. The rest needs brokers: tests/real/pipeline."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from kontroller.history.sources import kafka_topic

Read = Callable[[SparkSession, str, str], DataFrame]


@pytest.mark.parametrize("read", [kafka_topic.lines, kafka_topic.stream])
def test_a_spark_without_the_connector_is_told_where_there_is_one(spark: SparkSession, read: Read) -> None:
    with pytest.raises(kafka_topic.NoConnector, match="use the image kontroller-history"):
        read(spark, "history", "127.0.0.1:1")
