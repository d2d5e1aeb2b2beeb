"""The journal as a Kafka topic: one message per line, in one partition, at least once.

A failed block is sent again as a whole, so a line may be in the topic twice. Messages of an old connection may also
arrive after those of a new one. So readers order by `(controller_epoch, seq)`, never by offset. The brokers of the
topic may be the very ones that the controller leads. While they are down, the writer waits in its own thread and
retries with a new producer. The controller does not notice. The topic's `max.message.bytes` limits the compressed line.
"""

from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from controller_core.journal.segments import Block, Unwritable
from controller_core.security.properties_file import InvalidProperties

PARTITION: Final = 0
_QUEUE_KIB: Final = 16_384
"""Size of the producer's buffer in KiB. Nearly all blocks are much smaller. The next block waits until it is
delivered."""
_MOST_BYTES: Final = 8 << 20
"""Bytes of a line before its compression. The largest one names all replicas in the failed directories of a broker."""
_TOO_LARGE: Final = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
_DELIVERY_TIMEOUT_MS: Final = 30_000
"""Milliseconds until an undelivered block counts as failed: longer than a failover of brokers takes."""
_GRACE_S: Final = 5.0
"""Extra seconds to wait for the producer, which gives up on its own."""


class TopicSink:
    """A `Sink` that produces each line to a topic. The key of a message is the cluster id.

    `security` returns librdkafka's settings for certificates and logins. It is called for each new producer, so that a
    retry uses renewed ones.
    """

    def __init__(
        self,
        topic: str,
        bootstrap: str,
        *,
        security: Callable[[], Mapping[str, str]] = dict,
        delivery_timeout_ms: int = _DELIVERY_TIMEOUT_MS,
    ) -> None:
        self._topic = topic
        self._bootstrap = bootstrap
        self._security = security
        self._delivery_timeout_ms = delivery_timeout_ms
        self._producer: Producer | None = None
        self._failures: list[KafkaError] = []
        """The reasons for undelivered messages of the current block."""
        self._trouble = ""
        """The last connection problem, such as a refused connection. It may be temporary."""

    def __str__(self) -> str:
        return f"topic {self._topic}"

    def write(self, block: Block) -> None:
        self._failures.clear()
        self._trouble = ""
        undelivered = 0
        try:
            producer = self._producer = self._producer or self._connect()
            for line in block.data.removesuffix(b"\n").split(b"\n"):
                producer.produce(
                    self._topic, line, key=block.cluster_id, partition=PARTITION, on_delivery=self._on_delivery
                )
            undelivered = producer.flush(self._delivery_timeout_ms / 1000 + _GRACE_S)
        except InvalidProperties as error:
            raise OSError(f"{self}: {error}") from error
        except BufferError as error:
            self._give_up()
            # The buffer was empty before, so the block does not fit into it.
            raise Unwritable(f"{self}: {error}") from error
        except KafkaException as error:
            self._failures.append(error.args[0])
        if undelivered or self._failures:
            reasons = [*(failure.str() for failure in self._failures), self._trouble]
            is_too_large = any(failure.code() in _TOO_LARGE for failure in self._failures)
            self._give_up()
            message = f"{self}: {', '.join(dict.fromkeys(reasons)).removesuffix(', ')}"
            raise Unwritable(message) if is_too_large else OSError(message)

    def close(self) -> None:
        """Drop the producer. No message is pending, because each block was delivered before the next was taken."""
        self._producer = None

    def _connect(self) -> Producer:
        return Producer(
            {
                **self._security(),
                "bootstrap.servers": self._bootstrap,
                "client.id": "kontroller-journal",
                "acks": "all",
                "enable.idempotence": True,
                # A broker takes any first sequence number of a new producer. If it has refused the batch before, such as
                # while it became the leader, librdkafka counts that one as delivered, too.
                "max.in.flight.requests.per.connection": 1,
                "message.timeout.ms": self._delivery_timeout_ms,
                "queue.buffering.max.kbytes": _QUEUE_KIB,
                "message.max.bytes": _MOST_BYTES,
                "compression.type": "lz4",
                "reconnect.backoff.max.ms": 2_000,
                # Final failures are in the delivery reports. Temporary ones are not worth a log line each.
                "log_level": 2,
                "error_cb": self._on_error,
            }
        )

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(error)

    def _on_error(self, error: KafkaError) -> None:
        self._trouble = error.str()

    def _give_up(self) -> None:
        """Abandon pending messages. The writer sends the block again, in order, with a new producer."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
