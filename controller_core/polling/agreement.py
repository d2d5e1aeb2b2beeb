"""Finds the moves that explain what a broker shows, from the controllers' answers before and after it was asked.

A broker shows the old and new replicas of a moving partition together, and only the controllers know which are which.
Without their answer the partition would seem to have all of them for good. The controllers report the end of a move
before they have written it, so before any broker can show it (measured with Kafka 4.2: some hundredths of a second,
more under load). So a move counts as long as the broker shows its replicas and may not have heard of its end.
Additional replicas that no move explains are doubtful until the broker has heard of everything that the controllers
knew (`Hearing`): an awaited view waits for that, any other view shows the former partition. The first poll always
waits, because it has no former state."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controller_core.client.quorum import Quorum
from controller_core.model.ids import BrokerId, TopicPartition, group_by_topic
from controller_core.model.metadata import ReplicaAssignment
from controller_core.polling.answers import Moves, Topics, explains
from controller_core.polling.known_cluster import KnownCluster

_IDLE_S: Final = 0.75
"""Time without growth after which a log holds all that the controllers know. The active controller writes a change
within some 25 ms, and an empty record twice a second."""


class Asked(NamedTuple):
    """A quorum, and the time of the request for it."""

    quorum: Quorum
    at_s: float


class Hearing:
    """Tells when a broker has heard of everything that the controllers knew at the first of several requests.

    Controllers write all unwritten changes at once, so those are in the log as soon as it has grown."""

    def __init__(self, asked: Asked) -> None:
        self._first = asked
        self._needed: int | None = None

    def is_complete(self, asked: Asked, position: int) -> bool:
        """Return True if the broker has heard of everything. `position`: the log offset that the broker has applied."""
        first = self._first
        if asked.quorum.epoch != first.quorum.epoch:  # another leader may know something else
            self._first, self._needed = asked, None
            return False
        has_written = asked.quorum.written > first.quorum.written or asked.at_s - first.at_s >= _IDLE_S
        if self._needed is None and has_written:
            self._needed = asked.quorum.written
        # `_needed` is the end of the log, and `position` the last applied offset.
        return self._needed is not None and position >= self._needed - 1


_Hearings = dict[TopicPartition, Hearing | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The controllers' answer, what a broker showed next, and the controllers' answer after that."""

    earlier: Moves = field(default_factory=dict)
    """Earlier answers of the controllers in the same poll."""
    before: Moves
    asked: Asked
    topics: Topics
    position: int
    """The least log offset that the broker had applied."""
    after: Moves = field(default_factory=dict)


class Agreed(NamedTuple):
    """The conclusion of a round."""

    moves: Moves
    doubtful: frozenset[TopicPartition]
    is_first_in_doubt: bool
    """True if everything is doubtful, because it is seen for the first time."""


class Agreement:
    """The agreement between controllers and brokers of one cluster, from poll to poll."""

    def __init__(self, known: KnownCluster) -> None:
        self._known = known
        """The cluster as of the last poll."""
        self._hearings: _Hearings = {}
        """Of moves that the controllers report as ended, and of doubtful partitions. None until the controllers are
        asked again."""
        self._first: Hearing | None = None
        self._has_agreed = False

    @property
    def has_agreed(self) -> bool:
        """True if there is a former state, in which a move would have been seen."""
        return self._has_agreed

    def conclude(self, round_: Round) -> Agreed:
        """Return the moves and the doubtful partitions that follow from a round."""
        hearings, self._hearings = self._hearings, {}
        moves, heard = dict(round_.after), set()
        seen = [round_.earlier, self._known.moves]
        for tp in {tp for each in (round_.before, *seen) for tp in each}:
            shown = _find_replicas(round_.topics, tp)
            if not shown or explains(round_.after.get(tp), shown):
                continue
            if explains(round_.before.get(tp), shown):
                moves[tp] = round_.before[tp]
            elif move := self._find_explanation(tp, shown, seen, round_.topics):
                if self._is_heard(tp, hearings.get(tp) or Hearing(round_.asked), round_):
                    heard.add(tp)
                else:
                    moves[tp] = move
        doubtful = frozenset(
            tp
            for tp in self._find_additions(round_.topics, moves)
            if tp not in heard and not self._is_heard(tp, self._find_hearing(tp, hearings, round_), round_)
        )
        return Agreed(moves, doubtful, is_first_in_doubt=self._is_first_in_doubt(round_))

    def find_doubtful_without_controllers(self, topics: Topics) -> frozenset[TopicPartition]:
        """Return the doubtful partitions if no controller answers. Without a former state nothing is in doubt."""
        return frozenset(self._find_additions(topics, self._known.moves)) if self._has_agreed else frozenset()

    def hold_back(self, topics: Topics, doubtful: Collection[TopicPartition]) -> Topics:
        """Return the topics with their doubtful partitions as they were before."""
        if not doubtful:
            return topics
        held_back = dict(topics)
        for name, partitions in group_by_topic(doubtful):
            before = self._known.topics[name].partitions
            now = topics[name]
            as_before = {tp.partition: before[tp.partition] for tp in partitions}
            held_back[name] = now._replace(partitions={**now.partitions, **as_before})
        return held_back

    def _find_explanation(
        self, tp: TopicPartition, shown: tuple[BrokerId, ...], seen: Iterable[Moves], topics: Topics
    ) -> ReplicaAssignment | None:
        """Return an earlier seen move that explains the shown replicas, if there is one."""
        known = self._known.topics.get(tp.topic)
        if known is not None and known.topic_id != topics[tp.topic].topic_id:
            return None
        return next((each[tp] for each in seen if tp in each and explains(each[tp], shown)), None)

    @staticmethod
    def _find_hearing(tp: TopicPartition, hearings: _Hearings, round_: Round) -> Hearing | None:
        """Return the hearing for the end of an unseen move. It may have begun after the controllers were asked in this
        round, so the first round only registers the partition."""
        return hearings.get(tp) or (Hearing(round_.asked) if tp in hearings else None)

    def _is_heard(self, tp: TopicPartition, hearing: Hearing | None, round_: Round) -> bool:
        """Return True if the broker would show what the controllers knew when the wait for the partition began."""
        if hearing is not None and hearing.is_complete(round_.asked, round_.position):
            return True
        self._hearings[tp] = hearing
        return False

    def _is_first_in_doubt(self, round_: Round) -> bool:
        if not self._has_agreed:
            if self._first is None:
                self._first = Hearing(round_.asked)
            self._has_agreed = not round_.topics or self._first.is_complete(round_.asked, round_.position)
        return not self._has_agreed

    def _find_additions(self, topics: Topics, moves: Moves) -> Iterable[TopicPartition]:
        """Yield the partitions that have more replicas than before without a move that explains it."""
        for name, topic in topics.items():
            known = self._known.topics.get(name)
            if known is None or known is topic or known.topic_id != topic.topic_id:
                continue
            for number, partition in topic.partitions.items():
                before = known.partitions.get(number)
                if before is not None and len(partition.replicas) > len(before.replicas):
                    tp = TopicPartition(name, number)
                    if not explains(moves.get(tp), partition.replicas):
                        yield tp


def _find_replicas(topics: Topics, tp: TopicPartition) -> tuple[BrokerId, ...]:
    """Return the shown replicas, or none if there is no such partition."""
    topic = topics.get(tp.topic)
    partition = topic.partitions.get(tp.partition) if topic is not None else None
    return partition.replicas if partition is not None else ()
