"""Prometheus counters of a broker: traffic, requests, refusals and ISR changes.

The counts start at 0 with the process. If nobody scrapes them, each costs one addition.
"""

from collections.abc import Collection

from kio.schema.errors import ErrorCode
from prometheus_client import CollectorRegistry, Counter

from controller_core.model.ids import BrokerId
from controller_core.wire.listener.refusals import Refusals


class BrokerCounters:
    """The counters of one process, by default in a registry of their own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.refusals = Refusals(self.registry)
        received_bytes = self._counter(
            "kontroller_broker_received_bytes_total",
            "Bytes of appended batches, by sender: producers, or the leaders of this broker's followers",
            "sender",
        )
        self._from_producers, self._from_leaders = map(received_bytes.labels, ("producer", "leader"))
        self._received_messages = self._counter(
            "kontroller_broker_received_messages_total", "Messages appended for producers"
        )
        sent_bytes = self._counter(
            "kontroller_broker_sent_bytes_total",
            "Bytes of batches in fetch responses, by receiver: consumers, or followers on other brokers",
            "receiver",
        )
        self._to_consumers, self._to_followers = map(sent_bytes.labels, ("consumer", "follower"))
        self._requests = self._counter("kontroller_broker_requests_total", "Received requests, by API", "api")
        self._refusals = self._counter(
            "kontroller_broker_refused_partitions_total",
            "Partitions of Produce and Fetch requests answered with an error",
            "api",
            "error",
        )
        self._shrinks = self._counter(
            "kontroller_broker_isr_shrinks_total", "ISR changes of partitions led by this broker that removed a replica"
        )
        self._expands = self._counter(
            "kontroller_broker_isr_expands_total", "ISR changes of partitions led by this broker that added a replica"
        )
        self._refused_isrs = self._counter(
            "kontroller_broker_isr_refusals_total",
            "ISR changes that were refused because the partition's state had changed",
        )

    def count_received_from_producer(self, size_bytes: int, messages: int) -> None:
        self._from_producers.inc(size_bytes)
        self._received_messages.inc(messages)

    def count_received_from_leader(self, size_bytes: int) -> None:
        self._from_leaders.inc(size_bytes)

    def count_sent(self, size_bytes: int, *, is_to_follower: bool) -> None:
        (self._to_followers if is_to_follower else self._to_consumers).inc(size_bytes)

    def count_request(self, api: str) -> None:
        self._requests.labels(api).inc()

    def count_refused(self, api: str, error_code: ErrorCode) -> None:
        self._refusals.labels(api, error_code.name).inc()

    def count_isr_change(self, before: Collection[BrokerId], after: Collection[BrokerId]) -> None:
        """Count a written ISR as a shrink, an expansion, or both."""
        self._shrinks.inc(bool(set(before) - set(after)))
        self._expands.inc(bool(set(after) - set(before)))

    def count_isr_refusal(self) -> None:
        self._refused_isrs.inc()

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(name, says, labels, registry=self.registry)
