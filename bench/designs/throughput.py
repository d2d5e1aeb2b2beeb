"""The throughput of the Python broker and a stock one: one client, topics of several shapes.

All brokers are in one cluster with our controller. The replicas of a topic are on brokers of one kind. librdkafka
writes records of 1,000 bytes to both kinds in turn, with acks=all, and reads those of single partitions back. The
compared figures are that client's, on a machine whose processors all of them share: a ratio of the same minute, and no
broker's limit.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import Broker
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.waiting.vocabulary import serve_topic

RECORD_BYTES: Final = 1_000
_READ_AT_ONCE: Final = 10_000
_AWAITED_OF: Final = 100
"""One of this number of records is written once more with nothing else in flight, because that takes much longer."""
_POLL_S: Final = 60
_STOCK, _OURS = (1, 3), (2, 4)
SHAPES: Final = ((1, 1), (6, 2), (100, 2))
"""The partitions and replicas of each topic."""


def throughput(folder: RunFolder, records: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the records a second, written and read, of each broker in each round."""
    with ExitStack() as stack:
        zookeeper = stack.enter_context(ZooKeeper(folder, name="throughput-zookeeper"))
        connect = f"{zookeeper.connect}/throughput"
        stack.enter_context(ControllerProcess(folder, connect, name="throughput-controller"))
        brokers: dict[str, list[Broker | PythonBroker]] = {
            "stock": [Broker(folder, connect, each, name=f"throughput-stock-{each}") for each in _STOCK],
            "python": [PythonBroker(folder, connect, each, name=f"throughput-ours-{each}") for each in _OURS],
        }
        for broker in (each for kind in brokers.values() for each in kind):
            stack.enter_context(broker)
        znodes = ClusterZnodes(stack.enter_context(open_client(connect)))
        for (partitions, replicas), number in product(SHAPES, range(1, rounds + 1)):
            for kind, members in brokers.items():
                topic = f"{kind}-{partitions}-{number}"
                ids = [broker.broker_id for broker in members]
                orders = [ids[:replicas], ids[::-1][:replicas] if replicas > 1 else ids[:1]]
                serve_topic(znodes, topic, [orders[each % 2] for each in range(partitions)])
                measured = _measure(members[0].address, topic, partitions, records)
                yield {"broker": kind, "run": number, "records": records, "replicas": replicas, **measured}


def _measure(bootstrap: str, topic: str, partitions: int, records: int) -> dict[str, Any]:
    """Return the records a second: written, and for a single partition also read, and written one by one."""
    measured: dict[str, Any] = {
        "partitions": partitions,
        "written_per_s": round(records / _write(bootstrap, topic, partitions, records)),
    }
    if partitions == 1:
        awaited = records // _AWAITED_OF
        awaited_s = _write(bootstrap, topic, partitions, awaited, is_each_awaited=True)
        measured["read_per_s"] = round(records / _read(bootstrap, topic, records))
        measured["awaited_per_s"] = round(awaited / awaited_s)
    return measured


def _write(bootstrap: str, topic: str, partitions: int, records: int, *, is_each_awaited: bool = False) -> float:
    """Return the seconds from the first record until the last acknowledgement. Raises `ValueError` if one fails."""
    failed: list[object] = []

    def note_error(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 0 if is_each_awaited else 5,
            "on_delivery": note_error,
        }
    )
    producer.list_topics(topic, _POLL_S)
    value = bytes(RECORD_BYTES)
    began_s = time.monotonic()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        producer.flush() if is_each_awaited else producer.poll(0)
    producer.flush()
    if failed:
        raise ValueError(f"{len(failed)} of {records} records were not written: {failed[0]}")
    return time.monotonic() - began_s


def _read(bootstrap: str, topic: str, records: int) -> float:
    """Return the seconds from the first answer until the last record. Raises `ValueError` if records are missing."""
    # A client with a full queue pauses for a second, which would count against the faster broker.
    settings = {"enable.auto.commit": False, "queued.max.messages.kbytes": 2 * records * RECORD_BYTES // 1_000}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", **settings})
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
