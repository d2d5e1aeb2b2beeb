"""A topic that cannot be read is reported in one line, soon, with advice."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from devcluster.running.ports import release_port, reserve_port
from kontroller.history.kept_history import KeptHistory
from kontroller.history.pipelines.topic import TopicUnreadable, ingest_topic
from tests.real.conftest import StartKafka

SOON = {"kafka.default.api.timeout.ms": "5000", "kafka.request.timeout.ms": "4000"}


@pytest.mark.real
@pytest.mark.timeout(120)
def test_brokers_that_do_not_answer_are_named(spark_with_connectors: SparkSession, tmp_path: Path) -> None:
    kept = KeptHistory.open_history(spark_with_connectors, str(tmp_path / "history"))
    port = reserve_port()
    try:
        with pytest.raises(
            TopicUnreadable, match=f"topic journal of 127.0.0.1:{port} could not be read: no broker answered"
        ):
            ingest_topic(kept, "journal", f"127.0.0.1:{port}", SOON)
    finally:
        release_port(port)


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_topic_that_is_not_there_is_named(
    start_kafka: StartKafka, spark_with_connectors: SparkSession, tmp_path: Path
) -> None:
    kept = KeptHistory.open_history(spark_with_connectors, str(tmp_path / "history"))
    with pytest.raises(TopicUnreadable, match=r"topic misspelled of .*: there is no such topic"):
        ingest_topic(kept, "misspelled", start_kafka(brokers=1).bootstrap_servers, SOON)
