"""Declared topics are checked one by one and against each other."""

from typing import Any

import pytest

from kontroller.importing.declared import Declared, Given, import_declared
from kontroller.importing.documents import Imported, LeftOut

ORDERS = Declared(place="a.yaml:1", topic="orders", cluster="main", partitions=3, replicas=2)


def declare(**changes: Any) -> Declared:
    values = {name: getattr(ORDERS, name) for name in Declared.__dataclass_fields__}
    return Declared(**{**values, **changes})


def admit(*topics: Declared, given: Given | None = None, left_out: LeftOut | None = None) -> list[Imported]:
    return list(import_declared(topics, given or Given(), LeftOut() if left_out is None else left_out))


def test_the_users_own_cluster_and_namespace_go_before_those_of_the_file() -> None:
    given = Given(cluster="other", namespace="shop")
    (found,) = admit(declare(namespace="kafka", cluster_namespace="kafka"), given=given)
    assert found.document is not None
    assert found.document["spec"]["clusterRef"] == {"name": "other"}
    assert found.document["metadata"]["namespace"] == "shop"


def test_the_clusters_namespace_is_written_if_it_is_another() -> None:
    found = admit(declare(namespace="shop", cluster_namespace="kafka"), declare(topic="b", cluster_namespace=None))
    assert [each.document and each.document["spec"]["clusterRef"] for each in found] == [
        {"name": "main", "namespace": "kafka"},
        {"name": "main"},
    ]


def test_defaults_fill_gaps_and_nothing_else() -> None:
    given = Given(default_partitions=6, default_replication_factor=3)
    found = admit(declare(partitions=-1, replicas=None), declare(topic="b"), given=given)
    specs = [each.document and each.document["spec"] for each in found]
    assert [(spec["partitions"], spec["replicationFactor"]) for spec in specs if spec] == [(6, 3), (3, 2)]


def test_two_declarations_of_a_topic_are_refused_and_name_each_other() -> None:
    first, second, other = admit(
        declare(object_name="a"), declare(object_name="b", place="b.yaml:7"), declare(cluster="test", place="c.yaml:1")
    )
    assert first.reasons == ("it is also declared at b.yaml:7: keep one of them",)
    assert second.reasons == ("it is also declared at a.yaml:1: keep one of them",)
    assert other.document is not None, "it is in another cluster"


@pytest.mark.parametrize(("namespace", "is_refused"), [(None, True), ("a", True), ("b", False)])
def test_clusters_of_one_name_are_two_only_in_two_namespaces(namespace: str | None, is_refused: bool) -> None:
    first, second = admit(declare(namespace="a"), declare(object_name="b", namespace=namespace, place="b.yaml:7"))
    assert (first.document is None) == (second.document is None) == is_refused


def test_an_object_that_occurs_twice_alike_is_imported_once() -> None:
    left_out = LeftOut()
    assert len(admit(ORDERS, declare(place="b.yaml:7"), left_out=left_out)) == 1
    assert str(left_out) == "1 repeated without a difference"


def test_topics_whose_metrics_collide_are_refused() -> None:
    found = admit(declare(topic="a.b"), declare(topic="a_b", place="b.yaml:7"))
    assert [each.document for each in found] == [None, None]
    assert "the metrics of a_b (b.yaml:7) have the same names" in found[0].reasons[0]


def test_objects_of_one_name_from_two_namespaces_get_two_names_in_one() -> None:
    both = (declare(object_name="x", namespace="a"), declare(topic="b", object_name="x", namespace="b"))
    assert [each.document and each.document["metadata"]["name"] for each in admit(*both)] == ["x", "x"]
    merged = admit(*both, given=Given(namespace="c"))
    assert len({each.document["metadata"]["name"] for each in merged if each.document}) == 2


def test_an_object_name_that_kubernetes_refuses_is_replaced() -> None:
    (found,) = admit(declare(topic="Orders", object_name="Orders"))
    assert found.document is not None
    assert found.document["metadata"]["name"].startswith("orders-")


def test_kafkas_own_topics_are_left_out_unless_the_user_wants_them() -> None:
    left_out = LeftOut()
    own = declare(topic="__consumer_offsets")
    assert admit(own, left_out=left_out) == []
    assert str(left_out) == "1 internal to Kafka"
    assert len(admit(own, given=Given(with_internal=True))) == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"partitions": None}, "give --default-partitions"),
        ({"replicas": -1}, "give --default-replication-factor"),
        ({"partitions": "many"}, "partitions: many is no number"),
        ({"partitions": 200_000}, "spec.partitions"),
        ({"topic": "a b"}, "is invalid"),
        ({"topic": "{{ .name }}"}, "render the file first"),
        ({"cluster": None}, "give --cluster"),
        ({"config": {"min.in.sync.replicas": "2"}}, "min.insync.replicas?"),
        ({"config": {"message.max.bytes": "2"}}, "max.message.bytes?"),
        ({"config": {"acks": "all"}}, "topics have no configuration acks"),
        ({"config": {"retention.ms": "7d"}}, "Not a number of type LONG"),
        ({"config": {"retention.ms": {"days": 7}}}, "retention.ms: write one value"),
        ({"config": {"min.insync.replicas": "3"}}, "each partition has 2 replicas"),
        ({"config": {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}}, "conflict topic config"),
        ({"replica_assignment": "1,2"}, "no list of lists"),
        ({"replica_assignment": [["1", "2"]]}, "one entry for each of the partitions"),
        ({"faults": ("bad",)}, "bad"),
    ],
)
def test_a_topic_with_a_fault_is_refused_and_the_next_one_is_written(changes: dict[str, Any], reason: str) -> None:
    bad, good = admit(declare(**changes), declare(topic="good", place="a.yaml:9"))
    assert bad.document is None
    assert any(reason in each for each in bad.reasons), bad.reasons
    assert good.document is not None


def test_all_faults_of_a_topic_are_reported_at_once() -> None:
    (found,) = admit(declare(topic="a b", partitions="x", config={"acks": "all", "retention.ms": "7d"}))
    assert len(found.reasons) == 4


def test_configuration_of_kafka_4_is_kept() -> None:
    (found,) = admit(declare(config={"remote.copy.lag.ms": "5"}))
    assert found.document is not None
    assert found.document["spec"]["config"] == {"remote.copy.lag.ms": "5"}


def test_marks_of_tools_stay_behind_and_settings_for_tools_are_kept() -> None:
    labels = {
        "team": "shop", "strimzi.io/cluster": "main", "helm.sh/chart": "topics-1", "app.kubernetes.io/managed-by": "Helm",
        "kustomize.toolkit.fluxcd.io/name": "topics", "app.kubernetes.io/part-of": "shop", "a/b/c": "d",
    }  # fmt: skip
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": "{}", "argocd.argoproj.io/tracking-id": "x",
        "argocd.argoproj.io/sync-wave": "2", "meta.helm.sh/release-name": "topics", "empty": None,
        "kustomize.toolkit.fluxcd.io/prune": "disabled", "owner": "ann b",
    }  # fmt: skip
    (found,) = admit(declare(labels=labels, annotations=annotations))
    assert found.document is not None
    assert found.document["metadata"]["labels"] == {"team": "shop", "app.kubernetes.io/part-of": "shop"}
    assert found.document["metadata"]["annotations"] == {
        "argocd.argoproj.io/sync-wave": "2", "kustomize.toolkit.fluxcd.io/prune": "disabled", "owner": "ann b", "empty": "",
    }  # fmt: skip
    assert found.notes == ("label a/b/c is left out: Kubernetes refuses the name",)
