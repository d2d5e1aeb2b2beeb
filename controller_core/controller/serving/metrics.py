"""Prometheus metrics of a controller, for operators of Kafka.

The counts over all partitions are computed at each scrape, not at each change of a partition.
"""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller_core.controller.loop.answer_meanings import Meaning
from controller_core.controller.loop.faults import Fault
from controller_core.controller.role.hindrance import Hindrance
from controller_core.controller.state.unusable_znodes import UnusableZnodes
from controller_core.controller.term.term import Term

_EVENT_SECONDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Most events take a millisecond. On a large cluster one may take seconds, and holds up all others for that time."""


class ControllerMetrics:
    """The metrics of one process. `observe` sets the sources of the gauges."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.event_queue_time = Histogram(
            "kontroller_event_queue_time_seconds",
            "Time that events waited in the queue",
            buckets=_EVENT_SECONDS,
            registry=registry,
        )
        self.event_time = Histogram(
            "kontroller_event_time_seconds",
            "Time to handle an event",
            ["event"],
            buckets=_EVENT_SECONDS,
            registry=registry,
        )
        self.event_errors = Counter(
            "kontroller_event_errors_total",
            "Events that ended in an unexpected error, by the error's class",
            ["event", "fault"],
            registry=registry,
        )
        self.terms = Counter("kontroller_terms_total", "Terms of this process as the controller", registry=registry)
        self.leader_elections = Counter(
            "kontroller_leader_elections_total",
            "Leaders elected, except the first leaders of new partitions",
            registry=registry,
        )
        self.unclean_leader_elections = Counter(
            "kontroller_unclean_leader_elections_total",
            "Leaders elected from outside the ISR: acknowledged messages may be lost",
            registry=registry,
        )
        self.broker_refusals = Counter(
            "kontroller_broker_refusals_total",
            "Errors in brokers' answers to control requests: of a whole request, or of one partition in it",
            ["request", "error", "meaning"],
            registry=registry,
        )
        self._registry = registry

    def count_elections(self, number: int, *, unclean: int) -> None:
        """Count elections of leaders, and how many of them were unclean."""
        self.leader_elections.inc(number)
        self.unclean_leader_elections.inc(unclean)

    def count_refusal(self, request: str, error: str, meaning: Meaning) -> None:
        """Count an error in a broker's answer."""
        self.broker_refusals.labels(request.removesuffix("Request"), error, meaning.value).inc()

    def count_failed_event(self, event: str, fault: Fault) -> None:
        """Count an event that ended in an error that its operation does not handle."""
        self.event_errors.labels(event, fault.value).inc()

    def observe(self, term: Callable[[], Term | None], queue_depth: Callable[[], int]) -> None:
        """Register the gauges of the current term and of the queue."""
        self._registry.register(_Gauges(term, queue_depth))

    def observe_role(
        self,
        hindrance: Callable[[], Hindrance | None],
        *,
        reached: Callable[[], int],
        unsupported: Callable[[], int],
        is_own_id_taken: Callable[[], bool],
    ) -> None:
        """Register the gauges of the reason to leave the role alone, of the reachable and the unsupported brokers, and
        of a broker with this process's id."""
        leaves_alone = Gauge(
            "kontroller_leaves_role_alone",
            "1 while this process could take the role and does not, by reason",
            ["reason"],
            registry=self._registry,
        )
        for one in Hindrance:
            leaves_alone.labels(one.value).set_function(lambda one=one: hindrance() is one)  # type: ignore[misc]
        reachable = Gauge(
            "kontroller_reachable_brokers",
            "Registered brokers that answered the last check of this process",
            registry=self._registry,
        )
        reachable.set_function(reached)
        not_spoken = Gauge(
            "kontroller_unsupported_brokers",
            "Registered brokers of an unsupported release or mode of Kafka: the controller does not send them requests",
            registry=self._registry,
        )
        not_spoken.set_function(unsupported)
        own_id_taken = Gauge(
            "kontroller_own_id_taken",
            "1 while a broker is registered under the id of this process: the controller ignores that broker",
            registry=self._registry,
        )
        own_id_taken.set_function(is_own_id_taken)

    def observe_standby(self, is_hot: Callable[[], bool]) -> None:
        """Register the gauge of a hot standby."""
        gauge = Gauge(
            "kontroller_standby_hot",
            "1 while this process is a hot standby: it has the cluster's state and keeps it current",
            registry=self._registry,
        )
        gauge.set_function(is_hot)


class _Gauges(Collector):
    def __init__(self, term: Callable[[], Term | None], queue_depth: Callable[[], int]) -> None:
        self._term = term
        self._queue_depth = queue_depth

    def collect(self) -> Iterator[Metric]:
        term = self._term()
        yield _gauge("kontroller_active_controller", "1 while this process is the controller", 0 if term is None else 1)
        yield _gauge("kontroller_event_queue_depth", "Events that wait to be handled", self._queue_depth())
        if term is None:
            return
        state = term.state
        partitions = state.tally.counts(state.live_or_shutting_down)
        yield _gauge("kontroller_controller_epoch", "The controller epoch of the current term", term.identity.epoch)
        yield _gauge("kontroller_brokers", "Registered brokers", len(state.brokers))
        yield _gauge(
            "kontroller_brokers_not_obeying",
            "Registered brokers that refused a control request and have not obeyed since",
            len(term.refusals.find_standing(state.brokers)),
        )
        yield _gauge(
            "kontroller_unserved_listeners",
            "Listeners of brokers under which the controller is not found",
            len(term.identity.listeners.find_unserved(state.brokers.values())),
        )
        yield _gauge(
            "kontroller_brokers_with_unknown_settings",
            "Registered brokers that have not returned the settings in their files",
            len(state.brokers.keys() - state.static_configs.keys()),
        )
        differing = GaugeMetricFamily(
            "kontroller_differing_settings",
            "Values of a setting that differs between brokers, or between brokers and this controller",
            labels=["setting"],
        )
        for difference in term.cluster_settings.find_differences(term.identity.id):
            differing.add_metric([difference.name], len(difference.nodes))
        yield differing
        yield _gauge("kontroller_topics", "Topics", len(state.topics))
        yield _gauge("kontroller_partitions", "Partitions", partitions.total)
        yield _gauge("kontroller_offline_partitions", "Partitions without a live leader", partitions.offline)
        yield _gauge(
            "kontroller_under_replicated_partitions",
            "Partitions with a replica that is not in sync, except replicas that a reassignment adds",
            partitions.under_replicated,
        )
        yield _gauge(
            "kontroller_preferred_replica_imbalance",
            "Partitions not led by their first assigned replica",
            partitions.not_led_by_preferred,
        )
        yield _gauge("kontroller_topics_to_delete", "Topics that are being deleted", len(state.deletions))
        yield _gauge("kontroller_partitions_to_remove", "Single partitions that are being removed", len(state.removals))
        yield _gauge(
            "kontroller_topics_ineligible_to_delete",
            "Topics whose deletion waits for a broker, a log directory, or a removal of single partitions",
            sum(map(state.is_held_up, state.deletions)),
        )
        yield _gauge(
            "kontroller_offline_replicas",
            "Replicas that live brokers cannot serve: in a failed log directory, or for another reason",
            sum(map(len, state.failed_replicas.values())),
        )
        yield from _unusable(state.unusable)
        yield _gauge("kontroller_reassigning_partitions", "Partitions being reassigned", len(state.reassignments))
        in_flight = GaugeMetricFamily(
            "kontroller_broker_requests_in_flight", "Control requests not yet answered", labels=["broker"]
        )
        for broker, count in term.channels.count_unanswered().items():
            in_flight.add_metric([str(broker)], count)
        yield in_flight


def _unusable(znodes: UnusableZnodes) -> Iterator[Metric]:
    standing = GaugeMetricFamily(
        "kontroller_unusable_znodes", "Znodes that cannot be used, or only in part", labels=["kind"]
    )
    found = CounterMetricFamily(
        "kontroller_unusable_znodes_found_total",
        "Unusable znodes found in this term, including those that were removed",
        labels=["kind"],
    )
    for kind, number in znodes.found.items():
        standing.add_metric([kind], znodes.standing[kind])
        found.add_metric([kind], number)
    yield from (standing, found)


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value=value)
