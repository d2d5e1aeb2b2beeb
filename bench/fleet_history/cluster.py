"""A generated cluster of a fleet over some days: brokers restart, replicas flap, controllers die, and a journal is
kept.

The state is the controller's own class and the lines are the production encoder's. Only the events and their times are
generated, from the number of the cluster alone. The model is simple: a leader is the first live replica in sync.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from controller_core.controller.recording.term_journal import copy_state
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.journal.batches import Alive, Batch, Committed, Context, Elected, Snapshot
from controller_core.journal.record_encoder import RecordEncoder
from controller_core.model.ids import (
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import (
    Broker,
    Endpoint,
    LeaderAndIsr,
    LeaderRecoveryState,
    PartitionState,
    ReplicaAssignment,
)

SECOND_US: Final = 1_000_000
HOUR_US: Final = 3600 * SECOND_US
DAY_US: Final = 24 * HOUR_US
BEGAN_US: Final = 1_767_225_600 * SECOND_US
"""2026-01-01, UTC."""
BROKERS: Final = tuple(BrokerId(number) for number in (1, 2, 3))
RESTARTS_A_DAY, FLAPS_A_DAY, TERMS_A_DAY = 2, 6, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The shape of each cluster: its lifetime, its size, and the intervals of its journal."""

    days: int
    topics: int
    partitions: int
    """The partitions of each topic, with three replicas."""
    alive_s: int
    snapshot_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaws:
    """The flaws of a journal: periods [from, to) of its life, in microseconds since its beginning."""

    silences_us: tuple[tuple[int, int], ...] = ()
    """Periods in which the controller is frozen."""
    clock_us: tuple[int, int, int] = (0, 0, 0)
    """From, to, and how far the clock is ahead in between; negative: behind."""


def flaws_of(number: int, shape: Shape) -> Flaws:
    """Return the flaws of a cluster.

    Of ten clusters one is silent for three hours and one has a clock ten hours ahead; of fifty one falls silent for
    good, and one boots in 1970.
    """
    half_us = shape.days * DAY_US // 2
    match number % 10, number % 50:
        case _, 7:
            return Flaws(silences_us=((half_us, shape.days * DAY_US),))
        case _, 9:
            return Flaws(clock_us=(half_us, half_us + HOUR_US // 6, -BEGAN_US))
        case 3, _:
            return Flaws(clock_us=(half_us, half_us + HOUR_US, 10 * HOUR_US))
        case 5, _:
            return Flaws(silences_us=((half_us, half_us + 3 * HOUR_US),))
        case _:
            return Flaws()


class PaperCluster:
    """A generated cluster with a single life: `segments` yields its journal."""

    def __init__(self, number: int, shape: Shape, flaws: Flaws) -> None:
        self.cluster_id = f"fleet-{number:04}"
        self._shape, self._flaws = shape, flaws
        self._rng = random.Random(number)  # noqa: S311  # the same each time
        self._state = ClusterState(is_journaled=True)
        self._encoder = RecordEncoder()
        self._lines: list[bytes] = []
        self._now_us = 0
        self._epoch, self._event, self._zxid = 0, 0, 100
        self._last_snapshot_us = self._last_record_us = 0

    def segments(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the content of a segment for each term."""
        for broker in BROKERS:
            self._register(broker)
        for number in range(self._shape.topics):
            self._create(TopicName(f"team-{number % 5}.topic-{number}"))
        self._begin_term()
        for at_us, happens, cause in sorted(self._life(), key=lambda one: one[0]):
            self._now_us = self._thaw(at_us)
            if self._now_us >= self._shape.days * DAY_US:
                break
            if happens == self._begin_term:
                yield self._segment()
            self._event += 1
            happens()
            self._commit(cause)
        yield self._segment()

    def _segment(self) -> tuple[str, bytes]:
        lines, self._lines = self._lines, []
        return f"{self._epoch:010}-{0:020}.jsonl", b"".join(lines)

    def _life(self) -> Iterator[tuple[int, Callable[[], None], str]]:
        """Yield the events with their times and causes."""
        length_us = self._shape.days * DAY_US
        for at_us in range(self._shape.alive_s * SECOND_US, length_us, self._shape.alive_s * SECOND_US):
            yield at_us, self._say_something, "journal_due"
        for at_us in self._moments(RESTARTS_A_DAY):
            broker = self._rng.choice(BROKERS)
            away_us = self._rng.randrange(20, 300) * SECOND_US
            yield at_us, partial(self._lose, broker), "broker_failed"
            yield min(at_us + away_us, length_us - 1), partial(self._register, broker), "broker_started"
        for at_us in self._moments(FLAPS_A_DAY):
            topic, broker = self._rng.randrange(self._shape.topics), self._rng.choice(BROKERS)
            yield at_us, partial(self._shrink, topic, broker), "alter_partition"
            back_us = at_us + self._rng.randrange(5, 60) * SECOND_US
            yield min(back_us, length_us - 1), self._catch_up, "alter_partition"
        for at_us in self._moments(TERMS_A_DAY):
            yield at_us, self._begin_term, "controller_failover"

    def _thaw(self, at_us: int) -> int:
        """Return the time of an event, postponed to the end of a freeze."""
        return next((ended for began, ended in self._flaws.silences_us if began <= at_us < ended), at_us)

    def _moments(self, a_day: float) -> list[int]:
        count = self._rng.randrange(int(2 * a_day * self._shape.days) + 1)
        return [self._rng.randrange(HOUR_US, self._shape.days * DAY_US) for _ in range(count)]

    # Events

    def _begin_term(self) -> None:
        self._epoch += 1
        self._event = 0
        self._state.changes.is_open = True
        self._write(Elected(context=self._context("controller_failover"), alive_interval_ms=self._shape.alive_s * 1000))
        self._snapshot()
        self._react()

    def _say_something(self) -> None:
        if self._now_us - self._last_snapshot_us >= self._shape.snapshot_s * SECOND_US:
            self._snapshot()
        elif self._now_us - self._last_record_us >= self._shape.alive_s * SECOND_US:
            self._write(Alive(context=self._context("journal_due")))

    def _snapshot(self) -> None:
        self._write(Snapshot(context=self._context("journal_due"), state=copy_state(self._state)))
        self._last_snapshot_us = self._now_us

    def _create(self, name: TopicName) -> None:
        self._state.add_topic(name, TopicId(UUID(int=self._rng.getrandbits(128), version=4)), self._next_zxid())
        for number in range(self._shape.partitions):
            first = self._rng.randrange(len(BROKERS))
            replicas = (*BROKERS[first:], *BROKERS[:first])
            self._state.set_assignment(TopicPartition(name, PartitionId(number)), ReplicaAssignment(replicas=replicas))
        self._react()

    def _lose(self, broker: BrokerId) -> None:
        if broker in self._state.brokers:
            self._state.remove_broker(broker)
            self._react()

    def _register(self, broker: BrokerId) -> None:
        if broker in self._state.brokers:
            return
        endpoint = Endpoint(listener="PLAIN", security_protocol="PLAINTEXT", host=f"b{broker}", port=9092)
        rack = f"rack-{broker}"
        epoch = BrokerEpoch(self._next_zxid())
        self._state.add_broker(Broker(id=broker, epoch=epoch, endpoints=(endpoint,), rack=rack, features={}))
        self._react()
        self._catch_up()

    def _shrink(self, topic: int, broker: BrokerId) -> None:
        for partition, state in list(self._state.states.items()):
            decided = state.leader_and_isr
            if partition.topic.endswith(f"-{topic}") and broker in decided.isr and broker != decided.leader:
                self._put(partition, decided.leader, tuple(one for one in decided.isr if one != broker))

    def _catch_up(self) -> None:
        """Bring live replicas back in sync if the partition has a leader."""
        for partition, state in list(self._state.states.items()):
            decided = state.leader_and_isr
            live = tuple(b for b in self._state.assignment(partition).replicas if b in self._state.brokers)
            if decided.has_leader and set(decided.isr) != set(live):
                self._put(partition, decided.leader, live)

    def _react(self) -> None:
        """Elect leaders among the live replicas in sync; if there is none, the partition has no leader."""
        for partition in self._state.all_partitions():
            state = self._state.states.get(partition)
            replicas = self._state.assignment(partition).replicas
            in_sync = replicas if state is None else state.leader_and_isr.isr
            live = tuple(broker for broker in in_sync if broker in self._state.brokers)
            if state is None or state.leader_and_isr.leader not in live:
                self._put(partition, live[0] if live else NO_LEADER, live or in_sync[:1])
            elif live != in_sync:
                self._put(partition, state.leader_and_isr.leader, live)

    def _put(self, partition: TopicPartition, leader: BrokerId, isr: tuple[BrokerId, ...]) -> None:
        before = self._state.states.get(partition)
        if before is not None and (before.leader_and_isr.leader, before.leader_and_isr.isr) == (leader, isr):
            return
        epoch = -1 if before is None else before.leader_and_isr.leader_epoch
        is_election = before is None or before.leader_and_isr.leader != leader
        decided = LeaderAndIsr(
            leader=leader,
            isr=isr,
            leader_epoch=LeaderEpoch(epoch + is_election),
            leader_recovery_state=LeaderRecoveryState.RECOVERED,
        )
        version = -1 if before is None else before.partition_epoch
        state = PartitionState(
            leader_and_isr=decided,
            controller_epoch=ControllerEpoch(self._epoch),
            partition_epoch=PartitionEpoch(version + 1),
        )
        self._state.set_states({partition: state})

    def _next_zxid(self) -> int:
        self._zxid += 1
        return self._zxid

    # The journal

    def _commit(self, cause: str) -> None:
        if changes := self._state.changes.take():
            self._write(Committed(context=self._context(cause), changes=changes))

    def _write(self, batch: Batch) -> None:
        self._lines += self._encoder.lines(batch)
        self._last_record_us = self._now_us

    def _context(self, cause: str) -> Context:
        began, ended, ahead_us = self._flaws.clock_us
        clock_us = BEGAN_US + self._now_us + (ahead_us if began <= self._now_us < ended else 0)
        return Context(
            cluster_id=self.cluster_id,
            controller_id=BrokerId(100 + self._epoch % 3),
            controller_epoch=ControllerEpoch(self._epoch),
            event_time_us=clock_us,
            took_us=2500 if self._event else None,
            cause=cause,
            correlation_id=f"{self._epoch}-{self._event}",
        )
