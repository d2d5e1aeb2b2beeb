"""What a broker counts while it works, for Prometheus: what comes in and goes out, requests, refusals, changes of ISRs.

Counts are those of this process since it began. Where nobody scrapes them they cost an addition each.
"""

from collections.abc import Collection

from kio.schema.errors import ErrorCode
from prometheus_client import CollectorRegistry, Counter

from controller_core.model.ids import BrokerId


class BrokerCounters:
    """The counters of one process, in a registry of its own where none is given."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        received_bytes = self._counter(
            "kontroller_broker_received_bytes_total",
            "Bytes of batches that were appended, by who sent them: producers, or leaders to their followers here",
            "sender",
        )
        self._from_producers, self._from_leaders = map(received_bytes.labels, ("producer", "leader"))
        self._received_messages = self._counter(
            "kontroller_broker_received_messages_total", "Messages that were appended for producers"
        )
        sent_bytes = self._counter(
            "kontroller_broker_sent_bytes_total",
            "Bytes of batches in answers to fetches, by who asked: consumers, or followers elsewhere",
            "receiver",
        )
        self._to_consumers, self._to_followers = map(sent_bytes.labels, ("consumer", "follower"))
        self._requests = self._counter("kontroller_broker_requests_total", "Requests that were read, by API", "api")
        self._refusals = self._counter(
            "kontroller_broker_refused_partitions_total",
            "Partitions of Produce and Fetch requests that were answered with an error",
            "api",
            "error",
        )
        self._shrinks = self._counter(
            "kontroller_broker_isr_shrinks_total", "ISRs of partitions led here from which somebody was taken"
        )
        self._expands = self._counter(
            "kontroller_broker_isr_expands_total", "ISRs of partitions led here which somebody joined"
        )
        self._refused_isrs = self._counter(
            "kontroller_broker_isr_refusals_total", "ISRs that were not written, as the state was another one by then"
        )

    def received_from_producer(self, size_bytes: int, messages: int) -> None:
        self._from_producers.inc(size_bytes)
        self._received_messages.inc(messages)

    def received_from_leader(self, size_bytes: int) -> None:
        self._from_leaders.inc(size_bytes)

    def sent(self, size_bytes: int, *, is_to_follower: bool) -> None:
        (self._to_followers if is_to_follower else self._to_consumers).inc(size_bytes)

    def request_read(self, api: str) -> None:
        self._requests.labels(api).inc()

    def refused(self, api: str, error_code: ErrorCode) -> None:
        self._refusals.labels(api, error_code.name).inc()

    def isr_changed(self, before: Collection[BrokerId], after: Collection[BrokerId]) -> None:
        """An ISR was written. Both may be true of one change: somebody left and somebody joined."""
        self._shrinks.inc(bool(set(before) - set(after)))
        self._expands.inc(bool(set(after) - set(before)))

    def isr_refused(self) -> None:
        self._refused_isrs.inc()

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(name, says, labels, registry=self.registry)
