"""How many messages a second the Python broker takes and gives, beside a stock one: one client, one partition each.

Both are members of one cluster with our controller, and each leads a topic of one partition with one replica. librdkafka
writes records of 1,000 bytes to the one and the other in turn, with acks=all, and reads them back. What is compared is what
that client sees, on a machine where all of them share the processors: a ratio of the same minute, and no broker's limit.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import Broker
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, connected_client
from devcluster.running.processes import wait_until

RECORD_BYTES: Final = 1_000
_READ_AT_ONCE: Final = 10_000
_AWAITED_OF: Final = 100
"""One in so many is written once more with nothing else under way, which takes so much longer."""
_POLL_S: Final = 60
_STOCK, _OURS = 1, 2


def throughput(folder: RunFolder, records: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Records a second, written and read, of each broker in each round."""
    with ZooKeeper(folder, name="throughput-zookeeper") as zookeeper:
        connect = f"{zookeeper.connect}/throughput"
        with (
            ControllerProcess(folder, connect, name="throughput-controller"),
            Broker(folder, connect, _STOCK, name="throughput-stock") as stock,
            PythonBroker(folder, connect, _OURS, name="throughput-ours") as ours,
            connected_client(connect) as client,
        ):
            znodes = ClusterZnodes(client)
            for number in range(1, rounds + 1):
                for name, broker in (("stock", stock), ("python", ours)):
                    topic = f"{name}-{number}"
                    znodes.create_topic(topic, [[broker.broker_id]])
                    wait_until(lambda topic=topic: znodes.is_served(topic, [0]), f"{topic} is led")  # type: ignore[misc]  # a default
                    written_s = _write(broker.address, topic, records)
                    read_s = _read(broker.address, topic, records)
                    awaited_s = _write(broker.address, topic, records // _AWAITED_OF, is_each_awaited=True)
                    yield {
                        "broker": name,
                        "run": number,
                        "records": records,
                        "written_per_s": round(records / written_s),
                        "read_per_s": round(records / read_s),
                        "awaited_per_s": round(records // _AWAITED_OF / awaited_s),
                    }


def _write(bootstrap: str, topic: str, records: int, *, is_each_awaited: bool = False) -> float:
    """Seconds from the first record until the last acknowledgement. Raises `ValueError` where one fails."""
    failed: list[object] = []

    def heard(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0 if is_each_awaited else 5, "on_delivery": heard}
    )
    producer.list_topics(topic, _POLL_S)
    value = bytes(RECORD_BYTES)
    began_s = time.monotonic()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        producer.flush() if is_each_awaited else producer.poll(0)
    producer.flush()
    if failed:
        raise ValueError(f"{len(failed)} of {records} records were not written: {failed[0]}")
    return time.monotonic() - began_s


def _read(bootstrap: str, topic: str, records: int) -> float:
    """Seconds from the first answer until the last record. Raises `ValueError` where they do not come."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        read = len(consumer.consume(1, _POLL_S))
        began_s = time.monotonic()
        while read < records:
            messages = consumer.consume(min(_READ_AT_ONCE, records - read), _POLL_S)
            if not messages:
                raise ValueError(f"only {read} of {records} records came from {topic}")
            read += len(messages)
        return time.monotonic() - began_s
    finally:
        consumer.close()
