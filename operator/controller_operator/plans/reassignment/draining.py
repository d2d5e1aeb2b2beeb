"""Finds moves that empty brokers: as few as possible, then well spread over racks, then as even as possible.

Every replica on a drained broker goes to one other broker, and no other replica moves, so the number is minimal. Two
passes choose the receiving brokers. The first one goes through the partitions and takes the emptiest brokers that spoil
no rack. The second one repairs what that order could not see. It finds a chain of brokers from a fuller one to one with
at least two replicas fewer, in which each hands one of its new replicas to the next. A shortest chain never spoils
racks, and without a chain no other choice is more even: the choices of a partition are the bases of a matroid.
The same cluster gives the same plan, so a restart after a crash shows the same moves.

`controller_planner` drains brokers, too, and does not replace this module. It evens bytes and traffic, which the
operator's view of a cluster lacks. It evens counts only within a band, gives the replicas of a partition another order,
and leaves out partitions of which no replica in sync lives.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.topics.placement import NotEnoughBrokers, Racks, find_effective_racks

Assigned = tuple[TopicName, PartitionId, tuple[BrokerId, ...]]
"""The replicas of a partition, preferred leader first. For a moving partition, its target."""

_Handover = tuple[BrokerId, TopicPartition]
"""The broker that hands over a new replica, and the replica's partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """The replicas on the brokers of a cluster. Only partitions that must move are listed, because most need not."""

    drained: Set[BrokerId]
    leaving: Mapping[TopicPartition, tuple[BrokerId, ...]]
    """The partitions with a replica on a drained broker."""
    held: Counter[BrokerId]
    """The number of replicas of each broker."""
    leaders: Counter[BrokerId]
    """The number of partitions that have each broker as preferred leader."""


def occupancy(cluster: Sequence[Assigned], drained: Collection[BrokerId]) -> Occupancy:
    """Count the replicas on the brokers, over all partitions of the cluster."""
    leaving_from = frozenset(drained)
    return Occupancy(
        drained=leaving_from,
        leaving={
            TopicPartition(topic, number): replicas
            for topic, number, replicas in cluster
            if not leaving_from.isdisjoint(replicas)
        },
        held=Counter(chain.from_iterable(replicas for _, _, replicas in cluster)),
        leaders=Counter(replicas[0] for _, _, replicas in cluster if replicas),
    )


def drain(
    occupied: Occupancy, brokers: Racks, *, closed: Collection[BrokerId] = ()
) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """Return the new replicas of the partitions that have one on a drained broker.

    `brokers` are all live brokers with their racks. Brokers in `closed` keep their replicas and get none. A new replica
    takes the place of the one that it replaces, so a drained preferred leader has a successor. Raises
    `NotEnoughBrokers` if a partition has more replicas than there are brokers that stay.
    """
    drained = occupied.drained
    staying = {broker: rack for broker, rack in brokers.items() if broker not in drained}
    leaving = {tp: occupied.leaving[tp] for tp in sorted(occupied.leaving)}
    choices = _Choices(staying, occupied.held, closed)
    for tp, replicas in leaving.items():
        choices.take(tp, [replica for replica in replicas if replica not in drained], len(replicas))
    while choices.level():
        pass
    leaders = occupied.leaders.copy()
    return {tp: _place(replicas, drained, choices.chosen[tp], leaders) for tp, replicas in leaving.items()}


class _Choices:
    """The chosen brokers for each partition's new replicas, and the resulting load of every broker."""

    def __init__(self, staying: Racks, held: Counter[BrokerId], closed: Collection[BrokerId]) -> None:
        self.chosen: dict[TopicPartition, set[BrokerId]] = {}
        self._racks = find_effective_racks(staying)
        self._load = {broker: held[broker] for broker in sorted(staying) if broker not in closed}
        self._kept: dict[TopicPartition, frozenset[BrokerId]] = {}
        self._rack_count: dict[TopicPartition, int] = {}

    def take(self, tp: TopicPartition, kept: Iterable[BrokerId], replication_factor: int) -> None:
        """Choose the emptiest brokers, first those of racks that the partition does not use."""
        self._kept[tp], chosen = frozenset(kept), set[BrokerId]()
        while len(chosen) + len(self._kept[tp]) < replication_factor:
            taken = self._racks_of(self._kept[tp] | chosen)
            free = [broker for broker in self._load if broker not in self._kept[tp] | chosen]
            if not free:
                raise NotEnoughBrokers(replication_factor=replication_factor, brokers=len(self._load))
            # Unused racks first, then the least load. The id makes equal choices reproducible.
            chosen.add(min(free, key=lambda broker: (self._racks[broker] in taken, self._load[broker], broker)))
        self.chosen[tp] = chosen
        self._rack_count[tp] = len(self._racks_of(self._kept[tp] | chosen))
        for broker in chosen:
            self._load[broker] += 1

    def level(self) -> bool:
        """Shift one replica from a fuller broker to an emptier one, possibly over others. Return False if
        impossible."""
        takers = self._takers()
        for giver in sorted(self._load, key=lambda broker: (-self._load[broker], broker)):
            way = self._way_down(giver, takers)
            if way:
                for source, tp, target in way:
                    self.chosen[tp].remove(source)
                    self.chosen[tp].add(target)
                self._load[giver] -= 1
                self._load[way[-1][2]] += 1
                return True
        return False

    def _takers(self) -> dict[BrokerId, dict[BrokerId, TopicPartition]]:
        """Return for each broker the possible takers of a new replica of it, with the replica's partition."""
        found: dict[BrokerId, dict[BrokerId, TopicPartition]] = {broker: {} for broker in self._load}
        for tp, chosen in self.chosen.items():
            for source in sorted(chosen):
                rest = (self._kept[tp] | chosen) - {source}
                racks = self._racks_of(rest)
                for target in self._load.keys() - rest - found[source].keys() - {source}:
                    if len(racks | {self._racks[target]}) == self._rack_count[tp]:
                        found[source][target] = tp
        return found

    def _way_down(
        self, giver: BrokerId, takers: Mapping[BrokerId, Mapping[BrokerId, TopicPartition]]
    ) -> list[tuple[BrokerId, TopicPartition, BrokerId]]:
        """Return a shortest chain from a broker to one with at least two replicas fewer; empty if there is none."""
        came_from: dict[BrokerId, _Handover | None] = {giver: None}
        waiting = deque([giver])
        while waiting:
            here = waiting.popleft()
            if self._load[here] <= self._load[giver] - 2:
                return _chain(here, came_from)
            for target, tp in sorted(takers[here].items()):
                if target not in came_from:
                    came_from[target] = (here, tp)
                    waiting.append(target)
        return []

    def _racks_of(self, replicas: Iterable[BrokerId]) -> set[str]:
        return {self._racks[replica] for replica in replicas if replica in self._racks}


def _chain(
    end: BrokerId, came_from: Mapping[BrokerId, _Handover | None]
) -> list[tuple[BrokerId, TopicPartition, BrokerId]]:
    chain = []
    while (handover := came_from[end]) is not None:
        source, tp = handover
        chain.append((source, tp, end))
        end = source
    return chain[::-1]


def _place(
    replicas: Sequence[BrokerId],
    drained: Collection[BrokerId],
    chosen: Collection[BrokerId],
    leaders: Counter[BrokerId],
) -> tuple[BrokerId, ...]:
    """Put the chosen brokers in the freed places; the one that is preferred leader of the fewest comes first."""
    successors = iter(sorted(chosen, key=lambda broker: (leaders[broker], broker)))
    placed = tuple(next(successors) if replica in drained else replica for replica in replicas)
    leaders[replicas[0]] -= 1
    leaders[placed[0]] += 1
    return placed
