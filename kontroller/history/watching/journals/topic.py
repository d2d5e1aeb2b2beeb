"""The journal's Kafka topic, read from its first message, because an active problem may have begun there.

The client library reads in threads of its own, and a thread of this process waits for it. After a refusal by brokers
the next read connects again with the current certificates and logins.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from controller_core.security.properties_file import InvalidProperties
from kontroller.history.sources.journal_http import JournalUnreadable
from kontroller.history.watching.journals.journal import Chunk

_MOST_MESSAGES: Final = 5_000
_WAIT_S: Final = 0.2
_CONNECT_S: Final = 10.0
_REFUSALS: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL)


class TopicJournal:
    """All partitions of a topic, which many clusters may write to.

    `security`: librdkafka's settings of certificates and logins."""

    def __init__(self, topic: str, bootstrap: str, security: Callable[[], Mapping[str, str]] = dict) -> None:
        self._topic = topic
        self._bootstrap = bootstrap
        self._security = security
        self._consumer: Consumer | None = None
        self._unfinished: set[int] = set()
        """The partitions whose end has not been reached since their last message."""

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
        lines: list[bytes] = []
        for message in messages:
            fault, partition = message.error(), message.partition() or 0
            if fault is None:
                self._unfinished.add(partition)
                lines.append(message.value() or b"")
            elif fault.code() == KafkaError._PARTITION_EOF:
                self._unfinished.discard(partition)
            elif not lines:
                if fault.code() in _REFUSALS:
                    self._consumer = None
                    consumer.close()
                raise JournalUnreadable(f"{self.name} cannot be read: {fault.str()}")
        return Chunk(lines, not self._unfinished)

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
            self._unfinished = self._partitions(consumer)
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
