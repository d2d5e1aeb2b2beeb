"""Each partition of a move goes its own way: one that is held back or refused does not disturb the others."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.kafka.requests.moves import MoveReply, Refusal, RefusalKind
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.planner import Surroundings, decide
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import PartitionReassignment, ReassignmentPhase, ReassignmentStep
from tests.unit.operator.clusters import ORDERS, assign, healthy, lead, ready, reassignment, status_of, topic, view
from tests.unit.operator.plans.reassignment.test_reassignment import list_asked, make_request
from tests.unit.operator.plans.reassignment.test_turns import BEFORE, FRESH, TARGETS, Operated, start_moves

PHASE, STEP = ReassignmentPhase, ReassignmentStep
AWAY = (assign([6, 1, 2], [6], [1, 2]), lead(1, [1, 2]))
HOME = (assign([1, 2]), lead(1, [1, 2]))
OURS = (assign([4, 5, 1, 2], [4, 5], [1, 2]), lead(1, [1, 2]))
THERE = (assign([4, 5]), lead(4, [4, 5]))


def tp(number: int) -> TopicPartition:
    return TopicPartition(ORDERS, PartitionId(number))


def reply_to(plan: Plan[Any], trouble: str | None = None, **refused: tuple[RefusalKind, str]) -> Context:
    """Return the context after the plan's request. Partitions that are not refused began, unless there was trouble."""
    (step,) = plan.steps
    assert isinstance(step, SubmitReassignment)
    refusals = {tp(int(name[1:])): Refusal(kind=kind, said=said) for name, (kind, said) in refused.items()}
    accepted = frozenset(() if trouble else step.partitions.keys() - refusals.keys())
    reply = MoveReply(step=step, accepted=accepted, refused=refusals, trouble=trouble)
    done = SubmitReassignment(partitions={each: to for each, to in step.partitions.items() if each in accepted})
    return replace(FRESH, done=(done,) if accepted else (), submissions=(reply,))


def rows(plan: Plan[Any]) -> dict[int, tuple[ReassignmentStep, str | None]]:
    return {row.partition: (row.step, row.message) for row in plan.status.partitions}


def make_move(name: str, targets: Mapping[int, Sequence[int]]) -> PartitionReassignment:
    return reassignment(targets, name=name, uid=name)


class TestWhoMovesAPartitionElsewhere:
    def test_holds_back_that_one_alone_and_is_named(self) -> None:
        move = reassignment(TARGETS)
        others = (make_move("first", {0: [6]}), make_move("second", {7: [6]}))
        plan = decide(move, view(topic(AWAY, HOME, HOME)), FRESH, Surroundings(others=lambda _: others))
        assert (list_asked(plan), plan.status.phase) == ([{1: (4, 5), 2: (4, 5)}], PHASE.RUNNING)
        assert rows(plan)[0] == (STEP.WAITING, "moves elsewhere at present, for shop/first")
        running = reassignment(TARGETS, status=status_of(plan))
        plan = decide(running, view(topic(AWAY, OURS, OURS)), FRESH, Surroundings(others=lambda _: others))
        assert (plan.steps, ready(plan).reason) == ((), Reason.PROGRESSING)
        assert ready(plan).message == (
            "2 of 3 partitions are on their way; orders-0 moves elsewhere at present, for shop/first"
        )
        last = decide(running, view(topic(AWAY, THERE, THERE)), FRESH, Surroundings(others=lambda _: others))
        assert ready(last).reason is Reason.WAITING_FOR_OTHER_REASSIGNMENT
        assert ready(last).message == "orders-0 moves elsewhere at present, for shop/first"

    def test_may_be_a_person_who_has_only_asked_for_it(self) -> None:
        plan = Operated().look(replace(BEFORE, reassignment=make_request({1: [6]})))
        assert list_asked(plan) == [{0: (4, 5), 2: (4, 5)}]
        assert rows(plan)[1] == (
            STEP.WAITING,
            "moves elsewhere at present, not for any PartitionReassignment",
        )

    def test_takes_no_place_of_those_that_move_at_a_time(self) -> None:
        move = Operated(maxConcurrentPartitions=1)
        assert list_asked(move.look(view(topic(AWAY, HOME, HOME)))) == [{1: (4, 5)}]

    def test_is_looked_for_among_those_that_move_its_topics(self) -> None:
        asked_about = []

        def nobody(topics: Collection[TopicName]) -> Sequence[PartitionReassignment]:
            asked_about.append({*topics})
            return ()

        plan = decide(reassignment(TARGETS), BEFORE, FRESH, Surroundings(others=nobody))
        assert (len(plan.steps), asked_about) == (1, [{ORDERS}])


class TestWhoMovedAPartitionAndHasNotSaidHowThatEnded:
    """The first partition is at the target of another object, whose status still says that it is under way."""

    SEEN = view(topic((assign([6, 1]), lead(6, [6, 1])), HOME, HOME))

    def other(self, step: ReassignmentStep = STEP.CATCHING_UP, **about: Any) -> PartitionReassignment:
        row = {"topic": ORDERS, "partition": 0, "targetReplicas": [6, 1], "step": step}
        status = {"phase": "Running", "partitions": [row]}
        return reassignment({0: [6, 1]}, name="first", uid="first", status=status, **about)

    def test_holds_back_that_partition_alone_for_a_moment(self) -> None:
        plan = decide(reassignment(TARGETS), self.SEEN, FRESH, Surroundings(others=lambda _: (self.other(),)))
        assert list_asked(plan) == [{1: (4, 5), 2: (4, 5)}]
        alone = decide(reassignment({0: [4, 5]}), self.SEEN, FRESH, Surroundings(others=lambda _: (self.other(),)))
        assert (alone.steps, alone.status.phase, alone.look_again_in_s) == ((), PHASE.PENDING, 1.0)
        assert ready(alone).reason is Reason.WAITING_FOR_OTHER_REASSIGNMENT
        assert ready(alone).message == ("orders-0 has moved for shop/first, whose status does not show the outcome yet")

    def test_holds_back_what_comes_to_its_turn_as_well(self) -> None:
        move = reassignment({0: [4, 5], 1: [4, 5]}, status={"phase": "Running", "startTime": "2026-01-01T00:00:00Z"})
        plan = decide(
            move,
            view(topic((assign([6, 1]), lead(6, [6, 1])), OURS)),
            FRESH,
            Surroundings(others=lambda _: (self.other(),)),
        )
        assert (plan.steps, plan.look_again_in_s) == ((), 1.0)

    @pytest.mark.parametrize("step", [STEP.DONE, STEP.FAILED, STEP.CANCELLED, STEP.SUPERSEDED, STEP.WAITING])
    def test_holds_back_nothing_once_it_has_and_nothing_that_it_has_not_begun(self, step: ReassignmentStep) -> None:
        plan = decide(reassignment({0: [4, 5]}), self.SEEN, FRESH, Surroundings(others=lambda _: (self.other(step),)))
        assert list_asked(plan) == [{0: (4, 5)}]

    def test_holds_back_nothing_while_it_is_paused(self) -> None:
        paused = self.other(annotations={"kontroller.dev/pause": "true"})
        plan = decide(reassignment({0: [4, 5]}), self.SEEN, FRESH, Surroundings(others=lambda _: (paused,)))
        assert list_asked(plan) == [{0: (4, 5)}]

    def test_does_not_hold_back_what_is_under_way_for_the_object_itself(self) -> None:
        first = Operated({0: [4, 5]})
        first.look(BEFORE)
        seen = view(topic(OURS, HOME, HOME))
        first.look(seen)
        move = reassignment({0: [4, 5]}, status=first.status)
        assert decide(
            move, view(topic(THERE, HOME, HOME)), FRESH, Surroundings(others=lambda _: (self.other(),))
        ).status.phase is (PHASE.COMPLETED)


class TestAMoveThatAnotherOneHasSuperseded:
    AFTERWARDS = pytest.mark.parametrize(
        ("now", "words"),
        [
            ((assign([6, 1, 2], [6], [2]), lead(1, [1, 2])), "moves to replicas [6,1] now"),
            ((assign([6, 1]), lead(6, [6, 1])), "has replicas [6,1] now"),
        ],
        ids=["under way", "over"],
    )

    @AFTERWARDS
    def test_is_not_said_to_be_cancelled_and_says_what_is_there_now(self, now: Any, words: str) -> None:
        move = Operated({0: [4, 5]})
        move.look(BEFORE)
        move.look(view(topic(OURS, HOME, HOME)))
        end = move.look(view(topic(now, HOME, HOME)))
        (row,) = end.status.partitions
        assert row.step is STEP.SUPERSEDED
        assert row.message.startswith("another move has replaced this one, and it is unknown whether")
        assert row.message.endswith(words)
        assert (end.status.phase, ready(end).reason) == (PHASE.FAILED, Reason.SUPERSEDED)
        assert [each.reason for each in end.notices] == ["ReassignmentSuperseded"]
        assert (end.status.counts.failed, end.status.counts.moving) == (1, 0)

    def test_is_done_where_the_other_one_moves_it_on_from_its_target(self) -> None:
        move = Operated({0: [4, 5]})
        move.look(BEFORE)
        move.look(view(topic(OURS, HOME, HOME)))
        end = move.look(view(topic((assign([4, 5, 6], [6]), lead(4, [4, 5])), HOME, HOME)))
        assert (rows(end)[0], end.status.phase) == ((STEP.DONE, None), PHASE.COMPLETED)

    @pytest.mark.parametrize("now", [HOME, (assign([1, 2, 4], [], [4]), lead(1, [1, 2]))], ids=["back", "going back"])
    def test_is_told_from_one_that_was_cancelled(self, now: Any) -> None:
        move = Operated({0: [4, 5]})
        move.look(BEFORE)
        move.look(view(topic(OURS, HOME, HOME)))
        end = move.look(view(topic(now, HOME, HOME)))
        assert rows(end)[0] == (
            STEP.FAILED,
            "was sent back to its original replicas: another tool cancelled the move",
        )
        assert ready(end).reason is Reason.PARTITIONS_FAILED


def test_a_broker_that_goes_before_its_turn_holds_back_its_partitions_alone() -> None:
    move = Operated({0: [4, 5], 1: [4, 6], 2: [4, 5]}, maxConcurrentPartitions=1)
    move.look(BEFORE)
    move.look(start_moves(BEFORE, 0))
    without = view(healthy([4, 5], [1, 2], [1, 2]), brokers=(1, 2, 3, 4, 5))
    plan = move.look(without)
    assert list_asked(plan) == [{2: (4, 5)}]
    assert rows(plan)[1] == (STEP.WAITING, "waits for broker 6, which is not registered: start it")


class TestWhatTheControllerRefuses:
    def look_at(self, kind: RefusalKind, cluster: Snapshot) -> tuple[Operated, Plan[Any]]:
        move = Operated()
        context = reply_to(move.look(BEFORE), p1=(kind, "no"))
        return move, move.look(cluster, context)

    def test_for_good_fails_alone_and_the_others_go_on(self) -> None:
        move, plan = self.look_at(RefusalKind.IMPOSSIBLE, view(topic(OURS, HOME, OURS)))
        assert (plan.steps, plan.status.phase, ready(plan).reason) == ((), PHASE.RUNNING, Reason.PROGRESSING)
        assert rows(plan)[1] == (STEP.FAILED, "was refused by the controller: no")
        assert move.look(view(topic(OURS, HOME, OURS))).steps == ()
        end = move.look(view(topic(THERE, HOME, THERE)))
        assert (end.status.phase, ready(end).reason) == (PHASE.FAILED, Reason.PARTITIONS_FAILED)

    @pytest.mark.parametrize(
        ("kind", "reason"),
        [(RefusalKind.UNKNOWN, Reason.UNKNOWN_TOPIC), (RefusalKind.NOT_NOW, Reason.REQUEST_REFUSED)],
    )
    def test_for_now_is_asked_for_again_later_and_nothing_else_is(self, kind: RefusalKind, reason: Reason) -> None:
        move, plan = self.look_at(kind, view(topic(OURS, HOME, OURS)))
        assert (plan.steps, plan.look_again_in_s) == ((), 5.0)
        assert rows(plan)[1] == (STEP.WAITING, "was refused by the controller: no")
        assert "orders-1 was refused by the controller: no" in ready(plan).message
        done = view(topic(THERE, HOME, THERE))
        plan = move.look(done)
        assert list_asked(plan) == [{1: (4, 5)}]
        plan = move.look(done, reply_to(plan, p1=(kind, "no")))
        assert (plan.steps, ready(plan).reason) == ((), reason)
        before = move.status
        assert list_asked(move.look(done)) == [{1: (4, 5)}]
        assert move.status == before, "it says the same until there is another answer"

    def test_for_a_broker_that_has_gone_meanwhile_waits_for_that(self) -> None:
        cluster = view(topic(HOME, HOME, HOME), brokers=(1, 2, 3, 4))
        _, plan = self.look_at(RefusalKind.IMPOSSIBLE, cluster)
        assert rows(plan)[1] == (STEP.WAITING, "waits for broker 5, which is not registered: start it")

    def test_makes_room_for_the_next_one(self) -> None:
        move = Operated(maxConcurrentPartitions=1)
        context = reply_to(move.look(BEFORE), p0=(RefusalKind.NOT_NOW, "no"))
        assert list_asked(move.look(BEFORE, context)) == [{1: (4, 5)}]

    def test_and_the_cluster_shows_under_way_all_the_same_is_under_way(self) -> None:
        _, plan = self.look_at(RefusalKind.IMPOSSIBLE, view(topic(OURS, OURS, OURS)))
        assert rows(plan)[1] == (STEP.CATCHING_UP, None)


class TestWithoutAnAnswer:
    def test_the_status_says_so_and_it_is_tried_again(self) -> None:
        move = Operated()
        plan = move.look(BEFORE, reply_to(move.look(BEFORE), trouble="nobody answers"))
        assert (plan.steps, plan.look_again_in_s, plan.status.phase) == ((), 5.0, PHASE.RUNNING)
        assert ready(plan).reason is Reason.BROKERS_UNAVAILABLE
        assert "the controller could not be asked: nobody answers" in ready(plan).message
        before = move.status
        assert list_asked(move.look(BEFORE)) == [{0: (4, 5), 1: (4, 5), 2: (4, 5)}]
        assert move.status == before

    def test_what_the_cluster_shows_has_begun_and_only_the_rest_is_asked_for_again(self) -> None:
        move = Operated()
        seen = view(topic(OURS, HOME, THERE))
        plan = move.look(seen, reply_to(move.look(BEFORE), trouble="the answer was lost"))
        assert plan.steps == ()
        assert move.steps() == ["CatchingUp", "Waiting", "Done"]
        assert list_asked(move.look(seen)) == [{1: (4, 5)}]

    def test_nothing_is_asked_for_again_over_a_view_that_may_be_old(self) -> None:
        move = Operated()
        move.look(BEFORE, reply_to(move.look(BEFORE), trouble="the answer was lost"))
        plan = move.look(BEFORE, replace(FRESH, is_view_fresh=False))
        assert (plan.steps, plan.needs_fresh_view) == ((), True)
