"""The journal as a Kafka topic: a message for each line, in one partition, at least once.

A block that failed comes again whole, so a line may be in the topic twice, and what an old connection had under way may
arrive behind what a new one sent: readers go by `(controller_epoch, seq)`, never by offsets. The brokers that hold the
topic may be the very ones that the controller leads. While they are away the writer waits, in its own thread, and tries
again with a new producer; the controller does not notice.
"""

from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from controller_core.journal.segments import Block
from controller_core.security.properties_file import InvalidProperties

PARTITION: Final = 0
_QUEUE_KIB: Final = 16_384
"""How much the client keeps in memory; a block is much smaller, and the next one waits for it."""
_DELIVERY_TIMEOUT_MS: Final = 30_000
"""How long a block may take before it counts as failed: longer than brokers need to fail over to each other."""
_GRACE_S: Final = 5.0
"""How much longer the client is waited for, which gives up by itself."""


class TopicSink:
    """A `Sink` that produces each line to a topic; the key of a message is the cluster's id.

    `security`: what librdkafka is told of certificates and logins, asked for each producer, so that one that failed is
    followed by one that knows of new ones."""

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
        self._failures: list[str] = []
        """Why messages of the present block were not delivered."""
        self._trouble = ""
        """What went wrong last on the way, such as a refused connection; it may pass."""

    def __str__(self) -> str:
        return f"topic {self._topic}"

    def write(self, block: Block) -> None:
        self._failures.clear()
        self._trouble = ""
        try:
            producer = self._producer = self._producer or self._connected()
            for line in block.data.removesuffix(b"\n").split(b"\n"):
                producer.produce(
                    self._topic, line, key=block.cluster_id, partition=PARTITION, on_delivery=self._on_delivery
                )
            undelivered = producer.flush(self._delivery_timeout_ms / 1000 + _GRACE_S)
        except (KafkaException, BufferError, InvalidProperties) as error:
            self._give_up()
            raise OSError(f"{self}: {error}") from error
        if undelivered or self._failures:
            reasons = ", ".join(dict.fromkeys([*self._failures, self._trouble])).removesuffix(", ")
            self._give_up()
            raise OSError(f"{self}: {reasons}")

    def close(self) -> None:
        """Nothing waits here: each block was delivered before the next was taken."""
        self._producer = None

    def _connected(self) -> Producer:
        return Producer(
            {
                **self._security(),
                "bootstrap.servers": self._bootstrap,
                "client.id": "kontroller-journal",
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": self._delivery_timeout_ms,
                "queue.buffering.max.kbytes": _QUEUE_KIB,
                "compression.type": "lz4",
                "reconnect.backoff.max.ms": 2_000,
                # What fails for good is in the reports; what it tried on the way is not worth a line each time.
                "log_level": 2,
                "error_cb": self._on_error,
            }
        )

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(error.str())

    def _on_error(self, error: KafkaError) -> None:
        self._trouble = error.str()

    def _give_up(self) -> None:
        """Leaves what is under way: it comes again, in its order, by a producer that knows nothing of it."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
