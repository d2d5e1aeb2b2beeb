"""One Spark that reads from Kafka and keeps tables in S3, for all tests of this folder."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from devcluster.building.spark_jars import kafka_jars, s3_jars
from devcluster.running.tokens import SPARK, machine_tokens
from kontroller.history.session import local_session
from kontroller.history.sources.kafka_topic import connector_settings


@pytest.fixture(scope="package")
def spark_with_connectors() -> Iterator[SparkSession]:
    with machine_tokens().hold(SPARK):
        connectors = connector_settings(f"{kafka_jars()},{s3_jars()}")
        session = local_session("real tests", shuffle_partitions=2, memory="1g", more=connectors)
        yield session
        session.stop()
