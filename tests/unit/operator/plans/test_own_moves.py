"""A change of a spec has an owner and a life: changes that the object itself has begun are no drift, and can be taken
back."""

from typing import Any

import pytest
from pydantic import ValidationError

from controller_core.model.snapshot import Snapshot
from controller_core.zk import paths
from controller_operator.kafka.actions import AlterTopicConfig
from controller_operator.plans.outcome import CancelMove, Context, LimitMove, Plan, StartMove
from controller_operator.plans.topic.case import Surroundings
from controller_operator.plans.topic.planner import decide
from controller_operator.resources import KafkaTopic, PartitionReassignment
from controller_operator.resources.common import PAUSE_ANNOTATION
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import ReassignmentPhase, ReassignmentThrottle, read_rate
from tests.unit.operator.clusters import (
    NOW,
    ORDERS,
    assign,
    healthy,
    kafka_topic,
    lead,
    raw,
    ready,
    status_of,
    topic,
    view,
)

POLICIES = pytest.mark.parametrize("policy", ["Enforce", "Report", "Ignore"])
TWO = ((assign([1, 2]), lead(1, [1, 2])), (assign([2, 3]), lead(2, [2, 3])))
HALF = view(topic((assign([1, 2, 3], [3]), lead(1, [1, 2])), TWO[1]))
"""The first partition is getting its third replica."""
ALL = view(topic((assign([1, 2, 3]), lead(1, [1, 2, 3])), (assign([2, 3, 4], [4]), lead(2, [2, 3]))))
AT_REST = view(healthy([1, 2], [2, 3]))


class Edited:
    """An object whose spec changes, with its own moves."""

    def __init__(self, policy: str = "Enforce", **spec: Any) -> None:
        self.policy = policy
        self.moves: dict[str, PartitionReassignment] = {}
        self.status: dict[str, Any] = {}
        self.generation = 0
        self.look(AT_REST, **spec)

    def look(self, cluster: Snapshot, **spec: Any) -> Plan[Any]:
        """Give it a spec, and look at it."""
        self.generation += 1
        self.spec = {"driftPolicy": self.policy, **spec}
        return self.again(cluster)

    def again(self, cluster: Snapshot) -> Plan[Any]:
        resource: KafkaTopic = kafka_topic(self.spec, status=self.status, generation=self.generation)
        plan = decide(resource, cluster, Context(now=NOW), Surroundings(moves=self.moves))
        self.status = status_of(plan)
        for step in plan.steps:
            if isinstance(step, StartMove):
                self.moves[step.name] = self.make_running(step)
                self.throttle_by_hand(step.bytes_per_second)
            elif isinstance(step, LimitMove):
                self.throttle_by_hand(step.bytes_per_second)
        return plan

    def throttle_by_hand(self, rate: int | None) -> None:
        """Give the only move a throttle, or none."""
        ((name, move),) = self.moves.items()
        throttle = None if rate is None else ReassignmentThrottle(bytes_per_second=rate)
        self.moves[name] = move.model_copy(update={"spec": move.spec.model_copy(update={"throttle": throttle})})

    @property
    def rate(self) -> int | None:
        """The throttle of the only move."""
        (move,) = self.moves.values()
        return read_rate(move.spec.throttle)

    def make_running(
        self, step: StartMove, said: dict[str, Any] | None = None, **metadata: Any
    ) -> PartitionReassignment:
        partitions = [
            {"topic": tp.topic, "partition": tp.partition, "replicas": [*replicas]} for tp, replicas in step.partitions
        ]
        status = {"phase": "Running", "conditions": [said] if said else []}
        made = raw("PartitionReassignment", {"partitions": partitions}, status=status, name=step.name, **metadata)
        return PartitionReassignment.model_validate(made)

    def is_blaming(self) -> bool:
        return "elsewhere" in str(self.status["conditions"]) or bool(self.status.get("drift"))


@POLICIES
class TestAMoveThatTheSpecWantsNoMore:
    @pytest.mark.parametrize("seen", [AT_REST, HALF], ids=["nothing moves yet", "one partition moves"])
    def test_is_cancelled_and_nobody_else_is_blamed(self, policy: str, seen: Snapshot) -> None:
        object_ = Edited(policy)
        (begun,) = object_.look(AT_REST, replicationFactor=3).steps
        assert isinstance(begun, StartMove)
        back = object_.look(seen, replicationFactor=2)
        assert (back.steps, back.notices) == ((CancelMove(name=begun.name),), ())
        assert ready(back).message == (
            f"PartitionReassignment {begun.name} is cancelled, because the spec now asks for other replicas"
        )
        assert not object_.is_blaming()

    def test_is_cancelled_once_and_what_it_has_done_is_undone_after_that(self, policy: str) -> None:
        object_ = Edited(policy)
        (begun,) = object_.look(AT_REST, replicationFactor=3).steps
        assert isinstance(begun, StartMove)
        object_.look(ALL, replicationFactor=2)
        object_.moves[begun.name] = object_.make_running(begun, deletionTimestamp="2026-01-01T00:00:00Z")
        waiting = object_.again(ALL)
        assert (waiting.steps, ready(waiting).reason) == ((), Reason.PROGRESSING)
        assert "is being cancelled" in ready(waiting).message
        del object_.moves[begun.name]
        (undone,) = object_.again(view(healthy([1, 2, 3], [2, 3]))).steps
        assert isinstance(undone, StartMove)
        assert [(tp.partition, len(to)) for tp, to in undone.partitions] == [(0, 2)]
        assert not object_.is_blaming()
        assert object_.again(AT_REST).status.applied == {"partitions": "2"}, "the move has not ended"
        object_.moves = {}
        assert object_.again(AT_REST).status.applied == {"partitions": "2", "replicationFactor": "2"}

    def test_does_not_hold_up_the_rest_of_the_spec(self, policy: str) -> None:
        object_ = Edited(policy)
        object_.look(AT_REST, replicationFactor=3)
        steps = object_.look(HALF, replicationFactor=2, config={"retention.ms": "1"}).steps
        assert [type(step) for step in steps] == [AlterTopicConfig, CancelMove]

    def test_ends_first_where_it_is_wanted_again_while_it_goes_back(self, policy: str) -> None:
        object_ = Edited(policy)
        (begun,) = object_.look(AT_REST, replicationFactor=3).steps
        assert isinstance(begun, StartMove)
        object_.look(HALF, replicationFactor=2)
        object_.moves[begun.name] = object_.make_running(begun, deletionTimestamp="2026-01-01T00:00:00Z")
        assert object_.look(HALF, replicationFactor=3).steps == ()
        object_.moves = {}
        (again,) = object_.again(AT_REST).steps
        assert isinstance(again, StartMove)
        assert not object_.is_blaming()


@POLICIES
class TestAMoveThatTheSpecStillWants:
    def test_goes_on_whatever_else_is_edited(self, policy: str) -> None:
        object_ = Edited(policy)
        object_.look(AT_REST, replicationFactor=3)
        steps = object_.look(HALF, replicationFactor=3, config={"retention.ms": "1"}).steps
        assert [type(step) for step in steps] == [AlterTopicConfig]

    @pytest.mark.parametrize("seen", [HALF, ALL], ids=["some wait for their turn", "all are asked for"])
    def test_is_named_with_what_it_waits_for_if_it_does_not_get_on(self, policy: str, seen: Snapshot) -> None:
        object_ = Edited(policy)
        (begun,) = object_.look(AT_REST, replicationFactor=3).steps
        assert isinstance(begun, StartMove)
        waits: dict[str, Any] = {
            "type": "Ready",
            "status": "False",
            "reason": "BrokersMissing",
            "message": "orders-0 waits for its new replica on broker 3, which is not registered: start it",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        object_.moves[begun.name] = object_.make_running(begun, waits)
        said = ready(object_.again(seen)).message
        assert said.endswith(f"; PartitionReassignment {begun.name}: {waits['message']}")
        object_.moves[begun.name] = object_.make_running(begun, {**waits, "reason": "Progressing"})
        assert waits["message"] not in ready(object_.again(seen)).message

    def test_goes_on_where_its_replicas_are_only_said_in_another_way(self, policy: str) -> None:
        object_ = Edited(policy)
        (begun,) = object_.look(AT_REST, replicationFactor=3).steps
        assert isinstance(begun, StartMove)
        assignment = [[*to] for _, to in begun.partitions]
        said = object_.look(HALF, partitions=None, replicationFactor=None, replicaAssignment=assignment)
        assert said.steps == ()
        assert ready(said).message == f"PartitionReassignment {begun.name} moves replicas"

    def test_ends_before_partitions_that_it_has_moved_already_move_again(self, policy: str) -> None:
        spec: dict[str, Any] = {"partitions": None, "replicationFactor": None}
        object_ = Edited(policy, **spec, replicaAssignment=[[1, 2], [2, 3]])
        object_.look(AT_REST, **spec, replicaAssignment=[[4, 5], [5, 6]])
        first_is_there = view(topic((assign([4, 5]), lead(4, [4, 5])), TWO[1]))
        waiting = object_.look(first_is_there, **spec, replicaAssignment=[[1, 2], [5, 6]])
        assert (waiting.steps, ready(waiting).reason) == ((), Reason.PROGRESSING)
        assert not object_.is_blaming()


@POLICIES
def test_a_configuration_that_is_taken_back_is_set_back(policy: str) -> None:
    object_ = Edited(policy, config={"retention.ms": "1"})
    before = view(healthy([1, 2], [2, 3], config={"retention.ms": "1"}))
    object_.again(before)
    object_.look(before, config={"retention.ms": "2"})
    (back,) = object_.look(
        view(healthy([1, 2], [2, 3], config={"retention.ms": "2"})), config={"retention.ms": "1"}
    ).steps
    assert isinstance(back, AlterTopicConfig)
    assert (back.changes, object_.is_blaming()) == ({"retention.ms": "1"}, False)


@pytest.mark.parametrize(("policy", "is_drift"), [("Enforce", True), ("Report", True), ("Ignore", False)])
def test_what_somebody_else_changes_is_drift_though_other_things_of_the_spec_are_under_way(
    policy: str, is_drift: bool
) -> None:
    object_ = Edited(policy, config={"retention.ms": "1"})
    object_.again(view(healthy([1, 2], [2, 3], config={"retention.ms": "1"})))
    object_.look(view(topic(*TWO, config={"retention.ms": "1"})), config={"retention.ms": "1"}, replicationFactor=3)
    object_.moves = {}
    done = object_.again(view(healthy([1, 2, 3], [2, 3, 4], config={"retention.ms": "7"})))
    assert bool(done.status.drift) is is_drift
    assert [type(step) for step in done.steps] == ([AlterTopicConfig] if policy == "Enforce" else [])


def test_a_correction_is_told_once_however_long_its_move_takes() -> None:
    object_ = Edited()
    taken = view(topic((assign([1]), lead(1, [1])), (assign([2]), lead(2, [2]))))
    assert [each.reason for each in object_.again(taken).notices] == ["DriftCorrected"]
    half = view(topic((assign([1, 2], [2]), lead(1, [1])), (assign([2]), lead(2, [2]))))
    going_on = object_.again(half)
    assert (going_on.steps, going_on.notices) == ((), ())
    assert object_.is_blaming(), "it is still being put right"


def test_moves_of_other_topics_are_none_of_its_own() -> None:
    object_ = Edited()
    stranger = raw(
        "PartitionReassignment", {"partitions": [{"topic": "other", "partition": 0, "replicas": [1]}]}, name="stranger"
    )
    object_.moves["stranger"] = PartitionReassignment.model_validate(stranger)
    assert object_.again(AT_REST).steps == ()


LIMIT = 8_000


def make_growth(limit: int | None, **spec: Any) -> dict[str, Any]:
    """Return a spec with a third replica, which moves with this throttle."""
    throttle = {"throttle": {"bytesPerSecond": limit}} if limit is not None else {}
    return {"replicationFactor": 3, "reassignment": throttle, **spec}


class Limited(Edited):
    """An object that has begun a move with a throttle, or without."""

    def __init__(self, limit: int | None = LIMIT, policy: str = "Enforce") -> None:
        super().__init__(policy)
        (self.begun,) = self.look(AT_REST, **make_growth(limit)).steps
        assert isinstance(self.begun, StartMove)
        assert (self.rate, self.record) == (limit, self.make_record(limit))

    @property
    def record(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self.status.get("reassignment")
        return found

    def make_record(self, limit: int | None) -> dict[str, Any]:
        assert isinstance(self.begun, StartMove)
        return {"name": self.begun.name} | ({"bytesPerSecond": limit} if limit is not None else {})

    def limit(self, rate: int | None) -> LimitMove:
        assert isinstance(self.begun, StartMove)
        return LimitMove(name=self.begun.name, bytes_per_second=rate)


class TestTheThrottleOfARunningMove:
    @POLICIES
    @pytest.mark.parametrize("seen", [AT_REST, HALF, ALL], ids=["nothing moves yet", "one moves", "all are asked for"])
    @pytest.mark.parametrize(
        ("limit", "other"),
        [(LIMIT, 2 * LIMIT), (LIMIT, LIMIT // 2), (LIMIT, None), (None, LIMIT)],
        ids=["raised", "lowered", "removed", "added"],
    )
    def test_becomes_that_of_the_spec_at_once(
        self, policy: str, seen: Snapshot, limit: int | None, other: int | None
    ) -> None:
        object_ = Limited(limit, policy)
        assert object_.again(seen).steps == ()
        changed = object_.look(seen, **make_growth(other))
        assert (changed.steps, changed.notices) == ((object_.limit(other),), ())
        assert object_.record == object_.make_record(limit), "it is noted when the move has it"
        assert object_.again(seen).steps == ()
        assert (object_.rate, object_.record) == (other, object_.make_record(other))
        assert not object_.is_blaming()

    def test_goes_with_all_settings_of_moves(self) -> None:
        object_ = Limited()
        object_.look(HALF, replicationFactor=3)
        assert object_.rate is None

    def test_is_given_again_if_the_operator_died_before_it_was_noted(self) -> None:
        object_ = Limited()
        before = object_.status
        object_.look(HALF, **make_growth(2 * LIMIT))
        object_.status = before
        assert object_.again(HALF).steps == ()
        assert object_.record == object_.make_record(2 * LIMIT)

    def test_is_given_if_the_operator_died_before_it_was_given(self) -> None:
        object_ = Limited()
        object_.look(HALF, **make_growth(2 * LIMIT))
        object_.throttle_by_hand(LIMIT)
        assert object_.again(HALF).steps == (object_.limit(2 * LIMIT),)

    @pytest.mark.parametrize("limit", [LIMIT // 4, 4 * LIMIT, None], ids=["slow", "fast", "no throttle"])
    def test_that_a_person_has_set_stays_until_the_spec_has_another_one(self, limit: int | None) -> None:
        object_ = Limited()
        object_.throttle_by_hand(limit)
        steps = object_.look(HALF, **make_growth(LIMIT, config={"retention.ms": "1"})).steps
        assert [type(step) for step in steps] == [AlterTopicConfig]
        assert object_.rate == limit
        object_.look(HALF, **make_growth(2 * LIMIT))
        assert object_.rate == 2 * LIMIT

    @pytest.mark.parametrize(
        ("limit", "after"),
        [(LIMIT // 4, LIMIT // 4), (2 * LIMIT, LIMIT // 2), (None, LIMIT // 2)],
        ids=["slow", "fast", "no throttle"],
    )
    def test_that_a_person_has_set_is_not_raised_by_a_lower_one(self, limit: int | None, after: int) -> None:
        object_ = Limited()
        object_.throttle_by_hand(limit)
        object_.look(HALF, **make_growth(LIMIT // 2))
        object_.again(HALF)
        assert (object_.rate, object_.record) == (after, object_.make_record(LIMIT // 2))

    def test_stays_as_an_older_operator_or_a_person_has_set_it(self) -> None:
        object_ = Limited()
        object_.throttle_by_hand(4 * LIMIT)
        object_.status.pop("reassignment")
        assert object_.again(HALF).steps == ()
        assert (object_.rate, object_.record) == (4 * LIMIT, object_.make_record(LIMIT))

    def test_does_not_wait_for_a_change_of_the_topic_that_is_not_possible(self) -> None:
        object_ = Limited()
        stalled = object_.look(HALF, **make_growth(2 * LIMIT, partitions=1))
        assert ready(stalled).reason is Reason.PARTITIONS_CANNOT_DECREASE
        assert object_.rate == 2 * LIMIT

    def test_is_that_of_the_spec_when_the_object_is_no_longer_paused(self) -> None:
        object_ = Limited()
        paused = kafka_topic(
            {"driftPolicy": "Enforce", **make_growth(2 * LIMIT)},
            status=object_.status,
            generation=9,
            annotations={PAUSE_ANNOTATION: "true"},
        )
        plan = decide(paused, HALF, Context(now=NOW), Surroundings(moves=object_.moves))
        assert plan.steps == ()
        object_.status = status_of(plan)
        assert object_.look(HALF, **make_growth(2 * LIMIT)).steps == (object_.limit(2 * LIMIT),)

    def test_is_not_forgotten_while_the_topic_cannot_be_read(self) -> None:
        object_ = Limited()
        unreadable = view(malformed={paths.topic(ORDERS): "bytes that are no JSON"})
        assert object_.look(unreadable, **make_growth(2 * LIMIT)).steps == ()
        assert object_.again(HALF).steps == (object_.limit(2 * LIMIT),)

    def test_is_never_below_the_least_that_a_move_may_have(self) -> None:
        with pytest.raises(ValidationError, match="greater than or equal to 1024"):
            kafka_topic(make_growth(1023))

    def test_is_not_changed_for_a_move_that_is_cancelled(self) -> None:
        object_ = Limited()
        (cancelled,) = object_.look(HALF, **make_growth(2 * LIMIT, replicationFactor=2)).steps
        assert isinstance(cancelled, CancelMove)
        assert isinstance(object_.begun, StartMove)
        going = object_.make_running(object_.begun, deletionTimestamp="2026-01-01T00:00:00Z")
        object_.moves = {object_.begun.name: going}
        assert object_.look(HALF, **make_growth(4 * LIMIT)).steps == ()

    @pytest.mark.parametrize("phase", ["Completed", "Failed"])
    def test_of_a_move_that_has_ended_stays_and_the_move_is_not_made_again_for_another_one(self, phase: str) -> None:
        object_ = Limited()
        ((name, move),) = object_.moves.items()
        ended = move.status.model_copy(update={"phase": ReassignmentPhase(phase)})
        object_.moves[name] = move.model_copy(update={"status": ended})
        done = view(healthy([1, 2, 3], [2, 3, 4])) if phase == "Completed" else AT_REST
        assert object_.look(done, **make_growth(2 * LIMIT)).steps == ()
        assert (object_.rate, object_.record) == (LIMIT, None)

    def test_of_a_move_that_is_begun_again_is_that_of_the_spec(self) -> None:
        object_ = Limited()
        object_.moves = {}
        (again,) = object_.look(AT_REST, **make_growth(2 * LIMIT)).steps
        assert isinstance(again, StartMove)
        assert again.bytes_per_second == 2 * LIMIT

    def test_is_corrected_if_the_move_that_is_begun_again_existed_already(self) -> None:
        """The API server has created the move, and its answer was lost."""
        object_ = Limited()
        object_.moves = {}
        object_.look(AT_REST, **make_growth(2 * LIMIT))
        object_.throttle_by_hand(LIMIT)
        assert object_.again(AT_REST).steps == (object_.limit(2 * LIMIT),)

    def test_shows_no_record_if_nothing_moves(self) -> None:
        object_ = Limited()
        object_.moves = {}
        object_.again(view(healthy([1, 2, 3], [2, 3, 4])))
        assert object_.record is None
        assert object_.look(view(healthy([1, 2, 3], [2, 3, 4])), **make_growth(2 * LIMIT)).steps == ()
