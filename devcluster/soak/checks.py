"""Checks of a cluster at rest after the soak: each yields its findings, and nothing if all is well."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Final

from devcluster.soak.operations import Partition
from devcluster.soak.snapshot import Snapshot

_THROTTLE: Final = re.compile(r"(leader|follower)\.replication\.throttled\.(replicas|rate)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The expected state at the end."""

    topics: Mapping[str, int]
    """Topics, and their numbers of partitions."""
    deleted: Collection[str]
    controllers: Collection[int]
    brokers: Collection[int]
    left_by_kafka: Callable[[], Set[str]] = frozenset
    """Returns the log directories that Kafka's own controllers failed to delete by their own account (`kafka_faults`).

    It reads all logs of the brokers, so it is only called if a directory is in question.
    """


Check = Callable[[Snapshot, Expected], Iterator[str]]


def problems(snapshot: Snapshot, expected: Expected) -> list[str]:
    """Return all findings; empty if the cluster is as expected."""
    return [problem for check in CHECKS for problem in check(snapshot, expected)]


def our_controller_leads(snapshot: Snapshot, expected: Expected) -> Iterator[str]:
    if snapshot.controller not in expected.controllers:
        yield f"/controller names {snapshot.controller}, which is none of ours"


def all_brokers_are_there(snapshot: Snapshot, expected: Expected) -> Iterator[str]:
    for broker in sorted(set(expected.brokers) - snapshot.registered):
        yield f"broker {broker} is not registered"
    for broker, view in snapshot.brokers.items():
        if view is None:
            yield f"broker {broker} does not answer"


def topics_are_as_asked_for(snapshot: Snapshot, expected: Expected) -> Iterator[str]:
    for topic, count in expected.topics.items():
        if topic not in snapshot.topics:
            yield f"topic {topic} was created and is not there"
        elif snapshot.topics[topic] != count:
            yield f"topic {topic} has {snapshot.topics[topic]} partitions, expected {count}"
    for topic in sorted(expected.deleted):
        if topic in snapshot.topics:
            yield f"topic {topic} was deleted and is still in ZooKeeper"
        if f"topics/{topic}" in snapshot.configs:
            yield f"topic {topic} was deleted and still has a configuration in ZooKeeper"


def nothing_is_under_way(snapshot: Snapshot, expected: Expected) -> Iterator[str]:
    for request in snapshot.requests:
        yield f"still asked for: {request}"
    for topic, number in sorted(snapshot.reassigning):
        yield f"{topic}-{number} is still being reassigned according to its topic's znode"


def all_replicas_are_in_sync(snapshot: Snapshot, expected: Expected) -> Iterator[str]:
    for partition, assigned in snapshot.assigned.items():
        state = snapshot.states.get(partition)
        if state is None:
            yield f"{_name(partition)} has no state"
        elif state.leader < 0:
            yield f"{_name(partition)} has no leader, ISR {_show(state.isr)}"
        elif set(state.isr) != set(assigned):
            yield f"{_name(partition)} has AR {_show(assigned)} and ISR {_show(state.isr)}, leader {state.leader}"


def states_are_consistent(snapshot: Snapshot, expected: Expected) -> Iterator[str]:
    for partition, state in snapshot.states.items():
        assigned = snapshot.assigned[partition]
        if state.leader >= 0 and state.leader not in assigned:
            yield f"{_name(partition)} is led by {state.leader}, which is not in AR {_show(assigned)}"
        if state.leader >= 0 and state.leader not in state.isr:
            yield f"{_name(partition)} is led by {state.leader}, which is not in its ISR {_show(state.isr)}"
        if snapshot.state_epochs[partition] > snapshot.controller_epoch:
            yield (
                f"{_name(partition)} was written under controller epoch {snapshot.state_epochs[partition]}, "
                f"and /controller_epoch is {snapshot.controller_epoch}"
            )


def brokers_know_what_is_in_zookeeper(snapshot: Snapshot, expected: Expected) -> Iterator[str]:
    for broker, view in snapshot.brokers.items():
        if view is None:
            continue
        if view.controller != snapshot.controller:
            yield f"broker {broker} says the controller is {view.controller}, and it is {snapshot.controller}"
        for missing in sorted(set(expected.brokers) - view.brokers):
            yield f"broker {broker} does not know of broker {missing}"
        for partition in sorted(view.states.keys() - snapshot.assigned.keys()):
            yield f"broker {broker} still has {_name(partition)} in its metadata, which is not in ZooKeeper"
        for partition, assigned in snapshot.assigned.items():
            known, state = view.states.get(partition), snapshot.states.get(partition)
            if known is None:
                yield f"broker {broker} has no metadata of {_name(partition)}"
            elif view.assigned[partition] != assigned:
                known_assigned = _show(view.assigned[partition])
                yield f"broker {broker} has {_name(partition)} with AR {known_assigned}, ZooKeeper has {_show(assigned)}"
            elif known != state:
                yield f"broker {broker} has {_name(partition)} as {known}, ZooKeeper has {state}"


def logs_are_where_they_belong(snapshot: Snapshot, expected: Expected) -> Iterator[str]:
    for broker, view in snapshot.brokers.items():
        here = {_name(partition) for partition, assigned in snapshot.assigned.items() if broker in assigned}
        stray = view.logs - here if view else frozenset()
        for log in sorted(stray - expected.left_by_kafka() if stray else ()):
            yield f"broker {broker} has the stray log directory {log}"
        for log in sorted(here - view.logs if view else ()):
            yield f"broker {broker} has no log directory {log}"


def no_throttle_is_left(snapshot: Snapshot, expected: Expected) -> Iterator[str]:
    for path, config in snapshot.configs.items():
        for key, value in config.items():
            if _THROTTLE.fullmatch(key):
                yield f"/config/{path} still has the throttle {key}={value}"


CHECKS: Final[tuple[Check, ...]] = (
    our_controller_leads,
    all_brokers_are_there,
    topics_are_as_asked_for,
    nothing_is_under_way,
    all_replicas_are_in_sync,
    states_are_consistent,
    brokers_know_what_is_in_zookeeper,
    logs_are_where_they_belong,
    no_throttle_is_left,
)


def _name(partition: Partition) -> str:
    topic, number = partition
    return f"{topic}-{number}"


def _show(brokers: Collection[int]) -> str:
    return f"{{{','.join(map(str, brokers))}}}"
