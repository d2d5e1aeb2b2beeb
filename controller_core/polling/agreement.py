"""What moves at the moment that a broker shows, by what the controllers say of moves before and after it was asked.

A broker shows a partition that is reassigned with its old and its new replicas, and only the controllers tell which are
which: without them it would look like a partition that was given both for good. They say that a move has ended before they
have written that, so before any broker can show it, however far the broker has come in what is decided (measured with Kafka
4.2: some hundredths of a second, more under load). So a move that was seen counts as long as the broker shows its replicas
and may not have heard of its end. And more replicas than before, which no move explains, are doubtful until the broker has
surely heard of all that the controllers knew (`Hearing`): whoever waits for a view waits for that, and for others the
partition stays as it was. At the first look nobody knows how many there were: that one waits.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controller_core.model.ids import BrokerId, TopicPartition, group_by_topic
from controller_core.polling.answers import Move, Moves, Topics
from controller_core.polling.known_cluster import KnownCluster
from controller_core.wire.client.quorum import Quorum

_IDLE_S: Final = 0.75
"""The active controller writes what it knows within some 25 ms, and twice a second a record of nothing: a log that has not
grown for so long holds it all."""


class Asked(NamedTuple):
    """A quorum, and when it was asked for."""

    quorum: Quorum
    at_s: float


class Hearing:
    """Whether a broker has heard of all that the controllers knew when they were asked for the first of some quorums.

    What they had not written by then they write all at once: it is in the log as soon as that has grown."""

    def __init__(self, asked: Asked) -> None:
        self._first = asked
        self._needed: int | None = None

    def is_complete(self, asked: Asked, position: int) -> bool:
        """`position`: how far the broker has come."""
        first = self._first
        if asked.quorum.epoch != first.quorum.epoch:  # another leader, who may know something else
            self._first, self._needed = asked, None
            return False
        has_written = asked.quorum.written > first.quorum.written or asked.at_s - first.at_s >= _IDLE_S
        if self._needed is None and has_written:
            self._needed = asked.quorum.written
        return self._needed is not None and position >= self._needed - 1


_Hearings = dict[TopicPartition, Hearing | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What the controllers said, what a broker showed after that, and what they said then."""

    earlier: Moves = field(default_factory=dict)
    """What they said before in the same look."""
    before: Moves
    asked: Asked
    topics: Topics
    position: int
    """How far the broker had come at the least."""
    after: Moves = field(default_factory=dict)


class Agreed(NamedTuple):
    """What follows."""

    moves: Moves
    doubtful: frozenset[TopicPartition]
    is_first_in_doubt: bool
    """Whether everything is, as it is seen for the first time."""


class Agreement:
    """Of one cluster, from look to look."""

    def __init__(self, known: KnownCluster) -> None:
        self._known = known
        """As of the last look."""
        self._hearings: _Hearings = {}
        """Of moves that have ended by the controllers' word, and of what is doubtful: None until they are asked again."""
        self._first: Hearing | None = None
        self._has_agreed = False

    @property
    def has_agreed(self) -> bool:
        """Whether anything is known of which a move would have been seen."""
        return self._has_agreed

    def of(self, round_: Round) -> Agreed:
        """What moves, and what is in doubt, as the broker shows it."""
        hearings, self._hearings = self._hearings, {}
        moves, heard = dict(round_.after), set()
        seen = [round_.earlier, self._known.moves]
        for tp in {tp for each in (round_.before, *seen) for tp in each}:
            shown = _shown(round_.topics, tp)
            if not shown or _explains(round_.after.get(tp), shown):
                continue
            if _explains(round_.before.get(tp), shown):
                moves[tp] = round_.before[tp]
            elif move := self._explanation(tp, shown, seen, round_.topics):
                if self._is_heard(tp, hearings.get(tp) or Hearing(round_.asked), round_):
                    heard.add(tp)
                else:
                    moves[tp] = move
        doubtful = frozenset(
            tp
            for tp in self._more_than_before(round_.topics, moves)
            if tp not in heard and not self._is_heard(tp, self._doubt(tp, hearings, round_), round_)
        )
        return Agreed(moves, doubtful, is_first_in_doubt=self._is_first_in_doubt(round_))

    def doubtful_without_controllers(self, topics: Topics) -> frozenset[TopicPartition]:
        """The same where nobody says what moves: nothing is in doubt before anything is known."""
        return frozenset(self._more_than_before(topics, self._known.moves)) if self._has_agreed else frozenset()

    def held_back(self, topics: Topics, doubtful: Collection[TopicPartition]) -> Topics:
        """The topics, whose doubtful partitions are as before."""
        if not doubtful:
            return topics
        held_back = dict(topics)
        for name, partitions in group_by_topic(doubtful):
            before = self._known.topics[name].partitions
            now = topics[name]
            as_before = {tp.partition: before[tp.partition] for tp in partitions}
            held_back[name] = now._replace(partitions={**now.partitions, **as_before})
        return held_back

    def _explanation(
        self, tp: TopicPartition, shown: tuple[BrokerId, ...], seen: Iterable[Moves], topics: Topics
    ) -> Move | None:
        """The move by which the partition was seen on its way, if that is what is shown."""
        known = self._known.topics.get(tp.topic)
        if known is not None and known.topic_id != topics[tp.topic].topic_id:
            return None
        return next((each[tp] for each in seen if tp in each and each[tp].explains(shown)), None)

    @staticmethod
    def _doubt(tp: TopicPartition, hearings: _Hearings, round_: Round) -> Hearing | None:
        """What waits for the end of a move that nobody saw: it may have begun after they were asked in this round."""
        return hearings.get(tp) or (Hearing(round_.asked) if tp in hearings else None)

    def _is_heard(self, tp: TopicPartition, hearing: Hearing | None, round_: Round) -> bool:
        """Whether the broker would show what the controllers knew when the partition was first waited for."""
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

    def _more_than_before(self, topics: Topics, moves: Moves) -> Iterable[TopicPartition]:
        """Partitions that have more replicas than before, which no move explains."""
        for name, topic in topics.items():
            known = self._known.topics.get(name)
            if known is None or known is topic or known.topic_id != topic.topic_id:
                continue
            for number, partition in topic.partitions.items():
                before = known.partitions.get(number)
                if before is not None and len(partition.replicas) > len(before.replicas):
                    tp = TopicPartition(name, number)
                    if not _explains(moves.get(tp), partition.replicas):
                        yield tp


def _explains(move: Move | None, shown: tuple[BrokerId, ...]) -> bool:
    return move is not None and move.explains(shown)


def _shown(topics: Topics, tp: TopicPartition) -> tuple[BrokerId, ...]:
    """Nobody where there is no such partition."""
    topic = topics.get(tp.topic)
    partition = topic.partitions.get(tp.partition) if topic is not None else None
    return partition.replicas if partition is not None else ()
