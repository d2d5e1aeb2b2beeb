"""Our broker as a leader answers and refuses like a stock leader, for the same records."""

from functools import partial
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import Consumer as Consumer
from confluent_kafka import KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from devcluster.clients import tools
from replica_broker.log.record_batches import read_batches
from tests.real.replica_broker.mixed import MixedCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

OURS_AND_STOCK = [[3, 1], [1, 3]]
"""Our broker leads partition 0, a stock one partition 1."""
BEGIN_MS = 1_700_000_000_000
KEPT = {"retention.ms": "-1"}
"""Without it a stock broker deletes these old records when it next looks for some, thirty seconds after its start."""
TIMES_MS = [BEGIN_MS + 10 * (number if number < 58 else 115 - number) for number in range(100)]
"""The times rise to record 57, and fall from there."""
LATEST_RECORD: Any = confluent_kafka.admin.OffsetSpec.max_timestamp()  # type: ignore[attr-defined, no-untyped-call]  # untyped there
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def produce(cluster: MixedCluster, topic: str, partition: int, codec: str, *, keys: list[bytes | None]) -> list[Any]:
    """Send a record for each key, all in one batch; return the error of each, None if it was acknowledged."""
    settings = {"bootstrap.servers": cluster.bootstrap, "compression.type": codec, "linger.ms": 500}
    producer, errors = Producer(settings), [None] * len(keys)

    def tell(number: int, error: Any, _message: object) -> None:
        errors[number] = error

    for number, key in enumerate(keys):
        producer.produce(
            topic,
            b"value" * 20,
            key,
            partition=partition,
            timestamp=TIMES_MS[number],
            on_delivery=partial(tell, number),
        )
    assert producer.flush(60) == 0
    return errors


@pytest.mark.parametrize("codec", CODECS)
def test_offsets_by_time_are_the_same(cluster: MixedCluster, codec: str) -> None:
    topic = f"timed-{codec}"
    cluster.serve_topic(topic, OURS_AND_STOCK, KEPT)
    for partition in (0, 1):
        assert produce(cluster, topic, partition, codec, keys=[None] * 100) == [None] * 100
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "nobody"})
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    try:
        for time_ms in (BEGIN_MS - 1, BEGIN_MS, BEGIN_MS + 77, BEGIN_MS + 575, max(TIMES_MS), max(TIMES_MS) + 1):
            asked = [TopicPartition(topic, partition, time_ms) for partition in (0, 1)]
            ours, stock = (each.offset for each in consumer.offsets_for_times(asked, timeout=30))
            assert ours == stock, f"the first offset at {time_ms} or later"
        latest = admin.list_offsets({TopicPartition(topic, partition): LATEST_RECORD for partition in (0, 1)})
        ours, stock = (each.result(30).offset for each in latest.values())
        assert ours == stock == TIMES_MS.index(max(TIMES_MS))
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", CODECS)
def test_a_record_without_a_key_is_not_taken_into_a_compacted_topic(cluster: MixedCluster, codec: str) -> None:
    topic = f"compacted-{codec}"
    cluster.serve_topic(topic, OURS_AND_STOCK, {"cleanup.policy": "compact"})
    for partition in (0, 1):
        assert produce(cluster, topic, partition, codec, keys=[b"a", b"b"]) == [None, None]
        errors = produce(cluster, topic, partition, codec, keys=[b"a", None])
        assert {error.code() for error in errors if error is not None} == {KafkaError.INVALID_RECORD}, partition


@pytest.mark.parametrize("side", ["before", "after"])
def test_times_that_the_topic_does_not_allow_are_refused(cluster: MixedCluster, side: str) -> None:
    topic = f"in-time-{side}"
    cluster.serve_topic(topic, OURS_AND_STOCK, {f"message.timestamp.{side}.max.ms": "60000"})
    for partition in (0, 1):
        (error,) = produce(cluster, topic, partition, "lz4", keys=[None])
        is_refused = error is not None and error.code() == KafkaError.INVALID_TIMESTAMP
        assert is_refused == (side == "before"), f"partition {partition}: {error}"


@pytest.mark.parametrize("codec", ["uncompressed", *CODECS[1:]])
def test_records_are_stored_as_the_topic_says_it_and_are_read_by_every_client(
    cluster: MixedCluster, codec: str
) -> None:
    topic = f"stored-{codec}"
    cluster.serve_topic(topic, OURS_AND_STOCK, {**KEPT, "compression.type": codec})
    sent = "zstd" if codec == "uncompressed" else "none"
    for partition in (0, 1):
        assert produce(cluster, topic, partition, sent, keys=[None] * 100) == [None] * 100
        log_file = cluster.broker(3 if partition == 0 else 1).log_folder / f"{topic}-{partition}" / f"{0:020d}.log"
        stored = {each.compression.name.lower() for each in read_batches(log_file.read_bytes())}
        assert stored == {codec.replace("uncompressed", "none")}, partition
        read = tools.run_tool(
            tools.CONSOLE_CONSUMER,
            *("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--partition", str(partition)),
            *("--offset", "earliest", "--max-messages", "100", "--timeout-ms", "60000"),
        )
        assert read.stdout.splitlines() == ["value" * 20] * 100, read.stderr
    nobody = {"group.id": "nobody", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **nobody})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in (0, 1)])
        found = [message.value() for message in consumer.consume(200, timeout=60)]
        assert found == [b"value" * 20] * 200
    finally:
        consumer.close()


def test_producers_are_refused_where_a_topic_asks_for_what_is_not_done_here(cluster: MixedCluster) -> None:
    cluster.serve_topic("flushed-each", OURS_AND_STOCK, {"flush.messages": "1"})
    (ours,), (stock,) = (produce(cluster, "flushed-each", partition, "none", keys=[None]) for partition in (0, 1))
    assert (ours and ours.code(), stock) == (KafkaError.INVALID_CONFIG, None)
