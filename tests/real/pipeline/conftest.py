"""One Spark that can read from Kafka, for all tests of this folder."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from devcluster.building.spark_jars import kafka_jars
from devcluster.running.tokens import SPARK, machine_tokens
from kontroller.history.session import local_session
from kontroller.history.sources.kafka_topic import connector_settings


@pytest.fixture(scope="package")
def spark_with_kafka() -> Iterator[SparkSession]:
    with machine_tokens().hold(SPARK):
        session = local_session("real tests", shuffle_partitions=2, memory="1g", more=connector_settings(kafka_jars()))
        yield session
        session.stop()
