"""A change of a spec has an owner and a life: changes that the object itself has begun are no drift, and can be taken
back."""

from typing import Any

import pytest

from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import AlterTopicConfig
from controller_operator.plans.outcome import CancelMove, Context, Plan, StartMove
from controller_operator.plans.topic.case import Surroundings
from controller_operator.plans.topic.planner import decide
from controller_operator.resources import KafkaTopic, PartitionReassignment
from controller_operator.resources.conditions import Reason
from tests.unit.operator.clusters import (
    NOW,
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
        return plan

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
