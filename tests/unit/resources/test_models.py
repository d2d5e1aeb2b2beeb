"""The models of objects that the API server stores, and that other versions of the operator wrote."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from controller_operator.resources import KINDS, KafkaCluster, KafkaTopic, PartitionReassignment
from controller_operator.resources.cluster import AllowedNamespace, KafkaClusterSpec, ZooKeeper
from controller_operator.resources.cluster_address import AtBrokers, AtZooKeeper
from controller_operator.resources.common import PAUSE_ANNOTATION, DeletionPolicy
from controller_operator.resources.conditions import Condition, ConditionStatus, ConditionType, Reason
from controller_operator.resources.reassignment import PartitionReassignmentStatus, ReassignmentPhase
from controller_operator.resources.topic import AdoptionPolicy, DriftPolicy, KafkaTopicStatus

EXAMPLES = Path(__file__).parents[3] / "examples"


def topic(*, annotations: dict[str, str] | None = None, status: Any = None, **spec: Any) -> KafkaTopic:
    metadata = {"name": "orders", "namespace": "kafka", "generation": 3, "annotations": annotations or {}}
    said = {"clusterRef": {"name": "demo"}, **(spec or {"partitions": 1, "replicationFactor": 1})}
    body = {"metadata": metadata, "spec": said, "status": status or {}}
    return KafkaTopic.model_validate({"apiVersion": "kontroller.dev/v1alpha1", "kind": "KafkaTopic", **body})


def condition(**changes: Any) -> dict[str, Any]:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Reconciled",
        "message": "as the spec says",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        **changes,
    }


def test_policies_left_out_are_the_careful_ones() -> None:
    spec = topic(partitions=3, replicationFactor=2).spec
    assert spec.deletion_policy is DeletionPolicy.RETAIN
    assert spec.adoption_policy is AdoptionPolicy.IF_EQUAL
    assert spec.drift_policy is DriftPolicy.ENFORCE


def test_a_topic_goes_by_the_name_of_its_object_unless_told() -> None:
    assert topic(partitions=1, replicationFactor=1).topic_name == "orders"
    assert topic(partitions=1, replicationFactor=1, topicName="Orders_v2").topic_name == "Orders_v2"


def test_values_of_the_configuration_are_text_to_kafka_however_they_are_written() -> None:
    written = {"a": "x", "b": 604800000, "c": True, "d": False, "e": 0.5, "f": 2**63 - 1, "g": -1, "h": "1.50", "i": ""}
    assert topic(partitions=1, replicationFactor=1, config=written).spec.config == {
        "a": "x",
        "b": "604800000",
        "c": "true",
        "d": "false",
        "e": "0.5",
        "f": "9223372036854775807",
        "g": "-1",
        "h": "1.50",
        "i": "",
    }


@pytest.mark.parametrize("value", [None, [], {}, ["delete"], {"a": 1}])
def test_a_value_of_the_configuration_that_is_no_scalar_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match="config"):
        topic(partitions=1, replicationFactor=1, config={"cleanup.policy": value})


@pytest.mark.parametrize("ref", [{"name": "Demo"}, {"name": "a/b"}, {"name": "-a"}, {"name": "a", "namespace": "a.b"}])
def test_a_reference_has_the_form_of_names_of_kubernetes(ref: dict[str, str]) -> None:
    assert topic(partitions=1, replicationFactor=1, clusterRef={"name": "a.b-c.1", "namespace": "kafka-1"})
    with pytest.raises(ValidationError, match="clusterRef"):
        topic(partitions=1, replicationFactor=1, clusterRef=ref)


def test_a_replica_assignment_says_the_number_of_partitions() -> None:
    assert topic(replicaAssignment=[[1, 2], [2, 1]]).spec.partition_count == 2
    assert topic(partitions=5, replicationFactor=1).spec.partition_count == 5


def test_a_field_of_the_spec_that_nothing_implements_is_refused() -> None:
    with pytest.raises(ValidationError, match="retention"):
        topic(partitions=1, replicationFactor=1, retention="1d")


def test_a_status_with_fields_of_another_version_can_be_read() -> None:
    status = {"later": 1, "counts": {"partitions": 4, "later": 1}}
    read = topic(partitions=4, replicationFactor=1, status=status).status
    assert read.counts is not None
    assert read.counts.partitions == 4


@pytest.mark.parametrize("unknown", [{"type": "Fancy"}, {"reason": "BeyondMe"}])
def test_a_condition_that_this_version_has_no_word_for_is_left_out(unknown: dict[str, str]) -> None:
    conditions = [condition(), condition(**{"type": "Drifted", **unknown})]
    read = topic(partitions=1, replicationFactor=1, status={"conditions": conditions}).status
    assert [each.type for each in read.conditions] == [ConditionType.READY]


def test_a_condition_is_found_by_its_type() -> None:
    status = topic(partitions=1, replicationFactor=1, status={"conditions": [condition()]}).status
    ready = status.condition(ConditionType.READY)
    assert ready is not None
    assert ready.reason is Reason.RECONCILED
    assert status.condition(ConditionType.STALLED) is None


def test_a_status_is_written_with_kubernetes_names_and_without_what_is_not_known() -> None:
    since = datetime(2026, 1, 2, 5, 4, 5, 999_999, tzinfo=timezone(timedelta(hours=2)))
    ready = Condition(
        type=ConditionType.READY,
        status=ConditionStatus.FALSE,
        reason=Reason.UNKNOWN_BROKER,
        message="broker 9 is not registered",
        observed_generation=2,
        last_transition_time=since,
    )
    status = PartitionReassignmentStatus(
        observed_generation=2, conditions=(ready,), phase=ReassignmentPhase.FAILED, start_time=since
    )
    assert status.dump_for_kubernetes() == {
        "observedGeneration": 2,
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "UnknownBroker",
                "message": "broker 9 is not registered",
                "observedGeneration": 2,
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ],
        "phase": "Failed",
        "startTime": "2026-01-02T03:04:05Z",
        "partitions": [],
    }


def test_a_status_that_was_written_reads_as_the_same_status() -> None:
    written = KafkaTopicStatus.model_validate(
        {
            "conditions": [condition()],
            "topicName": "orders",
            "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2], "isr": [1], "leader": 1}],
            "drift": [{"key": "config.retention.ms", "desired": "1", "live": "2"}],
        }
    )
    assert written.conditions[0].last_transition_time == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert KafkaTopicStatus.model_validate(written.dump_for_kubernetes()) == written


@pytest.mark.parametrize("value", ["true", "True", "yes", "1", "on", "ture", "no", ""])
def test_any_value_of_the_annotation_but_false_pauses_an_object(value: str) -> None:
    assert topic(annotations={PAUSE_ANNOTATION: value}).is_paused


@pytest.mark.parametrize("value", ["false", "False", " false "])
def test_an_object_that_is_said_not_to_be_paused_is_not(value: str) -> None:
    assert not topic(annotations={PAUSE_ANNOTATION: value}).is_paused
    assert not topic().is_paused


def make_spec(*entries: AllowedNamespace) -> KafkaClusterSpec:
    return KafkaClusterSpec(zookeeper=ZooKeeper(connect="zk:2181"), allowed_namespaces=entries or None)


def test_a_cluster_that_says_nothing_serves_only_its_own_namespace() -> None:
    assert make_spec().permission_for("kafka", home="kafka") == AllowedNamespace(namespace="kafka")
    assert make_spec().permission_for("payments", home="kafka") is None


def test_a_list_of_allowed_namespaces_is_complete() -> None:
    payments = AllowedNamespace(namespace="payments", topic_prefix="payments.")
    assert make_spec(payments).permission_for("payments", home="kafka") == payments
    assert make_spec(payments).permission_for("kafka", home="kafka") is None


def test_the_entry_with_a_name_goes_before_the_one_for_all_namespaces() -> None:
    payments = AllowedNamespace(namespace="payments", topic_prefix="payments.")
    anyone = AllowedNamespace(namespace="*")
    assert make_spec(anyone, payments).permission_for("payments", home="kafka") == payments
    assert make_spec(anyone, payments).permission_for("audit", home="kafka") == anyone


def test_every_reason_has_a_meaning_for_people() -> None:
    assert all(reason.meaning.endswith((".", "retried.")) for reason in Reason)
    assert len({reason.meaning for reason in Reason}) == len(Reason)


def test_a_phase_knows_whether_it_is_the_end() -> None:
    final = {phase for phase in ReassignmentPhase if phase.is_final}
    assert final == {ReassignmentPhase.COMPLETED, ReassignmentPhase.FAILED, ReassignmentPhase.CANCELLED}


def test_the_examples_show_every_kind() -> None:
    models = {kind.definition.kind: kind for kind in KINDS}
    objects = [each for file in EXAMPLES.glob("*.yaml") for each in yaml.safe_load_all(file.read_text())]
    read = [models[each["kind"]].model_validate(each) for each in objects]
    assert {type(each) for each in read} == set(KINDS)
    clusters = {each.metadata.name for each in read if isinstance(each, KafkaCluster)}
    assert {each.spec.cluster_ref.name for each in read if not isinstance(each, KafkaCluster)} == clusters


def test_the_examples_without_zookeeper_are_what_can_be_done_there() -> None:
    models = {kind.definition.kind: kind for kind in KINDS}
    files = set((EXAMPLES / "without-zookeeper").glob("*.yaml")) - {
        EXAMPLES / "without-zookeeper" / "kafka-4-pods.yaml"
    }
    objects = {each["kind"]: each for file in files for each in yaml.safe_load_all(file.read_text())}
    assert [models[kind].model_validate(each).kind for kind, each in objects.items()] == list(objects)
    assert "zookeeper" not in objects["KafkaCluster"]["spec"]


def test_the_example_of_a_reassignment_moves_the_example_of_a_topic() -> None:
    orders = next(
        each
        for each in yaml.safe_load_all((EXAMPLES / "topics.yaml").read_text())
        if each["metadata"]["name"] == "orders"
    )
    move = PartitionReassignment.model_validate(yaml.safe_load((EXAMPLES / "reassignment.yaml").read_text()))
    assert [target.partition for target in move.targets] == [0, 1, 2]
    assert {broker for replicas in orders["spec"]["replicaAssignment"] for broker in replicas} == {1, 2, 3}
    assert {broker for target in move.targets for broker in target.replicas} == {4, 5, 6}


def test_a_cluster_is_at_its_zookeeper_or_where_it_has_none_at_its_brokers() -> None:
    zookeeper = ZooKeeper(connect="zk:2181/kafka")
    assert KafkaClusterSpec(zookeeper=zookeeper, bootstrap_servers="kafka:9092").address == AtZooKeeper("zk:2181/kafka")
    assert KafkaClusterSpec(bootstrap_servers="kafka:9092").address == AtBrokers("kafka:9092")
    with pytest.raises(ValidationError, match="give zookeeper, or bootstrapServers"):
        KafkaClusterSpec()
