"""KafkaTopics of Strimzi's as ours: every field is kept or reported."""

from io import StringIO
from typing import Any

import pytest
import yaml

from kontroller.importing.documents import Imported, format_yaml, list_remarks
from kontroller.importing.strimzi import NoYaml, StrimziTopics

ORDERS: dict[str, Any] = {
    "apiVersion": "kafka.strimzi.io/v1beta2",
    "kind": "KafkaTopic",
    "metadata": {
        "name": "orders",
        "namespace": "shop",
        "uid": "7",
        "labels": {"strimzi.io/cluster": "demo", "team": "shop"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "owner": "ann"},
        "finalizers": ["strimzi.io/topic-operator"],
    },
    "spec": {"partitions": 3, "replicas": 2, "config": {"retention.ms": 7200000, "preallocate": False}},
    "status": {"observedGeneration": 1},
}


def read(*objects: Any, **about: str | None) -> list[Imported]:
    given: dict[str, str | None] = {"cluster": None, "cluster_namespace": None, "namespace": None, **about}
    return list(StrimziTopics(**given).read(StringIO(yaml.safe_dump_all(objects))))


def change_orders(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {**ORDERS, "metadata": {**ORDERS["metadata"], **metadata}, "spec": {**ORDERS["spec"], **(spec or {})}}


def test_a_topic_keeps_its_name_labels_numbers_and_config() -> None:
    (found,) = read(ORDERS)
    assert yaml.safe_load(format_yaml(found)) == {
        "apiVersion": "kontroller.dev/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {
            "name": "orders",
            "namespace": "shop",
            "labels": {"team": "shop"},
            "annotations": {"owner": "ann"},
        },
        "spec": {
            "clusterRef": {"name": "demo"},
            "partitions": 3,
            "replicationFactor": 2,
            "config": {"retention.ms": "7200000", "preallocate": "false"},
        },
    }
    assert list(list_remarks(found)) == []


def test_the_name_of_the_topic_is_kept_beside_that_of_the_object() -> None:
    (found,) = read(change_orders({"topicName": "Orders_EU"}))
    document = yaml.safe_load(format_yaml(found))
    assert (document["metadata"]["name"], document["spec"]["topicName"]) == ("orders", "Orders_EU")


def test_what_is_given_goes_before_what_the_objects_say() -> None:
    (found,) = read(ORDERS, cluster="other", cluster_namespace="kafka", namespace="shop-2")
    document = yaml.safe_load(format_yaml(found))
    assert document["spec"]["clusterRef"] == {"name": "other", "namespace": "kafka"}
    assert document["metadata"]["namespace"] == "shop-2"


def test_lists_of_kubectl_and_several_documents_are_read() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [ORDERS, change_orders(name="b")]}
    assert [each.topic for each in read(listed, None, change_orders(name="c"))] == ["orders", "b", "c"]


def test_objects_of_one_name_from_two_namespaces_get_two_names_in_one() -> None:
    both = (ORDERS, change_orders({"topicName": "x"}, namespace="other"))
    names = [yaml.safe_load(format_yaml(each))["metadata"]["name"] for each in read(*both, namespace="kafka")]
    assert len(set(names)) == 2
    assert {yaml.safe_load(format_yaml(each))["metadata"]["name"] for each in read(*both)} == {"orders"}


def test_lists_in_a_config_are_joined_as_strimzi_joins_them() -> None:
    (found,) = read(change_orders({"config": {"cleanup.policy": ["compact", "delete"]}}))
    assert yaml.safe_load(format_yaml(found))["spec"]["config"] == {"cleanup.policy": "compact,delete"}


@pytest.mark.parametrize("annotation", [("strimzi.io/managed", "false"), ("strimzi.io/pause-reconciliation", "true")])
def test_what_strimzi_left_alone_is_paused(annotation: tuple[str, str]) -> None:
    (found,) = read(change_orders(annotations=dict([annotation])))
    assert yaml.safe_load(format_yaml(found))["metadata"]["annotations"] == {"kontroller.dev/pause": "true"}
    assert "paused" in next(iter(list_remarks(found)))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (change_orders({"partitions": -1}), "partitions are left to the brokers"),
        (change_orders({"replicas": None}), "replicas are left to the brokers"),
        (change_orders({"config": {"a": {"b": 1}}}), "dict as a"),
        (change_orders({"config": {"a": None}}), "NoneType as a"),
        (change_orders({"surprise": 1}), "surprise"),
        (change_orders({"topicName": "a b"}), "is invalid"),
        (change_orders(labels={}), "--cluster"),
        (change_orders({"partitions": 200_000}), "spec.partitions"),
    ],
)
def test_what_ours_cannot_say_is_told_and_kept_as_a_comment(found: dict[str, Any], reason: str) -> None:
    bad, good = read(found, change_orders(name="good"))
    assert reason in next(iter(list_remarks(bad)))
    text = "".join(line.removeprefix("# ") for line in format_yaml(bad).splitlines(keepends=True)[1:])
    assert yaml.safe_load(text) == found
    assert good.document is not None


def test_objects_of_other_kinds_are_told_and_not_copied() -> None:
    (found,) = read({"kind": "Secret", "metadata": {"name": "password"}, "data": {"password": "aHVudGVyMg=="}})
    assert "Secret password" in next(iter(list_remarks(found)))
    assert "aHVudGVyMg" not in format_yaml(found)


def test_kafkas_own_topics_are_left_out_unless_asked_for() -> None:
    own = change_orders(
        {"topicName": "__consumer_offsets"}, name="consumer-offsets---84e7a678d08f4bd226872e5cdd4eb527fad1c6a"
    )
    assert read(own) == []
    theirs = StrimziTopics(None, None, None)
    assert len(list(theirs.read(StringIO(yaml.safe_dump(own)), with_internal=True))) == 1


def test_what_is_no_yaml_is_told_after_what_came_before_it() -> None:
    source = StringIO(yaml.safe_dump(ORDERS) + "---\n{")
    source.name = "topics.yaml"
    found = StrimziTopics(None, None, None).read(source)
    assert next(found).topic == "orders"
    with pytest.raises(NoYaml, match=r"topics\.yaml is not YAML"):
        next(found)
