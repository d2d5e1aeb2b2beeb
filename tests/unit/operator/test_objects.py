"""The store keeps the newest version of each object, for any order of arrival, and knows the references between
objects."""

from typing import Any

import pytest

from controller_operator.kubernetes import object_store
from controller_operator.kubernetes.object_api import merge_patch
from controller_operator.kubernetes.object_store import CarriedOut, Key, ObjectStore, StoredObject, uid_of
from controller_operator.metrics import OperatorMetrics
from controller_operator.resources import KafkaTopic
from tests.unit.operator.clusters import raw

TOPIC = {"partitions": 1, "replicationFactor": 1}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "uid-owner"}


def topic_raw(name: str = "orders", **metadata: Any) -> dict[str, Any]:
    return raw("KafkaTopic", TOPIC, name=name, **{"uid": f"uid-{name}", **metadata})


def test_an_older_version_never_replaces_a_newer_one() -> None:
    store = ObjectStore()
    assert store.put(topic_raw(resourceVersion="10")) is not None
    assert store.put(topic_raw(resourceVersion="9")) is None
    assert store.put(topic_raw(resourceVersion="10")) is None
    newest = store.put(topic_raw(resourceVersion="11"))
    assert store.get(Key("KafkaTopic", "shop", "orders")) is newest


def test_a_late_deletion_of_a_predecessor_leaves_the_successor() -> None:
    store = ObjectStore()
    store.put(topic_raw(uid="second", resourceVersion="20"))
    assert store.remove(Key("KafkaTopic", "shop", "orders"), "first") is None
    assert store.claims("orders")


def test_a_listing_replaces_what_a_watch_has_missed() -> None:
    store = ObjectStore()
    store.put(topic_raw("kept"))
    store.put(topic_raw("gone"))
    known = store.uids("KafkaTopic", None).items()
    listed = [topic_raw("kept"), topic_raw("new")]
    gone = store.remove_missing(known, set(map(uid_of, listed)))
    assert [each.key.name for each in gone] == ["gone"]
    assert [each["metadata"]["name"] for each in listed if store.is_news(each)] == ["new"]
    assert store.claims("gone") == []


def test_a_listing_of_one_namespace_says_nothing_about_another() -> None:
    store = ObjectStore()
    store.put(topic_raw("elsewhere", namespace="payments"))
    store.remove_missing(store.uids("KafkaTopic", "shop").items(), set())
    assert store.get(Key("KafkaTopic", "payments", "elsewhere")) is not None


def test_of_claims_of_the_same_second_the_one_that_has_the_topic_comes_first() -> None:
    store = ObjectStore()
    for name, status in (("a", {}), ("b", {"topicId": "AAAAAAAAAAAAAAAAAAAABw"}), ("c", {})):
        spec = {"topicName": "orders", "partitions": 1, "replicationFactor": 1}
        store.put(raw("KafkaTopic", spec, name=name, uid=f"uid-{name}", status=status))
    assert [each.metadata.name for each in store.claims("orders")] == ["b", "a", "c"]


def test_claims_of_one_topic_are_in_the_order_of_their_age() -> None:
    store = ObjectStore()
    for name, born in (("b", "2025-01-02"), ("c", "2025-01-01"), ("a", "2025-01-02")):
        each = topic_raw(name, creationTimestamp=f"{born}T00:00:00Z")
        each["spec"]["topicName"] = "orders"
        store.put(each)
    assert [claim.metadata.name for claim in store.claims("orders")] == ["c", "a", "b"]


def test_an_object_claims_its_topic_as_far_as_that_can_be_read() -> None:
    store = ObjectStore()
    for name, spec in (("a", {"topicName": "orders", "partitions": -1}), ("b", {"clusterRef": 3}), ("c", "nothing")):
        each = topic_raw(name)
        each["spec"] = {**each["spec"], **spec} if isinstance(spec, dict) else spec
        stored = store.put(each)
        assert stored is not None
        assert stored.resource is None
    assert [claim.metadata.name for claim in store.claims("orders")] == ["a"]
    assert store.claims("b") == store.claims("c") == []


def test_dependents_and_owned_moves_are_known_as_long_as_they_are_there() -> None:
    store = ObjectStore()
    stored = store.put(topic_raw())
    owner = {"apiVersion": "kontroller.dev/v1alpha1", "kind": "KafkaTopic", "name": "orders", "uid": "uid-orders"}
    partitions = [{"topic": "orders", "partition": 0, "replicas": [1]}]
    move = store.put(raw("PartitionReassignment", {"partitions": partitions}, name="m", ownerReferences=[owner]))
    assert stored is not None
    assert move is not None
    assert store.dependents(Key("KafkaCluster", "shop", "demo")) == {stored.key, move.key}
    assert stored.resource is not None
    assert list(store.moves_of(stored.resource)) == ["m"]
    assert move.owner_keys == [stored.key]
    store.remove(move.key)
    assert store.moves_of(stored.resource) == {}


def test_an_object_that_the_model_cannot_read_says_what_is_wrong() -> None:
    stored = StoredObject(raw("KafkaTopic", {"partitions": "many"}))
    assert stored.resource is None
    assert "spec.partitions" in (stored.error or "")


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {}, {"a": None}),
        ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "d": 3}}, {"a": {"c": None, "d": 3}}),
        ({"a": [1, 2]}, {"a": [2]}, {"a": [2]}),
        ({"a": {"b": 1}}, {"a": {"b": 1}}, {}),
    ],
)
def test_a_merge_patch_says_what_differs_and_nothing_else(
    before: dict[str, Any], after: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert merge_patch(before, after) == patch


def test_conditions_are_counted_as_they_are_now() -> None:
    def make_condition(status: str, reason: str) -> dict[str, Any]:
        return {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1,
        }

    def conditions() -> dict[tuple[str, ...], float]:
        return {
            tuple(sample.labels[name] for name in ("kind", "type", "status", "reason")): sample.value
            for metric in metrics.registry.collect()
            for sample in metric.samples
            if sample.name == "kontroller_operator_conditions"
        }

    store, metrics = ObjectStore(), OperatorMetrics()
    metrics.observe(store.count_conditions, store.list_unready, store.list_disks)
    store.put({**topic_raw("one"), "status": {"conditions": [make_condition("True", "Reconciled")]}})
    store.put(
        {**topic_raw("two", resourceVersion="1"), "status": {"conditions": [make_condition("True", "Reconciled")]}}
    )
    assert conditions() == {("KafkaTopic", "Ready", "True", "Reconciled"): 2}
    store.put(
        {
            **topic_raw("two", resourceVersion="2"),
            "status": {"conditions": [make_condition("False", "ClusterNotFound")]},
        }
    )
    store.remove(Key("KafkaTopic", "shop", "one"))
    assert conditions() == {("KafkaTopic", "Ready", "False", "ClusterNotFound"): 1}


def test_objects_that_are_not_ready_are_named_and_those_that_need_a_person_come_first() -> None:
    def topic(name: str, status: str, reason: str, *more: str, version: int = 1) -> dict[str, Any]:
        base = {"message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1, "reason": reason}
        said = [
            {**base, "type": "Ready", "status": status},
            *({**base, "type": each, "status": "True"} for each in more),
        ]
        return {**topic_raw(name, resourceVersion=str(version)), "status": {"conditions": said}}

    store, metrics = ObjectStore(), OperatorMetrics()
    metrics.observe(store.count_conditions, store.list_unready, store.list_disks)
    store.put(topic("waiting", "Unknown", "ZooKeeperUnavailable", "Reconciling"))
    store.put(topic("well", "True", "Reconciled"))
    store.put(topic("wrong", "False", "InvalidConfig", "Stalled"))
    store.put(topic_raw("new", resourceVersion="1"))
    wrong = ("KafkaTopic", "shop", "wrong", "False", "InvalidConfig")
    waiting = ("KafkaTopic", "shop", "waiting", "Unknown", "ZooKeeperUnavailable")
    assert store.list_unready(10) == [wrong, waiting]
    assert store.list_unready(1) == [wrong]
    labels = dict(zip(("kind", "object_namespace", "name", "status", "reason"), wrong, strict=True))
    assert metrics.registry.get_sample_value("kontroller_operator_object_not_ready", labels) == 1
    store.put(topic("wrong", "True", "Reconciled", version=2))
    store.remove(Key("KafkaTopic", "shop", "waiting"))
    assert store.list_unready(10) == []


def test_of_thousands_of_topics_only_those_that_changed_are_looked_for() -> None:
    store = ObjectStore()
    cluster, elsewhere = Key("KafkaCluster", "shop", "demo"), Key("KafkaCluster", "shop", "other")
    for name in ("one", "two", "three"):
        store.put(topic_raw(name))
    twin = topic_raw("one", namespace="payments", uid="twin")
    store.put(twin)
    level = {"name": "metadata.version", "maxVersionLevel": 1}
    features = store.put(raw("FeatureSet", {"features": [level]}, name="features", uid="uid-f"))
    target = {"topic": "orders", "partition": 0, "replicas": [1]}
    move = store.put(raw("PartitionReassignment", {"partitions": [target]}, name="move", uid="uid-m"))
    assert [each.error for each in (features, move) if each] == [None, None]
    move_key = Key("PartitionReassignment", "shop", "move")
    assert store.dependents_about(cluster, {"one", "unmanaged"}) == {Key("KafkaTopic", "shop", "one")}
    assert store.dependents_about(cluster, {"orders"}) == {move_key}
    assert store.dependents_about(elsewhere, {"one", "orders"}) == set()
    assert (store.askers(cluster), store.askers_about_all(cluster)) == ({move_key}, set())
    store.remove(move_key)
    assert store.dependents_about(cluster, {"orders"}) == store.askers(cluster) == set()


def test_what_is_about_all_topics_is_so_until_it_has_begun_or_ended() -> None:
    store, cluster = ObjectStore(), Key("KafkaCluster", "shop", "demo")

    def keep(version: int, kind: str, spec: dict[str, Any], **status: Any) -> Key:
        stored = store.put(raw(kind, spec, name="asked", uid=kind, resourceVersion=str(version), status=status))
        assert stored is not None
        assert stored.error is None
        return stored.key

    drain = {"drainBrokers": [1]}
    plan = [{"topic": "orders", "partition": 0, "replicas": [2]}]
    key = keep(1, "PartitionReassignment", drain, phase="Suspended", plan=plan)
    assert (store.askers_about_all(cluster), store.dependents_about(cluster, {"orders"})) == ({key}, set())
    keep(2, "PartitionReassignment", drain, phase="Running", plan=plan)
    assert (store.askers_about_all(cluster), store.dependents_about(cluster, {"orders"})) == (set(), {key})
    keep(3, "PartitionReassignment", drain, phase="Completed", plan=plan)
    assert (store.askers(cluster), store.dependents_about(cluster, {"orders"})) == (set(), set())
    key = keep(4, "PreferredElection", {"allPartitions": True})
    assert store.askers_about_all(cluster) == {key}
    keep(5, "PreferredElection", {"topics": ["orders"]})
    assert (store.askers_about_all(cluster), store.dependents_about(cluster, {"orders"})) == (set(), {key})


def test_of_ten_thousand_objects_only_some_are_kept_as_models_and_all_are_found_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(object_store, "_OPEN", 3)
    store = ObjectStore()
    names = [f"t{number}" for number in range(10)]
    for name in names:
        store.put(topic_raw(name, annotations={"note": name}))
    assert len(store._open) == 3
    for name in names:
        stored = store.get(Key("KafkaTopic", "shop", name))
        assert stored is not None
        assert stored.raw == topic_raw(name, annotations={"note": name})
        assert [claim.metadata.name for claim in store.claims(name)] == [name]
    gone = store.remove(Key("KafkaTopic", "shop", "t0"))
    assert gone is not None
    assert gone.raw["metadata"]["name"] == "t0"
    assert store.get(Key("KafkaTopic", "shop", "t0")) is None
    assert store.dependents(Key("KafkaCluster", "shop", "demo")) == {Key("KafkaTopic", "shop", n) for n in names[1:]}


def test_what_a_watch_shows_of_an_own_write_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore()
    store.put(topic_raw(resourceVersion="10"))
    monkeypatch.setattr(KafkaTopic, "model_validate", None)
    assert store.put(topic_raw(resourceVersion="10")) is None
    with pytest.raises(TypeError):
        store.put(topic_raw(resourceVersion="11"))


def test_nothing_stays_of_objects_that_are_gone() -> None:
    store = ObjectStore()
    for number in range(20):
        store.put(topic_raw(f"t{number}", ownerReferences=[OWNER]))
        store.remove(Key("KafkaTopic", "shop", f"t{number}"))
    indexes = (store._objects, store._open, store._dependents, store._topic_claims, store._owned, store._said)
    assert [len(index) for index in indexes] == [0] * len(indexes)


def test_objects_are_counted_by_the_kafka_cluster_that_they_were_carried_out_in() -> None:
    store, demo = ObjectStore(), Key("KafkaCluster", "shop", "demo")
    annotations = {"kontroller.dev/accept-cluster": " B "}
    here = {"status": {"clusterId": "A"}}
    store.put({**topic_raw("one"), **here})
    store.put({**topic_raw("other"), **here})
    store.put({**topic_raw("accepted", annotations=annotations), **here})
    store.put({**topic_raw("going", deletionTimestamp="2025-01-02T00:00:00Z"), **here})
    store.put(topic_raw("new"))
    move = raw("PartitionReassignment", {"drainBrokers": [1]}, name="ended", uid="uid-ended")
    store.put({**move, "status": {"clusterId": "A", "phase": "Completed"}})
    assert store.count_carried_out(demo) == {CarriedOut("A", None): 2, CarriedOut("A", "B"): 1}
    store.put({**topic_raw("one", resourceVersion="2"), "status": {"clusterId": "B"}})
    store.remove(Key("KafkaTopic", "shop", "accepted"))
    assert store.count_carried_out(demo) == {CarriedOut("A", None): 1, CarriedOut("B", None): 1}


def test_the_metrics_show_how_full_the_fullest_disk_of_each_broker_is() -> None:
    disk = {"directory": "/data", "usedPercent": 84, "totalBytes": 1000}
    brokers = [{"id": 1, "state": "Registered", "disk": disk}, {"id": 2, "state": "Registered"}]
    cluster = {**raw("KafkaCluster", {}, name="demo", status={"brokers": brokers})}
    store, metrics = ObjectStore(), OperatorMetrics()
    metrics.observe(store.count_conditions, store.list_unready, store.list_disks)
    store.put({**cluster, "spec": {"zookeeper": {"connect": "zk:2181"}}})
    labels = {"object_namespace": "shop", "name": "demo", "broker": "1"}
    assert metrics.registry.get_sample_value("kontroller_operator_broker_disk_used_percent", labels) == 84
    assert (
        metrics.registry.get_sample_value("kontroller_operator_broker_disk_used_percent", {**labels, "broker": "2"})
        is None
    )
