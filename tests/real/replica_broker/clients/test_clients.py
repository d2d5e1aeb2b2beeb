"""Clients of three kinds write and read through our broker, as a leader and as a follower of stock brokers."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from devcluster.clients import tools
from devcluster.clients.load import AckedProducer, read_back
from devcluster.clusters.kontroller import run_command
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_acknowledged, wait_until_led, wait_until_moved
from tests.real.replica_broker.mixed import OURS, MixedCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

BOTH_WAYS = [[3, 1], [1, 3], [2, 3]]
"""One partition that ours leads, two that it follows."""
LINES = [f"line {number}" for number in range(300)]


def test_kafkas_own_console_tools_write_and_read_by_our_broker(cluster: MixedCluster) -> None:
    cluster.serve_topic("spoken", BOTH_WAYS)
    produced = tools.run_tool(
        tools.CONSOLE_PRODUCER,
        *("--bootstrap-server", cluster.ours.address, "--topic", "spoken"),
        stdin="\n".join(LINES),
    )
    assert (produced.returncode, produced.stderr) == (0, ""), produced.stderr
    consumed = tools.run_tool(
        tools.CONSOLE_CONSUMER,
        *("--bootstrap-server", cluster.ours.address, "--topic", "spoken", "--group", "listeners"),
        *("--from-beginning", "--max-messages", str(len(LINES)), "--timeout-ms", "60000"),
    )
    assert sorted(consumed.stdout.splitlines()) == sorted(LINES), consumed.stderr


def test_librdkafka_writes_and_reads_by_our_broker(cluster: MixedCluster) -> None:
    cluster.serve_topic("driven", BOTH_WAYS)
    with nothing_lost(cluster.ours.address, "driven") as producer:
        wait_until_acknowledged(producer, 300)
    assert producer.stop().errors == []
    assert {one.partition for one in producer.stop().acknowledged} == {0, 1, 2}


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_kafka_python_writes_and_reads_by_our_broker(cluster: MixedCluster, codec: str | None) -> None:
    topic = f"scripted-{codec}"
    cluster.serve_topic(topic, BOTH_WAYS)
    producer = KafkaProducer(bootstrap_servers=cluster.ours.address, compression_type=codec, acks="all")
    futures = [producer.send(topic, value=line.encode()) for line in LINES]
    producer.flush()
    assert all(future.get(timeout=30).offset >= 0 for future in futures)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=cluster.ours.address, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, number) for number in range(3)])
    read: list[str] = []

    def has_all() -> bool:
        for messages in consumer.poll(timeout_ms=500).values():
            read.extend(message.value.decode() for message in messages)
        return len(read) >= len(LINES)

    wait_until(has_all, "all lines are read")
    consumer.close()
    assert sorted(read) == sorted(LINES)


def test_what_a_stock_follower_has_of_our_leader_is_the_same_bytes(cluster: MixedCluster) -> None:
    cluster.serve_topic("copied", BOTH_WAYS)
    with AckedProducer(cluster.bootstrap, "copied") as producer:
        wait_until_acknowledged(producer, 300)
    for partition, (stock, _) in enumerate([(1, 3), (1, 3), (2, 3)]):
        name = f"copied-{partition}/00000000000000000000.log"
        theirs = cluster.kafka.broker(stock).log_folder / name
        own = cluster.ours.log_folder / name
        wait_until(
            lambda theirs=theirs, own=own: theirs.read_bytes() == own.read_bytes(),  # type: ignore[misc]  # defaults
            f"both have the same of partition {partition}",
        )


def test_what_our_broker_did_is_in_its_metrics(cluster: MixedCluster) -> None:
    def metric(name: str) -> float:
        return cluster.ours.metric(f"kontroller_broker_{name}") or 0.0

    cluster.serve_topic("counted", BOTH_WAYS, {"min.insync.replicas": "2"})
    before = metric("received_messages_total")
    with AckedProducer(cluster.bootstrap, "counted") as producer:
        wait_until_acknowledged(producer, 300)
    acknowledged = [one for one in producer.stop().acknowledged if one.partition == 0]
    assert metric("received_messages_total") - before >= len(acknowledged) > 0
    for sender in ("producer", "leader"):
        assert metric(f'received_bytes_total{{sender="{sender}"}}') > 0
    wait_until(lambda: metric("under_replicated_partitions") == 0, "all that it leads is in sync")
    assert (metric("registered"), metric("under_min_isr_partitions")) == (1, 0)
    assert metric("partitions") >= 3 > metric("offline_log_directories") == 0
    assert metric('requests_total{api="Produce"}') > 0
    assert metric(f'log_bytes{{directory="{cluster.ours.log_folder}"}}') > 0


def test_tools_describe_our_broker_as_they_do_stock_ones(cluster: MixedCluster) -> None:
    cluster.serve_topic("described", [[3, 1, 2]], {"min.insync.replicas": "2"})
    to_ours = ("--bootstrap-server", cluster.ours.address)
    topics = tools.run_tool(tools.TOPICS, *to_ours, "--describe", "--topic", "described")
    assert "Leader: 3\tReplicas: 3,1,2" in topics.stdout, topics.stderr
    assert "min.insync.replicas=2" in topics.stdout
    log_dirs = tools.run_tool(tools.LOG_DIRS, *to_ours, "--describe", "--broker-list", str(OURS))
    assert f'"logDir":"{cluster.ours.log_folder}"' in log_dirs.stdout, log_dirs.stderr
    assert '"partition":"described-0"' in log_dirs.stdout
    ready = run_command("ready", "--bootstrap-server", cluster.ours.address, "--broker-id", str(OURS))
    assert ready.returncode == 0, ready.stdout


def test_a_transaction_is_refused_where_ours_leads_and_does_not_hang_for_that(cluster: MixedCluster) -> None:
    cluster.serve_topic("transacted", [[3, 1], [1, 3]])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "mine", "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    heard: list[KafkaError | None] = []
    producer.produce("transacted", b"x", partition=0, on_delivery=lambda error, _: heard.append(error))
    producer.flush(30)
    assert [error is not None for error in heard] == [True]
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce("transacted", b"y", partition=1, on_delivery=lambda error, _: heard.append(error))
    producer.commit_transaction(30)
    assert heard[1:] == [None]
    assert read_back(cluster.bootstrap, "transacted") == {"y"}


def test_a_transaction_whose_partition_comes_to_ours_ends_in_its_log(cluster: MixedCluster) -> None:
    cluster.serve_topic("moved-open", [[1, 3]])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "moved", "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("moved-open", b"aborted", partition=0)
    assert producer.flush(30) == 0
    _prefer(cluster, "moved-open", [OURS, 1])
    producer.abort_transaction(30)
    _prefer(cluster, "moved-open", [1, OURS])
    producer.begin_transaction()
    producer.produce("moved-open", b"kept", partition=0)
    producer.commit_transaction(30)
    assert read_back(cluster.bootstrap, "moved-open") == {"kept"}
    logs = [cluster.broker(one).log_folder / "moved-open-0/00000000000000000000.log" for one in (1, OURS)]
    wait_until(lambda: logs[0].read_bytes() == logs[1].read_bytes(), "both have the same bytes")


def _prefer(cluster: MixedCluster, topic: str, replicas: list[int]) -> None:
    """Make the first of its replicas lead partition 0; the replicas stay the same, in another order."""
    cluster.znodes.reassign({(topic, 0): replicas})
    wait_until_moved(cluster.znodes, topic, replicas)
    cluster.znodes.elect_preferred([(topic, 0)])
    wait_until_led(cluster.znodes, topic, replicas[0])


def test_kafkas_tools_alter_a_topic_and_move_it_under_a_throttle_through_ours(
    cluster: MixedCluster, tmp_path: Path
) -> None:
    cluster.serve_topic("tooled", [[1, 2]])
    to_ours = ("--bootstrap-server", cluster.ours.address)
    topic = ("--entity-type", "topics", "--entity-name", "tooled")
    altered = tools.run_tool(tools.CONFIGS, *to_ours, "--alter", *topic, "--add-config", "max.message.bytes=5000")
    assert altered.returncode == 0, altered.stdout + altered.stderr
    assert cluster.znodes.read("/config/topics/tooled")["config"]["max.message.bytes"] == "5000"
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"tooled","partition":0,"replicas":[3,2]}]}')
    asked = ("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan))
    moved = tools.run_tool(tools.REASSIGN_PARTITIONS, *asked, "--execute", "--throttle", "10000000")
    assert moved.returncode == 0, moved.stdout + moved.stderr
    wait_until_moved(cluster.znodes, "tooled", [3, 2])
    verified = tools.run_tool(tools.REASSIGN_PARTITIONS, *asked, "--verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "Clearing broker-level throttles on broker" in verified.stdout, verified.stdout
    assert cluster.znodes.read("/config/brokers/3")["config"] == {}
