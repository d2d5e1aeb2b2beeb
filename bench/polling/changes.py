"""Changes by another client, each at its own topic, and the check that a view shows each."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from bench.polling.watched import Watched, client_of, creation, topic_name
from controller_core.client.transport.request_client import RequestClient
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import AlterTopicConfig, SubmitPreferredElection, SubmitReassignment
from controller_operator.kafka.requests.elections import elect_preferred
from controller_operator.kafka.requests.moves import submit
from controller_operator.kafka.requests.topics import ask_for_topic
from devcluster.clusters.kraft import KRaftCluster

_FIRST: Final = PartitionId(0)


class Seen(NamedTuple):
    """The delays until changes of a kind were seen."""

    what: str
    seconds: Sequence[float]


class Change(NamedTuple):
    """One change: the action on a topic, and the check that a view shows it."""

    do: Callable[[], Awaitable[object]]
    is_seen: Callable[[Snapshot], bool]


Kind = Callable[[RequestClient, Snapshot, int], Change]


async def play(cluster: KRaftCluster, watched: Watched, times: int) -> AsyncIterator[Seen]:
    """Make changes of each kind, sequentially."""
    client = client_of(cluster)
    for what, kind, group in _KINDS:
        seconds = []
        for number in range(group * times, (group + 1) * times):
            change = kind(client, watched.view, number)
            await change.do()
            done = time.monotonic()
            await watched.wait_until(change.is_seen)
            seconds.append(time.monotonic() - done)
        yield Seen(what, seconds)


def _create(client: RequestClient, view: Snapshot, number: int) -> Change:
    name = TopicName(f"created-{number}")
    step = creation(name, 3, [*view.brokers])
    return Change(lambda: ask_for_topic(step, client), lambda seen: name in seen.topics)


def _configure(client: RequestClient, view: Snapshot, number: int) -> Change:
    """Change topics that are far apart, so that they are not described together."""
    name = topic_name(number * 97 % len(view.topics))
    step = AlterTopicConfig(topic=name, config={}, version=None, changes={"retention.ms": "86400000"})
    return Change(lambda: ask_for_topic(step, client), lambda seen: "retention.ms" in seen.topics[name].config)


def _reorder(client: RequestClient, view: Snapshot, number: int) -> Change:
    """Reorder the same replicas: a reassignment that ends at once."""
    partition, wanted = _find_reversed(view, number)
    step = SubmitReassignment(partitions={partition: wanted})

    def is_seen(seen: Snapshot) -> bool:
        assignment = seen.assignment_of(partition)
        return assignment is not None and assignment.replicas == wanted

    return Change(lambda: submit(step, client), is_seen)


def _elect(client: RequestClient, view: Snapshot, number: int) -> Change:
    """Elect the preferred leader of a partition that was reordered before, so that another replica leads it."""
    partition = TopicPartition(topic_name(number), _FIRST)
    assignment = view.assignment_of(partition)
    assert assignment is not None
    preferred = assignment.preferred
    step = SubmitPreferredElection(partitions=(partition,))

    def is_seen(seen: Snapshot) -> bool:
        state = seen.state_of(partition)
        return state is not None and state.leader_and_isr.leader == preferred

    return Change(lambda: elect_preferred(step, client), is_seen)


def _move(client: RequestClient, view: Snapshot, number: int) -> Change:
    """Move a replica to another broker; the change is seen when it has begun."""
    partition = TopicPartition(topic_name(number), _FIRST)
    before = view.assignment_of(partition)
    assert before is not None
    other = next(each for each in view.brokers if each not in before.replicas)
    step = SubmitReassignment(partitions={partition: (before.replicas[0], other)})
    return Change(lambda: submit(step, client), lambda seen: seen.assignment_of(partition) != before)


def _find_reversed(view: Snapshot, number: int) -> tuple[TopicPartition, tuple[BrokerId, ...]]:
    partition = TopicPartition(topic_name(number), _FIRST)
    assignment = view.assignment_of(partition)
    assert assignment is not None
    return partition, assignment.replicas[::-1]


_KINDS: Final[Sequence[tuple[str, Kind, int]]] = (
    ("a topic is created", _create, 0),
    ("a configuration is changed", _configure, 1),
    ("replicas get another order", _reorder, 2),
    ("another leader is elected", _elect, 2),
    ("a reassignment begins", _move, 3),
)
"""Each kind, and the group of topics that it uses."""
