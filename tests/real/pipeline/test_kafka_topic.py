"""The journal's topic on real brokers, read by Spark: what the sink wrote is what is read."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controller_core.journal.segments import Block
from controller_core.journal.topic import TopicSink
from controller_core.wire.connections.broker_properties import SecuredBrokers
from controller_core.wire.connections.java_clients import java_properties
from controller_core.wire.connections.librdkafka import librdkafka_source
from controller_pipeline.sources import kafka_topic
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper, connected_client
from devcluster.running.processes import wait_until
from tests.real.conftest import StartKafka

TOPIC = "history"


def lines_of(cluster: str, first_seq: int, count: int) -> list[str]:
    """Journal lines of a quiet controller."""
    common = {"v": 1, "cluster_id": cluster, "controller_id": 9, "controller_epoch": 1}
    return [
        json.dumps(
            {
                **common,
                "seq": seq,
                "event_time_us": 1_700_000_000_000_000 + seq,
                "kind": "controller_alive",
                "cause": "alive",
                "correlation_id": f"1-{seq}",
            }
        )
        for seq in range(first_seq, first_seq + count)
    ]


def block(cluster: str, lines: list[str], first_seq: int) -> Block:
    data = "".join(f"{line}\n" for line in lines).encode()
    return Block(cluster_id=cluster, epoch=1, first_seq=first_seq, data=data)


@pytest.mark.real
@pytest.mark.timeout(600)
def test_spark_reads_from_the_topic_the_lines_that_the_sink_wrote(
    start_kafka: StartKafka, spark_with_kafka: SparkSession, tmp_path: Path
) -> None:
    kafka = start_kafka(brokers=1)
    with connected_client(kafka.zookeeper_connect) as client:  # an admin client that asks too soon waits for good
        znodes = ClusterZnodes(client)
        znodes.create_topic(TOPIC, [[1]])
        wait_until(lambda: znodes.is_served(TOPIC, [0]), "the topic is served", deadline_s=60)
    written = lines_of("c", 0, 50)
    sink = TopicSink(TOPIC, kafka.bootstrap_servers)
    sink.write(block("c", written, 0))
    read = kafka_topic.lines(spark_with_kafka, TOPIC, kafka.bootstrap_servers)
    assert read.rdd.getNumPartitions() == spark_with_kafka.sparkContext.defaultParallelism, "not by one task alone"
    rows = read.orderBy("line").collect()
    assert [row.value for row in rows] == written
    assert {(row.source, row.journal) for row in rows} == {(f"{TOPIC}-0", TOPIC)}
    assert [row.line for row in rows] == list(range(50))


@pytest.mark.real
@pytest.mark.timeout(600)
def test_what_is_written_to_brokers_that_want_a_login_is_read_by_the_same_properties(
    servers_folder: RunFolder, zookeeper: ZooKeeper, spark_with_kafka: SparkSession
) -> None:
    names = ListenerNames(inter_broker="INTERNAL", clients="INTERNAL", protocols={"INTERNAL": "SASL_SSL"})
    with SecuredKafka(servers_folder, zookeeper, listeners=names, name="spark", authorizes=True, brokers=1) as kafka:
        kafka.start()
        brokers = SecuredBrokers(kafka.write_properties())
        with connected_client(kafka.zookeeper_connect) as client:
            znodes = ClusterZnodes(client)
            znodes.create_topic(TOPIC, [[1]])
            wait_until(lambda: znodes.is_served(TOPIC, [0]), "the topic is served", deadline_s=60)
        written = lines_of("c", 0, 50)
        sink = TopicSink(TOPIC, kafka.bootstrap_servers, security=librdkafka_source(brokers))
        sink.write(block("c", written, 0))
        told = java_properties(brokers.read().of_brokers())
        options = {f"kafka.{name}": value for name, value in told.items()}
        read = kafka_topic.lines(spark_with_kafka, TOPIC, kafka.bootstrap_servers, options)
        assert [row.value for row in read.orderBy("line").collect()] == written
