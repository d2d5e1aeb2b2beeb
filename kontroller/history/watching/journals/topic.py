"""The journal's Kafka topic, read from its first message, because an active problem may have begun there.

The client library reads in threads of its own, and a thread of this process waits for it. After a refusal by brokers
the next read connects again with the current certificates and logins.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from controller_core.security.properties_file import InvalidProperties
from kontroller.history.sources.journal_http import JournalUnreadable
from kontroller.history.watching.journals.journal import Chunk

_MOST_MESSAGES: Final = 5_000
_WAIT_S: Final = 0.2
_CONNECT_S: Final = 10.0
_QUIET_S: Final = 10.0
"""The time after which a partition counts as unreadable if neither a message nor its end has come."""
_REFUSALS: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL)


class TopicJournal:
    """All partitions of a topic, which many clusters may write to.

    `security`: librdkafka's settings of certificates and logins."""

    def __init__(self, topic: str, bootstrap: str, security: Callable[[], Mapping[str, str]] = dict) -> None:
        self._topic = topic
        self._bootstrap = bootstrap
        self._security = security
        self._consumer: Consumer | None = None
        self._unfinished: dict[int, float] = {}
        """The partitions whose end has not been reached, with the time of the last message, by the monotonic clock."""

    @property
    def name(self) -> str:
        return f"kafka://{self._bootstrap}/{self._topic}"

    async def read(self) -> Chunk:
        return await asyncio.to_thread(self._read)

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await asyncio.to_thread(consumer.close)

    def _read(self) -> Chunk:
        try:
            consumer = self._consumer = self._consumer or self._connect()
            messages = consumer.consume(_MOST_MESSAGES, _WAIT_S)
        except (KafkaException, InvalidProperties) as error:
            raise JournalUnreadable(f"{self.name} cannot be read: {error}") from error
        now_s, failure, lines = time.monotonic(), None, list[bytes]()
        for message in messages:
            fault, partition = message.error(), message.partition() or 0
            if fault is None:
                self._unfinished[partition] = now_s
                lines.append(message.value() or b"")
            elif fault.code() == KafkaError._PARTITION_EOF:
                self._unfinished.pop(partition, None)
            else:
                failure = fault
        if failure is not None and not lines:
            if failure.code() in _REFUSALS:
                self._consumer = None
                consumer.close()
            raise JournalUnreadable(f"{self.name} cannot be read: {failure.str()}")
        self._finish(consumer)
        quiet = [number for number, heard_s in self._unfinished.items() if now_s - heard_s > _QUIET_S]
        if quiet and not lines:
            raise JournalUnreadable(
                f"{self.name} cannot be read: partition {quiet[0]} has not answered for {_QUIET_S} s"
            )
        return Chunk(lines, len(quiet) == len(self._unfinished))

    def _finish(self, consumer: Consumer) -> None:
        """Note the partitions that have been read up to the high watermark of the last fetch.

        The library reports an end only after a fetch that has waited for messages in vain, which a busy topic never
        gives it. That report is needed for a partition without messages, or with a transaction's marker at its end."""
        with suppress(KafkaException):  # the lines of this read count, and the next read tries again
            for at in consumer.position([TopicPartition(self._topic, number) for number in self._unfinished]):
                _, high = consumer.get_watermark_offsets(at, cached=True)
                if 0 <= high <= at.offset:
                    del self._unfinished[at.partition]

    def _connect(self) -> Consumer:
        consumer = Consumer(
            {
                **self._security(),
                "bootstrap.servers": self._bootstrap,
                "client.id": "kontroller-watch",
                "group.id": "kontroller-watch",  # the library requires a group, but none is joined
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "reconnect.backoff.max.ms": 2_000,
                "log_level": 2,
            }
        )
        try:
            self._unfinished = dict.fromkeys(self._partitions(consumer), time.monotonic())
            consumer.assign([TopicPartition(self._topic, number, OFFSET_BEGINNING) for number in self._unfinished])
        except KafkaException:
            consumer.close()
            raise
        return consumer

    def _partitions(self, consumer: Consumer) -> set[int]:
        found = consumer.list_topics(self._topic, timeout=_CONNECT_S).topics[self._topic]
        if found.error is not None:
            raise KafkaException(found.error)
        return set(found.partitions)
