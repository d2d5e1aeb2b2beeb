"""A broker that is to be removed gets no new replica, and every object that names it for one says so."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot, TopicSnapshot
from controller_operator.kafka.actions import AddPartitions, AlterTopicConfig, CreateTopic, SubmitReassignment
from controller_operator.plans.cluster.planner import show_cluster
from controller_operator.plans.outcome import Context, Plan, StartMove
from controller_operator.plans.reassignment.planner import decide as decide_move
from controller_operator.plans.topic.case import Surroundings
from controller_operator.plans.topic.planner import decide as decide_topic
from controller_operator.resources import KafkaCluster, KafkaTopic, PartitionReassignment
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from tests.unit.operator.clusters import (
    NOW,
    assign,
    healthy,
    kafka_topic,
    lead,
    raw,
    ready,
    reassignment,
    status_of,
    topic,
    view,
)

FRESH = replace(Context(now=NOW), is_view_fresh=True)
ALONE = Surroundings(moves={})
PINNED = (
    "spec.replicaAssignment pins replicas of partition 0 to broker 4, which is to be removed (spec.brokersToRemove of "
    "the KafkaCluster): no replica is moved there. Name other brokers in replicaAssignment, or give replicationFactor "
    "instead"
)
ASSIGNMENT: dict[str, Any] = {"partitions": None, "replicationFactor": None, "replicaAssignment": [[4, 1], [1, 2]]}


def mark(*topics: TopicSnapshot, brokers: Sequence[int] = (1, 2, 3, 4), to_remove: Sequence[int] = (4,)) -> Snapshot:
    return view(*topics, brokers=brokers, to_remove=frozenset(map(BrokerId, to_remove)))


def plan(resource: KafkaTopic, seen: Snapshot, around: Surroundings = ALONE) -> Plan[Any]:
    return decide_topic(resource, seen, FRESH, around)


def pin(policy: str = "Enforce", **spec: Any) -> KafkaTopic:
    """Return a topic whose partition 0 has been on the brokers 4 and 1, as its replicaAssignment says."""
    whole = {**ASSIGNMENT, "driftPolicy": policy, **spec}
    adopted = plan(kafka_topic({**whole, "config": None}), view(healthy([4, 1], [1, 2])))
    return kafka_topic(whole, status=status_of(adopted))


def drift(plan: Plan[Any]) -> tuple[ConditionStatus, Reason] | None:
    found = plan.status.condition(ConditionType.DRIFTED)
    return (found.status, found.reason) if found else None


class TestPlacement:
    def test_puts_a_new_topic_elsewhere(self) -> None:
        (step,) = plan(kafka_topic({"partitions": 12}), mark()).steps
        assert isinstance(step, CreateTopic)
        assert {broker for each in step.assignment.partitions.values() for broker in each.replicas} == {1, 2, 3}

    def test_puts_new_partitions_elsewhere(self) -> None:
        (step,) = plan(kafka_topic({"partitions": 12, "adoptionPolicy": "Always"}), mark(healthy([4, 1]))).steps
        assert isinstance(step, AddPartitions)
        added = [each.replicas for number, each in step.assignment.partitions.items() if number > 0]
        assert {broker for replicas in added for broker in replicas} == {1, 2, 3}

    def test_puts_more_replicas_elsewhere(self) -> None:
        spec = {"replicationFactor": 3, "partitions": 1, "adoptionPolicy": "Always"}
        (step,) = plan(kafka_topic(spec), mark(healthy([1, 2]))).steps
        assert isinstance(step, StartMove)
        assert [to for _, to in step.partitions] == [(1, 2, 3)]

    def test_empties_another_broker_to_the_rest(self) -> None:
        drain = PartitionReassignment.model_validate(raw("PartitionReassignment", {"drainBrokers": [1]}))
        (step,) = decide_move(drain, mark(healthy([1, 2])), FRESH).steps
        assert isinstance(step, SubmitReassignment)
        assert [*step.partitions.values()] == [(3, 2)]

    def test_says_who_takes_none_if_too_few_are_left(self) -> None:
        said = ready(plan(kafka_topic({"replicationFactor": 3}), mark(brokers=(1, 2, 4))))
        assert said.reason is Reason.NOT_ENOUGH_BROKERS
        assert said.message.endswith("; those in spec.brokersToRemove of the KafkaCluster take no new replicas: 4")

    def test_is_counted_once_for_all_looks_over_one_view(self) -> None:
        seen = view(healthy([1, 2]))
        first = seen.replace_brokers_to_remove(frozenset({BrokerId(4)}))
        assert first.to_remove == {4}
        assert seen.replace_brokers_to_remove(frozenset({BrokerId(4)})) is first
        assert seen.replace_brokers_to_remove(frozenset()) is seen


class TestReplicaAssignment:
    def test_that_names_the_broker_makes_no_topic(self) -> None:
        found = plan(kafka_topic(ASSIGNMENT), mark())
        assert (found.steps, ready(found).reason, ready(found).message) == ((), Reason.BROKER_TO_BE_REMOVED, PINNED)
        assert found.status.condition(ConditionType.STALLED)

    def test_that_names_the_broker_adds_no_partition_there(self) -> None:
        resource = kafka_topic({**ASSIGNMENT, "adoptionPolicy": "Always", "replicaAssignment": [[1, 2], [4, 1]]})
        found = plan(resource, mark(healthy([1, 2])))
        assert (found.steps, ready(found).reason) == ((), Reason.BROKER_TO_BE_REMOVED)
        assert "replicas of partition 1 to broker 4" in ready(found).message

    def test_is_not_silently_ready_while_its_replicas_are_still_there(self) -> None:
        found = plan(pin(), mark(healthy([4, 1], [1, 2])))
        assert (ready(found).status, ready(found).reason) == (ConditionStatus.FALSE, Reason.BROKER_TO_BE_REMOVED)
        assert ready(found).message == PINNED
        assert (found.steps, drift(found)) == ((), (ConditionStatus.FALSE, Reason.IN_SYNC))

    @pytest.mark.parametrize("brokers", [(1, 2, 3, 4), (1, 2, 3)], ids=["it runs", "it is stopped"])
    def test_does_not_move_replicas_back_to_it(self, brokers: tuple[int, ...]) -> None:
        found = plan(pin(), mark(healthy([3, 1], [1, 2]), brokers=brokers))
        assert (found.steps, found.notices) == ((), ())
        assert (ready(found).status, ready(found).message) == (ConditionStatus.FALSE, PINNED)
        assert drift(found) == (ConditionStatus.TRUE, Reason.BROKER_TO_BE_REMOVED)
        assert [(each.key, each.desired, each.live) for each in found.status.drift] == [
            ("replicaAssignment[0]", "[4,1]", "[3,1]")
        ]

    def test_is_put_right_in_its_other_partitions_and_its_configuration(self) -> None:
        resource = pin(config={"retention.ms": "1"})
        config, move = plan(resource, mark(healthy([3, 1], [1, 3]))).steps
        assert isinstance(config, AlterTopicConfig)
        assert isinstance(move, StartMove)
        assert [(tp.partition, to) for tp, to in move.partitions] == [(1, (1, 2))]

    def test_moves_replicas_back_when_the_broker_is_to_stay_after_all(self) -> None:
        drained = plan(pin(), mark(healthy([3, 1], [1, 2])))
        resource = kafka_topic({**ASSIGNMENT, "driftPolicy": "Enforce"}, status=status_of(drained))
        found = plan(resource, view(healthy([3, 1], [1, 2])))
        assert [type(step) for step in found.steps] == [StartMove]
        assert [notice.reason for notice in found.notices] == ["DriftCorrected"]

    def test_of_a_new_spec_is_not_carried_out_and_is_no_drift(self) -> None:
        before = kafka_topic(
            {**ASSIGNMENT, "replicaAssignment": [[3, 1], [1, 2]], "driftPolicy": "Report"},
            status=status_of(
                plan(
                    kafka_topic({**ASSIGNMENT, "replicaAssignment": [[3, 1], [1, 2]]}),
                    view(healthy([3, 1], [1, 2])),
                )
            ),
        )
        edited = kafka_topic(
            {**ASSIGNMENT, "driftPolicy": "Report"}, status=before.status.dump_for_kubernetes(), generation=2
        )
        found = plan(edited, mark(healthy([3, 1], [1, 2])))
        assert (found.steps, ready(found).status, ready(found).message) == ((), ConditionStatus.FALSE, PINNED)
        assert (drift(found), found.status.drift) == (None, ())

    @pytest.mark.parametrize("policy", ["Report", "Ignore"])
    def test_that_nobody_enforces_stays_ready_and_says_it(self, policy: str) -> None:
        found = plan(pin(policy), mark(healthy([4, 1], [1, 2])))
        assert (ready(found).status, ready(found).message) == (ConditionStatus.TRUE, PINNED)

    def test_of_an_unmarked_broker_says_nothing(self) -> None:
        found = plan(pin(), mark(healthy([4, 1], [1, 2]), to_remove=[3]))
        assert (ready(found).status, ready(found).reason) == (ConditionStatus.TRUE, Reason.RECONCILED)


class TestMoves:
    def test_that_bring_a_new_replica_to_it_do_not_begin(self) -> None:
        found = decide_move(reassignment({0: [4, 2]}), mark(healthy([1, 2])), FRESH)
        assert (found.steps, ready(found).reason) == ((), Reason.BROKER_TO_BE_REMOVED)
        assert ready(found).message.startswith("orders-0 would get replicas on broker 4, which is to be removed")

    def test_that_leave_a_replica_on_it_begin(self) -> None:
        assert decide_move(reassignment({0: [4, 3]}), mark(healthy([4, 2])), FRESH).steps


class TestTheKafkaCluster:
    @staticmethod
    def look(seen: Snapshot, status: dict[str, Any] | None = None) -> Plan[Any]:
        body = raw("KafkaCluster", {"zookeeper": {"connect": "zk:2181"}}, status=status)
        del body["spec"]["clusterRef"]
        return show_cluster(KafkaCluster.model_validate(body), seen, FRESH)

    def test_says_how_far_the_removal_of_each_is(self) -> None:
        found = self.look(mark(healthy([3, 1]), to_remove=[3, 4]))
        assert {row.id: row.removal for row in found.status.brokers} == {
            1: None, 2: None, 3: "HoldsReplicas", 4: "Empty"
        }  # fmt: skip
        assert ready(found).message == (
            "controller 1, 4 brokers, 1 partitions; broker 3 to be removed still holds replicas: drain first; "
            "broker 4 to be removed has no replicas and gets none: safe to stop for good"
        )

    def test_does_not_miss_one_that_was_emptied_and_stopped(self) -> None:
        before = status_of(self.look(mark(healthy([3, 1]))))
        found = self.look(mark(healthy([3, 1]), brokers=(1, 2, 3)), before)
        assert [row.id for row in found.status.brokers] == [1, 2, 3]
        degraded = found.status.condition(ConditionType.DEGRADED)
        assert degraded is not None
        assert degraded.status is ConditionStatus.FALSE

    def test_misses_one_that_was_stopped_too_soon(self) -> None:
        found = self.look(mark(healthy([4, 1]), brokers=(1, 2, 3)))
        assert {row.id: (row.state, row.removal) for row in found.status.brokers}[BrokerId(4)] == (
            "Missing", "HoldsReplicas"
        )  # fmt: skip


def test_a_topic_with_replicas_on_a_broker_that_is_gone_says_so() -> None:
    adopted = plan(kafka_topic({"partitions": 1}), view(healthy([4, 1])))
    lost = kafka_topic({"partitions": 1}, status=status_of(adopted))
    found = ready(plan(lost, view(topic((assign([4, 1]), lead(1, [1]))), brokers=(1, 2, 3))))
    assert (found.status, found.reason) == (ConditionStatus.TRUE, Reason.RECONCILED)
    assert found.message == (
        "topic orders is as the spec says, but 1 of 1 partitions are under-replicated: broker 4 is not registered: start "
        "it, or move its replicas away (kubectl kontroller drain)"
    )
