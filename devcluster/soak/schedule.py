"""The schedule of operations as a pure function of a seed, so that the same seed repeats a failure.

Operations are dealt from a deck with each of them in its proportion, shuffled for every round, so all occur before any
occurs often. A plan of the cluster, which assumes that each operation succeeds at once, excludes senseless operations:
none on a topic that was not created or a server that is down. At most two brokers are away, because with a replication
factor of 3 and `min.insync.replicas` 2 nothing would be acknowledged otherwise. Never both controllers are away,
because Kafka's own would act instead of ours.
"""

import heapq
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from devcluster.soak.operations import (
    AddPartitions,
    CancelReassignment,
    ChangeConfig,
    CrashZooKeeper,
    CreateTopic,
    DeleteTopic,
    ElectPreferred,
    KillServer,
    Operation,
    Partition,
    PauseServer,
    Reassign,
    RecreateTopic,
    ReplaceReassignment,
    Replicas,
    ResumeServer,
    StartServer,
    StopServer,
    partitions_of,
)

BROKERS: Final = (1, 2, 3, 4, 5, 6)
CONTROLLERS: Final = (1, 2)
LOADED_TOPICS: Final = ("loaded-1", "loaded-2", "loaded-3")
"""Topics with a producer, which are never deleted and always have three replicas."""
LOADED_PARTITIONS: Final = 3
SCRATCH_TOPICS: Final = tuple(f"scratch-{number}" for number in range(1, 9))
MOST_PARTITIONS: Final = 6
MOST_BROKERS_AWAY: Final = 2
BROKER_SESSION_S: Final = 6.0

_DECK: Final = {
    "create_topic": 5,
    "delete_topic": 2,
    "recreate_topic": 2,
    "add_partitions": 3,
    "change_config": 3,
    "reassign": 8,
    "replace_reassignment": 2,
    "cancel_reassignment": 2,
    "stall_reassignment": 3,
    "elect_preferred": 4,
    "stop_broker": 3,
    "kill_broker": 3,
    "bounce_broker": 1,
    "pause_broker": 3,
    "kill_controller": 2,
    "stop_controller": 1,
    "pause_controller": 1,
    "crash_zookeeper": 1,
}

_FACTORS: Final = (1, 2, 3, 3, 3)

_CONFIGS: Final = {
    "retention.ms": ("86400000", "604800000", "-1"),
    # At least as much as a follower fetches at once (replica.fetch.max.bytes): it can never append more than a segment.
    "segment.bytes": ("4194304", "16777216"),
    "max.message.bytes": ("1048588", "2097164"),
}


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """An operation and its time, in seconds from the beginning. Steps are ordered; `number` breaks ties."""

    at_s: float
    number: int
    operation: Operation

    def __str__(self) -> str:
        return f"{self.at_s:7.2f} s  {self.operation}"


def schedule(seed: int) -> Iterator[Step]:
    """Yield the endless schedule of a seed, in order of time; the loaded topics exist from the beginning."""
    return _Dealer(random.Random(seed)).steps()  # noqa: S311 - makes up a test, guards no secret


class _Dealer:
    """Deals operations, and keeps the planned state of the cluster."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._now_s = 0.0
        self._numbers = itertools.count()
        self._later: list[Step] = []
        self._put_off: list[str] = []
        self._acts: dict[str, Callable[[], Iterator[Operation]]] = {name: getattr(self, f"_{name}") for name in _DECK}
        self._partitions: dict[str, int] = dict.fromkeys(LOADED_TOPICS, LOADED_PARTITIONS)
        self._factors: dict[str, int] = dict.fromkeys(LOADED_TOPICS, 3)
        """The number of replicas of a topic's new partitions: as many as its others have."""
        self._away: set[str] = set()
        """Servers that are down or paused, or will be according to the plan."""

    def steps(self) -> Iterator[Step]:
        for name in self._deal():
            self._now_s += self._pause_s()
            while self._later and self._later[0].at_s <= self._now_s:
                step = heapq.heappop(self._later)
                if self._is_planned(step.operation):
                    self._record(step.operation)
                    yield step
            operation = None
            for operation in self._acts[name]():
                self._record(operation)
                yield Step(self._now_s, next(self._numbers), operation)
            if operation is None:
                self._put_off.append(name)

    def _deal(self) -> Iterator[str]:
        """Yield the names of the deck, shuffled, over and over; impossible ones come again in the next round."""
        while True:
            names = [name for name, count in _DECK.items() for _ in range(count)] + self._put_off
            self._put_off.clear()
            self._rng.shuffle(names)
            yield from names

    def _pause_s(self) -> float:
        """Return a pause, often only an instant, so that operations overlap."""
        return self._rng.uniform(0, 0.1) if self._rng.random() < 0.3 else self._rng.uniform(0.3, 4)

    def _follow(self, delay_s: float, operation: Operation) -> None:
        heapq.heappush(self._later, Step(self._now_s + delay_s, next(self._numbers), operation))

    def _is_planned(self, operation: Operation) -> bool:
        return all(number < self._partitions.get(topic, 0) for topic, number in partitions_of(operation))

    def _record(self, operation: Operation) -> None:
        match operation:
            case CreateTopic() | RecreateTopic():
                self._partitions[operation.topic] = len(operation.replicas)
                self._factors[operation.topic] = len(operation.replicas[0])
            case DeleteTopic():
                del self._partitions[operation.topic]
            case AddPartitions():
                self._partitions[operation.topic] += len(operation.replicas)
            case StopServer() | KillServer() | PauseServer():
                self._away.add(operation.server)
            case StartServer() | ResumeServer():
                self._away.discard(operation.server)
            case _:
                pass

    # Topics

    def _create_topic(self) -> Iterator[Operation]:
        if free := [topic for topic in SCRATCH_TOPICS if topic not in self._partitions]:
            replicas = self._new_partitions()
            yield CreateTopic(topic=self._rng.choice(free), replicas=replicas, by_request=self._either())

    def _delete_topic(self) -> Iterator[Operation]:
        if scratch := self._scratch():
            yield DeleteTopic(topic=self._rng.choice(scratch), by_request=self._either())

    def _recreate_topic(self) -> Iterator[Operation]:
        if scratch := self._scratch():
            replicas = self._new_partitions()
            yield RecreateTopic(topic=self._rng.choice(scratch), replicas=replicas, by_request=self._either())

    def _add_partitions(self) -> Iterator[Operation]:
        if growing := [topic for topic, count in self._partitions.items() if count < MOST_PARTITIONS]:
            topic = self._rng.choice(growing)
            yield AddPartitions(topic=topic, replicas=(self._sample(self._factors[topic]),), by_request=self._either())

    def _change_config(self) -> Iterator[Operation]:
        key = self._rng.choice(list(_CONFIGS))
        yield ChangeConfig(topic=self._topic(), config={key: self._rng.choice(_CONFIGS[key])})

    # Reassignments and elections

    def _reassign(self) -> Iterator[Operation]:
        yield Reassign(targets=self._targets(), by_request=self._either())

    def _replace_reassignment(self) -> Iterator[Operation]:
        begun = Reassign(targets=self._targets(), by_request=self._either())
        yield begun
        self._follow(self._rng.uniform(0.05, 1), self._make_replacement(begun))

    def _cancel_reassignment(self) -> Iterator[Operation]:
        begun = Reassign(targets=self._targets(), by_request=self._either())
        yield begun
        self._follow(self._rng.uniform(0.05, 1), self._make_cancellation(begun))

    def _stall_reassignment(self) -> Iterator[Operation]:
        """Reassign to a paused broker, so that the reassignment still runs when it is replaced, cancelled or left
        alone.
        """
        hanging = self._present_broker()
        if hanging is None:
            return
        targets = {
            partition: target if hanging in target else (hanging, *target[1:])
            for partition, target in self._targets().items()
        }
        yield PauseServer(server=f"broker-{hanging}")
        begun = Reassign(targets=targets, by_request=self._either())
        yield begun
        change = self._rng.choice((self._make_replacement(begun), self._make_cancellation(begun), None))
        if change is not None:
            self._follow(self._rng.uniform(0.5, 4), change)
        self._follow(self._away_s(), ResumeServer(server=f"broker-{hanging}"))

    def _elect_preferred(self) -> Iterator[Operation]:
        everything = tuple((topic, number) for topic, count in self._partitions.items() for number in range(count))
        yield ElectPreferred(partitions=everything, by_request=self._either())

    # Servers

    def _stop_broker(self) -> Iterator[Operation]:
        if (broker := self._present_broker()) is not None:
            yield StopServer(server=f"broker-{broker}")
            self._follow(self._rng.uniform(1, 20), StartServer(server=f"broker-{broker}"))

    def _kill_broker(self) -> Iterator[Operation]:
        if (broker := self._present_broker()) is not None:
            yield KillServer(server=f"broker-{broker}")
            self._follow(self._rng.uniform(1, 25), StartServer(server=f"broker-{broker}"))

    def _bounce_broker(self) -> Iterator[Operation]:
        """Restart a broker as fast as possible."""
        if (broker := self._present_broker()) is not None:
            yield StopServer(server=f"broker-{broker}")
            self._follow(0, StartServer(server=f"broker-{broker}"))

    def _pause_broker(self) -> Iterator[Operation]:
        if (broker := self._present_broker()) is not None:
            yield PauseServer(server=f"broker-{broker}")
            self._follow(self._away_s(), ResumeServer(server=f"broker-{broker}"))

    def _kill_controller(self) -> Iterator[Operation]:
        if (controller := self._present_controller()) is not None:
            yield KillServer(server=controller)
            self._follow(self._rng.uniform(0.5, 15), StartServer(server=controller))

    def _stop_controller(self) -> Iterator[Operation]:
        if (controller := self._present_controller()) is not None:
            yield StopServer(server=controller)
            self._follow(self._rng.uniform(0.5, 15), StartServer(server=controller))

    def _pause_controller(self) -> Iterator[Operation]:
        if (controller := self._present_controller()) is not None:
            yield PauseServer(server=controller)
            self._follow(self._rng.uniform(0.5, 12), ResumeServer(server=controller))

    def _crash_zookeeper(self) -> Iterator[Operation]:
        yield CrashZooKeeper(down_s=self._rng.uniform(0, 6))

    # Choices

    def _scratch(self) -> list[str]:
        return [topic for topic in SCRATCH_TOPICS if topic in self._partitions]

    def _topic(self) -> str:
        return self._rng.choice(list(self._partitions))

    def _replicas(self, topic: str) -> Replicas:
        return self._sample(3 if topic in LOADED_TOPICS else self._rng.choice(_FACTORS))

    def _new_partitions(self) -> tuple[Replicas, ...]:
        factor = self._rng.choice(_FACTORS)
        return tuple(self._sample(factor) for _ in range(self._rng.randint(1, 4)))

    def _sample(self, factor: int) -> Replicas:
        return tuple(self._rng.sample(BROKERS, factor))

    def _targets(self) -> dict[Partition, Replicas]:
        topics = [self._topic() for _ in range(self._rng.randint(1, 5))]
        partitions = {(topic, self._rng.randrange(self._partitions[topic])) for topic in topics}
        return {(topic, number): self._replicas(topic) for topic, number in sorted(partitions)}

    def _make_replacement(self, begun: Reassign) -> ReplaceReassignment:
        targets = {(topic, number): self._replicas(topic) for topic, number in begun.targets}
        return ReplaceReassignment(targets=targets, by_request=begun.by_request)

    def _make_cancellation(self, begun: Reassign) -> CancelReassignment:
        return CancelReassignment(partitions=tuple(begun.targets), by_request=begun.by_request)

    def _either(self) -> bool:
        return self._rng.random() < 0.5

    def _present_broker(self) -> int | None:
        present = [broker for broker in BROKERS if f"broker-{broker}" not in self._away]
        return self._rng.choice(present) if len(BROKERS) - len(present) < MOST_BROKERS_AWAY else None

    def _present_controller(self) -> str | None:
        present = [f"controller-{number}" for number in CONTROLLERS if f"controller-{number}" not in self._away]
        return self._rng.choice(present) if len(present) == len(CONTROLLERS) else None

    def _away_s(self) -> float:
        """Return a duration that is shorter or longer than a broker's session."""
        return self._rng.choice((self._rng.uniform(0.5, 4), self._rng.uniform(BROKER_SESSION_S + 2, 20)))
