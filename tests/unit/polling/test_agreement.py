"""The moves that count at the moment that a broker shows, while the controllers report moves that no broker has heard
of yet."""

from dataclasses import replace
from uuid import UUID

import pytest

from controller_core.client.quorum import Quorum
from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicName
from controller_core.model.metadata import ReplicaAssignment
from controller_core.polling.agreement import Agreed, Agreement, Asked, Hearing, Round
from controller_core.polling.answers import Moves, Partition, Topic, Topics
from controller_core.polling.known_cluster import KnownCluster
from simulation.cluster.names import tp
from tests.unit.operator.clusters import ORDERS_ID, lead

ORDERS = TopicName("orders")
OTHER = TopicName("other")
FIRST = tp(ORDERS, 0)
QUORUM = Quorum(leader=BrokerId(101), epoch=4, committed=10, written=10)


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def make_moves(*replicas: int, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()) -> Moves:
    return {FIRST: ReplicaAssignment(replicas=ids(*replicas), adding=ids(*adding), removing=ids(*removing))}


FROM_1_TO_3 = make_moves(3, 2, 1, adding=(3,), removing=(1,))
NOTHING: Moves = {}
INSTEAD = make_moves(4, 2, 3, 1, adding=(4,), removing=(3, 1))


def shows(*replicas: int, name: TopicName = ORDERS, topic_id: TopicId = ORDERS_ID, **others: tuple[int, ...]) -> Topics:
    """A topic by the replicas of its partition 0; `p1`: of partition 1."""
    numbered = {0: replicas, **{int(number[1:]): each for number, each in others.items()}}
    return {
        name: Topic(topic_id, {PartitionId(at): Partition(ids(*each), lead(2, [2])) for at, each in numbered.items()})
    }


def round_of(topics: Topics, asked: Asked, position: int = 9) -> Round:
    """Return a round in which nothing moves."""
    return Round(before={}, asked=asked, topics=topics, position=position)


class Looks:
    """The agreed moves, look after look. The controllers write a record before each look, unless `written` says
    otherwise."""

    def __init__(self, topics: Topics, moves: Moves) -> None:
        self._cluster = KnownCluster()
        self._agreement = Agreement(self._cluster)
        self._written, self._now_s = 10, 0.0
        self._agreement.conclude(round_of({}, self._make_asked()))
        self._take(topics, moves)

    def look(
        self,
        topics: Topics,
        *,
        earlier: Moves = NOTHING,
        before: Moves = NOTHING,
        after: Moves = NOTHING,
        written: int | None = None,
    ) -> Agreed:
        self._now_s += 0.1
        self._written = self._written + 1 if written is None else written
        round_ = round_of(topics, self._make_asked(), self._written - 1)
        agreed = self._agreement.conclude(replace(round_, earlier=earlier, before=before, after=after))
        self._take(self._agreement.hold_back(topics, agreed.doubtful), agreed.moves)
        return agreed

    def list_shown(self) -> tuple[int, ...]:
        """The replicas of the first partition as they are known."""
        return tuple(map(int, self._cluster.topics[ORDERS].partitions[PartitionId(0)].replicas))

    def _make_asked(self) -> Asked:
        return Asked(replace(QUORUM, written=self._written), self._now_s)

    def _take(self, topics: Topics, moves: Moves) -> None:
        self._cluster.take_topics(topics, moves, 9)


class TestWhatMoves:
    @pytest.mark.parametrize(("before", "after"), [(FROM_1_TO_3, {}), ({}, FROM_1_TO_3), (FROM_1_TO_3, FROM_1_TO_3)])
    def test_a_move_that_began_or_ended_meanwhile_explains_what_is_shown(self, before: Moves, after: Moves) -> None:
        agreed = Looks(shows(1, 2), {}).look(shows(3, 2, 1), before=before, after=after)
        assert agreed == Agreed(FROM_1_TO_3, frozenset(), is_first_in_doubt=False)

    @pytest.mark.parametrize(
        ("replicas", "before", "moves"),
        [
            ((3, 2, 1), FROM_1_TO_3, FROM_1_TO_3),
            ((4, 2, 3, 1), FROM_1_TO_3, INSTEAD),
            ((3, 2, 1), INSTEAD, FROM_1_TO_3),
        ],
    )
    def test_a_move_that_was_replaced_meanwhile_is_the_one_whose_replicas_are_shown(
        self, replicas: tuple[int, ...], before: Moves, moves: Moves
    ) -> None:
        assert Looks(shows(3, 2, 1), FROM_1_TO_3).look(shows(*replicas), before=before, after=INSTEAD).moves == moves

    @pytest.mark.parametrize("replicas", [(3, 2), (1, 2)])
    def test_a_move_has_ended_where_other_replicas_are_shown(self, replicas: tuple[int, ...]) -> None:
        assert Looks(shows(3, 2, 1), FROM_1_TO_3).look(shows(*replicas)).moves == {}

    def test_a_move_of_a_topic_that_is_gone_or_another_has_ended(self) -> None:
        assert Looks(shows(3, 2, 1), FROM_1_TO_3).look({}).moves == {}
        again = shows(3, 2, 1, topic_id=TopicId(UUID(int=4321)))
        assert Looks(shows(3, 2, 1), FROM_1_TO_3).look(again).moves == {}

    @pytest.mark.parametrize(
        "move",
        [FROM_1_TO_3, make_moves(3, 2, 1, adding=(3,)), make_moves(3, 2, 1, removing=(1,))],
        ids=["both", "adds", "removes"],
    )
    def test_a_move_counts_until_the_broker_has_heard_of_what_the_controllers_had_not_written(
        self, move: Moves
    ) -> None:
        looks, still = Looks(shows(3, 2, 1), move), shows(3, 2, 1)
        assert [looks.look(still, written=written).moves for written in (11, 11)] == [move] * 2
        assert looks.look(still, written=12) == Agreed({}, frozenset(), is_first_in_doubt=False), "it keeps all of them"

    def test_a_move_that_was_seen_earlier_in_the_same_look_counts_as_long(self) -> None:
        looks = Looks(shows(1, 2), {})
        assert looks.look(shows(3, 2, 1), earlier=FROM_1_TO_3).moves == FROM_1_TO_3
        assert looks.look(shows(3, 2), earlier=FROM_1_TO_3).moves == {}


class TestDoubt:
    def test_more_replicas_than_before_are_news_when_all_is_heard_that_was_known_then(self) -> None:
        looks = Looks(shows(1, 2), {})
        for _ in range(3):  # the log does not grow
            agreed = looks.look(shows(3, 2, 1), written=11)
            assert agreed == Agreed({}, frozenset({FIRST}), is_first_in_doubt=False)
            assert looks.list_shown() == (1, 2)
        assert looks.look(shows(3, 2, 1), written=12).doubtful == set()
        assert looks.list_shown() == (3, 2, 1)

    def test_what_is_in_doubt_holds_back_no_other_partition(self) -> None:
        looks = Looks(shows(1, 2, p1=(1, 2)), {})
        assert looks.look(shows(3, 2, 1, p1=(4, 5))).doubtful == {FIRST}
        assert looks.look(shows(3, 2, p1=(6, 5, 4))).doubtful == {tp(ORDERS, 1)}
        assert looks.list_shown() == (3, 2)

    @pytest.mark.parametrize("replicas", [(1, 2), (2, 1), (3, 2), (1,)])
    def test_as_many_or_fewer_are_in_no_doubt(self, replicas: tuple[int, ...]) -> None:
        assert Looks(shows(1, 2), {}).look(shows(*replicas)).doubtful == set()

    def test_a_move_that_does_not_lead_there_explains_nothing(self) -> None:
        agreed = Looks(shows(1, 2), {}).look(shows(3, 2, 1), after=INSTEAD)
        assert agreed == Agreed(INSTEAD, frozenset({FIRST}), is_first_in_doubt=False)

    def test_a_new_topic_is_as_it_is(self) -> None:
        assert Looks(shows(1, 2), {}).look({**shows(1, 2), **shows(1, 2, name=OTHER)}).doubtful == set()

    def test_without_controllers_more_replicas_are_left_for_later(self) -> None:
        cluster = KnownCluster()
        agreement = Agreement(cluster)
        assert agreement.find_doubtful_without_controllers(shows(3, 2, 1)) == set()
        cluster.take_topics(shows(1, 2), {}, 9)
        assert agreement.find_doubtful_without_controllers(shows(3, 2, 1)) == set(), (
            "nobody knows yet whether it moved then"
        )
        agreement.conclude(round_of({}, Asked(QUORUM, 0.0)))
        assert agreement.find_doubtful_without_controllers(shows(3, 2, 1)) == {FIRST}

    def test_the_first_look_lasts_until_all_is_heard(self) -> None:
        agreement = Agreement(KnownCluster())

        def is_in_doubt(written: int, position: int) -> bool:
            asked = Asked(replace(QUORUM, written=written), 0.0)
            return agreement.conclude(round_of(shows(3, 2, 1), asked, position)).is_first_in_doubt

        assert [is_in_doubt(10, 9), is_in_doubt(11, 9), is_in_doubt(12, 10), is_in_doubt(10, 0)] == [
            True,
            True,
            False,
            False,
        ]


class TestHearing:
    def test_all_is_heard_when_the_log_has_grown_and_the_broker_has_come_as_far(self) -> None:
        hearing, grown = Hearing(Asked(QUORUM, 0.0)), replace(QUORUM, written=13)
        assert not hearing.is_complete(Asked(QUORUM, 0.1), 100)
        assert not hearing.is_complete(Asked(grown, 0.2), 11)
        assert hearing.is_complete(Asked(replace(QUORUM, written=20), 0.3), 12)

    def test_a_log_that_does_not_grow_holds_it_all_after_a_while(self) -> None:
        hearing = Hearing(Asked(QUORUM, 0.0))
        assert not hearing.is_complete(Asked(QUORUM, 0.7), 9)
        assert not hearing.is_complete(Asked(QUORUM, 0.8), 8)
        assert hearing.is_complete(Asked(QUORUM, 0.9), 9)

    def test_another_leader_may_know_something_else(self) -> None:
        hearing, next_one = Hearing(Asked(QUORUM, 0.0)), replace(QUORUM, epoch=5, written=12)
        assert not hearing.is_complete(Asked(next_one, 1.0), 100)
        assert hearing.is_complete(Asked(replace(next_one, written=13), 1.1), 12)
