"""The journal's topic on real brokers, read by Spark: it reads exactly what the sink wrote."""

import json
import os
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from controller_core.journal.batches import Context, Requested
from controller_core.journal.segments import Block
from controller_core.journal.topic import PARTITION, TopicSink
from controller_core.journal.writer import JournalWriter
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.wire.connections.broker_properties import SecuredBrokers
from controller_core.wire.connections.java_clients import java_properties
from controller_core.wire.connections.librdkafka import librdkafka_source
from devcluster.building.spark_jars import kafka_jars
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import ADMIN, PASSWORDS, SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from kontroller.history.sources import kafka_topic
from tests.real.conftest import StartKafka

TOPIC = "history"


def lines_of(cluster: str, first_seq: int, count: int) -> list[str]:
    """Return journal lines of an idle controller."""
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
    start_kafka: StartKafka, spark_with_connectors: SparkSession, tmp_path: Path
) -> None:
    kafka = start_kafka(brokers=1)
    with open_client(kafka.zookeeper_connect) as client:  # an admin client that connects too early waits forever
        znodes = ClusterZnodes(client)
        serve_topic(znodes, TOPIC, [[1]])
    written = lines_of("c", 0, 50)
    sink = TopicSink(TOPIC, kafka.bootstrap_servers)
    sink.write(block("c", written, 0))
    read = kafka_topic.lines(spark_with_connectors, TOPIC, kafka.bootstrap_servers)
    assert read.rdd.getNumPartitions() == spark_with_connectors.sparkContext.defaultParallelism, "not by one task alone"
    rows = read.orderBy("line").collect()
    assert [row.value for row in rows] == written
    assert {(row.source, row.journal) for row in rows} == {(f"{TOPIC}-0", TOPIC)}
    assert [row.line for row in rows] == list(range(50))


@pytest.mark.real
@pytest.mark.timeout(600)
def test_a_record_that_the_brokers_find_too_large_is_a_gap_and_one_that_is_small_when_compressed_is_written(
    start_kafka: StartKafka,
) -> None:
    kafka = start_kafka(brokers=1)
    with open_client(kafka.zookeeper_connect) as client:
        serve_topic(ClusterZnodes(client), TOPIC, [[1]])
    writer = JournalWriter(TopicSink(TOPIC, kafka.bootstrap_servers))
    context = Context(
        cluster_id="c", controller_id=BrokerId(9), controller_epoch=ControllerEpoch(1), event_time_us=0,
        cause="request", correlation_id="1-1",
    )  # fmt: skip
    for api in ("x" * 4_000_000, os.urandom(2_000_000).hex(), "small"):
        writer.append(Requested(context=context, request={"api": api}))
    assert writer.close(60)
    with closing(Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "test"})) as consumer:
        consumer.assign([TopicPartition(TOPIC, PARTITION, 0)])
        found = [json.loads(message.value() or b"") for message in consumer.consume(3, timeout=60)]
    assert [(line["seq"], line["kind"]) for line in found] == [(0, "request"), (1, "gap"), (2, "request")]


@pytest.mark.real
@pytest.mark.timeout(600)
def test_what_is_written_to_brokers_that_want_a_login_is_read_by_the_same_properties_and_no_password_is_told(
    servers_folder: RunFolder, zookeeper: ZooKeeper, spark_with_connectors: SparkSession, tmp_path: Path
) -> None:
    names = ListenerNames(inter_broker="INTERNAL", clients="INTERNAL", protocols={"INTERNAL": "SASL_SSL"})
    with SecuredKafka(servers_folder, zookeeper, listeners=names, name="spark", authorizes=True, brokers=1) as kafka:
        kafka.start()
        file = kafka.write_properties()
        brokers = SecuredBrokers(file)
        with open_client(kafka.zookeeper_connect) as client:
            znodes = ClusterZnodes(client)
            serve_topic(znodes, TOPIC, [[1]])
        written = lines_of("c", 0, 50)
        sink = TopicSink(TOPIC, kafka.bootstrap_servers, security=librdkafka_source(brokers))
        sink.write(block("c", written, 0))
        told = java_properties(brokers.read().read_inter_broker_security())
        options = {f"kafka.{name}": value for name, value in told.items()}
        read = kafka_topic.lines(spark_with_connectors, TOPIC, kafka.bootstrap_servers, options)
        assert [row.value for row in read.orderBy("line").collect()] == written
        command = ("--topic", TOPIC, "--bootstrap-server", kafka.bootstrap_servers, "--properties", str(file))
        said, command_lines = ingest(tmp_path / "history", *command)
    kept = "".join(each.read_bytes().decode(errors="replace") for each in tmp_path.rglob("*") if each.is_file())
    assert list((tmp_path / "history").rglob("*.parquet")), said
    assert any("--properties" in each for each in command_lines), "it was looked at while it ran"
    told = {"said": said, "command lines": str(command_lines), "history": kept}
    assert [where for where, text in told.items() if PASSWORDS[ADMIN] in text] == []


def ingest(history: Path, *options: str) -> tuple[str, set[str]]:
    """Run `kontroller history ingest`; return its output, and all command lines of this machine while it ran."""
    command = [sys.executable, "-m", "kontroller", "history", "ingest", "--history", str(history)]
    command += ["--jars", kafka_jars(), "--memory", "1g", *options]
    seen: set[str] = set()
    with (history.parent / "said").open("w+") as log:
        with subprocess.Popen(command, stdout=log, stderr=log) as running:
            wait_until(lambda: has_ended(running, seen), "all is taken in", silence_s=300)
        assert running.returncode == 0, (history.parent / "said").read_text()
    return (history.parent / "said").read_text(), seen


def has_ended(running: subprocess.Popen[bytes], seen: set[str]) -> bool:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended in between
            seen.add(file.read_bytes().decode(errors="replace").replace("\0", " "))
    return running.poll() is not None
