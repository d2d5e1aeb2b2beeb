"""The words about another Kafka cluster than before, and the commands that accept it."""

from collections import Counter
from typing import Any

import pytest

from controller_operator.kubernetes.object_store import CarriedOut
from controller_operator.plans.cluster_change import find_change, find_obstacle, refuse_cluster, refuse_object
from controller_operator.resources import KafkaCluster, KafkaTopic
from controller_operator.resources.conditions import Reason
from tests.unit.operator.clusters import kafka_topic

ACCEPT = "kontroller.dev/accept-cluster"
GONE_AT = "2025-01-02T00:00:00Z"


def kafka_cluster(known: str | None = None, accepted: str | None = None) -> KafkaCluster:
    metadata = {"name": "demo", "namespace": "platform", "annotations": {ACCEPT: accepted} if accepted else {}}
    spec, status = {"zookeeper": {"connect": "zk:2181"}}, {"clusterId": known}
    return KafkaCluster.model_validate({"kind": "KafkaCluster", "metadata": metadata, "spec": spec, "status": status})


def a_topic(known: str | None, accepted: str | None = None, **metadata: Any) -> KafkaTopic:
    annotations = {ACCEPT: accepted} if accepted else {}
    return kafka_topic(status={"clusterId": known}, annotations=annotations, **metadata)


def message_about(topic: KafkaTopic, cluster: KafkaCluster, present: str = "B") -> str:
    change = find_obstacle(topic, cluster, present)
    assert change is not None
    return refuse_object(topic, cluster, change).message


@pytest.mark.parametrize(("known", "present"), [(None, None), (None, "A"), ("A", None), ("A", "A")])
def test_the_same_cluster_and_an_unknown_one_are_no_change(known: str | None, present: str | None) -> None:
    assert find_change(known, present, ()) is None
    assert find_obstacle(a_topic(known), kafka_cluster(known), present) is None


class TestAcceptance:
    def test_of_an_object_is_for_that_object_alone(self) -> None:
        assert find_obstacle(a_topic("A", accepted="B"), kafka_cluster(), "B") is None
        assert find_obstacle(a_topic("A"), kafka_cluster(), "B") is not None

    def test_of_a_kafka_cluster_is_for_all_of_its_objects(self) -> None:
        assert find_obstacle(a_topic("A"), kafka_cluster("A", accepted="B"), "B") is None

    def test_of_one_cluster_does_not_accept_the_next(self) -> None:
        assert find_obstacle(a_topic("A", accepted="B"), kafka_cluster(accepted="B"), "C") is not None

    def test_of_an_object_does_not_speak_for_its_kafka_cluster(self) -> None:
        assert find_obstacle(a_topic("A", accepted="B"), kafka_cluster("A"), "B") is not None
        assert find_obstacle(a_topic(None), kafka_cluster("A"), "B") is not None

    def test_is_not_for_an_object_that_is_being_deleted(self) -> None:
        going = a_topic("A", accepted="B", deletionTimestamp=GONE_AT)
        assert find_obstacle(going, kafka_cluster(accepted="B"), "B") is not None
        assert find_obstacle(a_topic("B", deletionTimestamp=GONE_AT), kafka_cluster("B"), "B") is None


class TestWordsOfAnObject:
    def test_name_both_clusters_and_both_commands(self) -> None:
        assert message_about(a_topic("A"), kafka_cluster()) == (
            "KafkaCluster platform/demo leads to Kafka cluster B, and this object was carried out in Kafka cluster A:"
            " nothing is done in B. Correct the address of the KafkaCluster. To have this object carried out in B, as if it"
            " were new: kubectl annotate kafkatopics.kontroller.dev orders --namespace shop --overwrite"
            " kontroller.dev/accept-cluster=B (or, for all objects of the KafkaCluster: kubectl annotate"
            " kafkaclusters.kontroller.dev demo --namespace platform --overwrite kontroller.dev/accept-cluster=B)"
        )

    def test_name_one_command_if_the_kafka_cluster_itself_led_elsewhere(self) -> None:
        assert message_about(a_topic(None), kafka_cluster("A")) == (
            "KafkaCluster platform/demo leads to Kafka cluster B, and led to Kafka cluster A before: nothing is done in B."
            " Correct the address of the KafkaCluster. To have all of its objects carried out in B, as if they were new:"
            " kubectl annotate kafkaclusters.kontroller.dev demo --namespace platform --overwrite"
            " kontroller.dev/accept-cluster=B"
        )

    def test_quote_an_id_that_a_shell_would_read_otherwise(self) -> None:
        message = message_about(a_topic("A"), kafka_cluster(), present="B; reboot")
        assert "--overwrite 'kontroller.dev/accept-cluster=B; reboot'" in message


class TestWordsOfAKafkaCluster:
    def test_count_its_objects_by_the_cluster_that_they_were_carried_out_in(self) -> None:
        places = {CarriedOut("A", None): 3, CarriedOut("C", "D"): 1, CarriedOut("A", "B"): 5, CarriedOut("B", None): 7}
        verdict = refuse_cluster(kafka_cluster(), "B", Counter(places))
        assert verdict is not None
        assert (verdict.reason, verdict.is_stalled) == (Reason.CLUSTER_CHANGED, True)
        assert verdict.message == (
            "the cluster at zk:2181 is Kafka cluster B, and 3 objects that refer to it were carried out in Kafka cluster A;"
            " 1 object that refers to it was carried out in Kafka cluster C: nothing is done for them in B. Correct the "
            "address. To have all objects of this KafkaCluster carried out in B, as if they were new: kubectl annotate "
            "kafkaclusters.kontroller.dev demo --namespace platform --overwrite kontroller.dev/accept-cluster=B"
        )

    def test_say_where_it_led_before(self) -> None:
        verdict = refuse_cluster(kafka_cluster("A"), "B", Counter())
        assert verdict is not None
        assert (
            "is Kafka cluster B, and this object led to Kafka cluster A before: nothing is done for its"
            in verdict.message
        )

    @pytest.mark.parametrize(
        ("cluster", "places"),
        [
            (kafka_cluster(), {CarriedOut("B", None): 7, CarriedOut("A", "B"): 1}),
            (kafka_cluster("A", accepted="B"), {CarriedOut("A", None): 7}),
            (kafka_cluster("B"), {}),
        ],
    )
    def test_are_none_if_all_is_in_the_present_cluster_or_accepted(
        self, cluster: KafkaCluster, places: dict[CarriedOut, int]
    ) -> None:
        assert refuse_cluster(cluster, "B", Counter(places)) is None
