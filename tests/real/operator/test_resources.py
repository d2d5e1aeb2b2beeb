"""The definitions of the resources on a real API server: every rule refuses its case, with a message; valid objects
pass.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller_operator.resources import KINDS
from controller_operator.resources.schema import MAX_PARTITIONS
from devcluster.clusters.kubernetes import CommandError, KubernetesCluster
from devcluster.running.processes import wait_until

PROJECT = Path(__file__).parents[3]
NAMESPACE = "test-resources"

CLUSTER_REF = {"name": "demo"}
VALID: dict[str, dict[str, Any]] = {
    "KafkaCluster": {"zookeeper": {"connect": "zk-0.zk:2181,zk-1.zk:2181/kafka"}, "bootstrapServers": "kafka:9092"},
    "KafkaTopic": {"clusterRef": CLUSTER_REF, "partitions": 3, "replicationFactor": 3, "config": {"retention.ms": "1"}},
    "PartitionReassignment": {
        "clusterRef": CLUSTER_REF,
        "partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 5, 6]}],
    },
    "PreferredElection": {"clusterRef": CLUSTER_REF, "topics": ["orders"]},
    "RebalancePlan": {"clusterRef": CLUSTER_REF, "mode": "drain", "brokers": [3]},
    "FeatureSet": {"clusterRef": CLUSTER_REF, "features": [{"name": "group.version", "maxVersionLevel": 1}]},
}
ASSIGNED = {"clusterRef": CLUSTER_REF, "replicaAssignment": [[1, 2], [2, 1]]}
TOPIC_NAME_MESSAGE = "a topic name has only the characters"
EXAMPLES = sorted(
    path for folder in (".", "recovery", "maintenance") for path in (PROJECT / "examples" / folder).glob("*.yaml")
)
SCHEDULED = {"schedule": "30 3 * * SUN"}
HEALING = {"mode": "heal", "brokers": None}
UNCLEAN = {"electionType": "Unclean", "acknowledgeDataLoss": True}
SCOPE_MESSAGE = "give exactly one of partitions, topics and allPartitions: true"


def move(topic: str = "orders", partition: int = 0, replicas: tuple[int, ...] = (1, 2)) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": list(replicas)}


def windows(*changes: dict[str, Any]) -> dict[str, Any]:
    """Return a spec with windows, each with one different field."""
    nightly = {"schedule": "0 22 * * MON-FRI", "timeZone": "Europe/Berlin", "durationMinutes": 360}
    return {"schedule": {"windows": [nightly | each for each in changes]}}


def feature(name: str, level: int = 1) -> dict[str, Any]:
    return {"name": name, "maxVersionLevel": level}


def manifest(kind: str, spec: dict[str, Any], name: str = "example") -> str:
    """Return an object as JSON; a value of None in a spec removes the field of the valid one."""
    merged = {**deepcopy(VALID[kind]), **spec}
    body = {"spec": {field: value for field, value in merged.items() if value is not None}}
    metadata = {"name": name, "namespace": NAMESPACE}
    return json.dumps({"apiVersion": "kontroller.dev/v1alpha1", "kind": kind, "metadata": metadata, **body})


@pytest.fixture(scope="module")
def api(kubernetes_api: KubernetesCluster) -> Iterator[KubernetesCluster]:
    """The API server with the committed definitions, ready to accept objects."""
    kubernetes_api.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(PROJECT / "crds"))
    for kind in KINDS:
        kubernetes_api.wait_until_established(kind.definition.crd_name)
        wait_until_served(kubernetes_api, kind.definition.plural)
    for namespace in (NAMESPACE, "kafka"):
        described = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        kubernetes_api.kubectl("apply", "-f", "-", stdin=described)
    yield kubernetes_api
    for kind in KINDS:
        kubernetes_api.kubectl("delete", kind.definition.plural, "--all", "--namespace", NAMESPACE)


def wait_until_served(api: KubernetesCluster, plural: str) -> None:
    """Wait until resources are served: a definition is established a moment before."""

    def is_served() -> bool:
        try:
            api.kubectl("get", plural, "--namespace", NAMESPACE)
        except CommandError:
            return False
        return True

    wait_until(is_served, f"{plural} are served")


def refusal(api: KubernetesCluster, *arguments: str, stdin: str) -> str:
    with pytest.raises(CommandError) as refused:
        api.kubectl(*arguments, "-f", "-", stdin=stdin)
    return str(refused.value)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        *VALID.items(),
        ("KafkaCluster", {"zookeeper": {"connect": "localhost:2181"}}),
        ("KafkaCluster", {"zookeeper": None}),
        ("KafkaCluster", {"zookeeper": {"connect": "[::1]:2181/a/b"}, "allowedNamespaces": [{"namespace": "*"}]}),
        ("KafkaCluster", {"allowedNamespaces": [{"namespace": "payments", "topicPrefix": "payments."}]}),
        ("KafkaTopic", {"partitions": None, "replicationFactor": None, "replicaAssignment": [[1, 2], [2, 1]]}),
        ("KafkaTopic", {"replicationFactor": None, "replicaAssignment": [[1, 2], [2, 3], [3, 1]]}),
        ("KafkaTopic", {"topicName": "..."}),
        ("KafkaTopic", {"config": {"retention.ms": 9223372036854775807, "min.cleanable.dirty.ratio": 0.5}}),
        ("KafkaTopic", {"config": {"unclean.leader.election.enable": False, "cleanup.policy": "compact"}}),
        ("KafkaTopic", {"clusterRef": {"name": "demo.eu-1", "namespace": "kafka"}}),
        ("KafkaTopic", {"topicName": "Orders_v2.all-of-them"}),
        ("PartitionReassignment", {"partitions": [move(partition=0), move(partition=1), move("audit")]}),
        ("PartitionReassignment", {"ttlSecondsAfterFinished": 0}),
        ("PartitionReassignment", {"partitions": None, "drainBrokers": [1, 2], "suspend": True}),
        ("PartitionReassignment", {"throttle": {"bytesPerSecond": 1024}, "maxConcurrentPartitions": 500}),
        ("PreferredElection", {"topics": None, "allPartitions": True}),
        ("PreferredElection", {"allPartitions": False}),
        ("PreferredElection", {"topics": None, "partitions": [{"topic": "orders", "partition": 0}]}),
        ("RebalancePlan", {"mode": "expand", "brokers": None, "limits": {"maxBytes": 1}}),
        (
            "RebalancePlan",
            {"scope": {"topics": ["orders-*"], "excludeTopics": ["*-old"], "excludeBrokers": [1], "racks": ["a"]}},
        ),
        ("FeatureSet", {"features": [feature("a_b-C.1", 32767), feature("b")], "dryRun": True}),
        ("FeatureSet", {"allowDowngrade": True, "deletionPolicy": "Delete"}),
    ],
)
def test_a_valid_object_is_taken_without_a_warning(api: KubernetesCluster, kind: str, spec: dict[str, Any]) -> None:
    printed = api.kubectl(
        "create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-", stdin=manifest(kind, spec)
    )
    sent = json.loads(manifest(kind, spec))["spec"]
    assert sent.items() <= json.loads(printed)["spec"].items()


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        ("KafkaCluster", {"zookeeper": {"connect": "zk"}}, "zookeeper.connect is host:port"),
        ("KafkaCluster", {"zookeeper": {"connect": "zk:2181/kafka,zk2:2181"}}, "zookeeper.connect is host:port"),
        ("KafkaCluster", {"zookeeper": {"connect": "zk:2181/kafka/"}}, "zookeeper.connect is host:port"),
        ("KafkaCluster", {"zookeeper": {"connect": "zk:2181, zk2:2181"}}, "zookeeper.connect is host:port"),
        ("KafkaCluster", {"bootstrapServers": "PLAINTEXT://kafka:9092"}, "bootstrapServers is host:port"),
        ("KafkaCluster", {"zookeeper": None, "bootstrapServers": None}, "give zookeeper, or bootstrapServers"),
        ("KafkaCluster", {"allowedNamespaces": []}, "should have at least 1 items"),
        ("KafkaCluster", {"allowedNamespaces": [{"namespace": "pay*"}]}, "namespace is the name of a namespace"),
        ("KafkaCluster", {"allowedNamespaces": [{"namespace": "a"}, {"namespace": "a"}]}, "Duplicate value"),
        ("KafkaCluster", {"allowedNamespaces": [{"namespace": "a", "topicPrefix": "a/"}]}, "a topic prefix has only"),
        ("KafkaTopic", {"clusterRef": None}, "spec.clusterRef: Required value"),
        ("KafkaTopic", {"replicaAssignment": [[1], [2], [3]]}, "give either replicationFactor or replicaAssignment"),
        ("KafkaTopic", {"replicationFactor": None}, "give either replicationFactor or replicaAssignment"),
        ("KafkaTopic", {"partitions": None}, "give partitions, or a replicaAssignment"),
        ("KafkaTopic", {"partitions": 0}, "spec.partitions in body should be greater than or equal to 1"),
        ("KafkaTopic", {"replicationFactor": 0}, "should be greater than or equal to 1"),
        (
            "KafkaTopic",
            {"replicationFactor": None, "replicaAssignment": [[1, 2]]},
            "replicaAssignment has one entry for each of the partitions",
        ),
        (
            "KafkaTopic",
            {"partitions": None, "replicationFactor": None, "replicaAssignment": [[1, 2], [1]]},
            "every partition of a topic has the same number of replicas",
        ),
        (
            "KafkaTopic",
            {"partitions": None, "replicationFactor": None, "replicaAssignment": [[1, 2, 1]]},
            "name each broker once",
        ),
        (
            "KafkaTopic",
            {"partitions": None, "replicationFactor": None, "replicaAssignment": [[]]},
            "should have at least 1 items",
        ),
        ("KafkaTopic", {"topicName": "."}, TOPIC_NAME_MESSAGE),
        ("KafkaTopic", {"topicName": ".."}, TOPIC_NAME_MESSAGE),
        ("KafkaTopic", {"topicName": "orders/eu"}, TOPIC_NAME_MESSAGE),
        ("KafkaTopic", {"topicName": ""}, "should be at least 1 chars long"),
        ("KafkaTopic", {"topicName": "x" * 250}, "may not be more than 249"),
        ("KafkaTopic", {"config": {"retention.ms": [1]}}, "must have at most 0 items"),
        ("KafkaTopic", {"config": {"retention.ms": {"a": 1}}}, "must have at most 0 items"),
        ("KafkaTopic", {"config": {"retention.ms": "1" * 32_769}}, "may not be more than 32768"),
        ("KafkaTopic", {"clusterRef": {"name": "De/mo"}}, "spec.clusterRef.name in body should match"),
        (
            "KafkaTopic",
            {"clusterRef": {"name": "demo", "namespace": "a.b"}},
            "clusterRef.namespace in body should match",
        ),
        ("KafkaTopic", {"deletionPolicy": "Maybe"}, 'supported values: "Retain", "Delete"'),
        ("KafkaTopic", {"adoptionPolicy": "Maybe"}, 'supported values: "IfEqual", "Always", "Never"'),
        ("KafkaTopic", {"driftPolicy": "Maybe"}, 'supported values: "Enforce", "Report", "Ignore"'),
        ("KafkaTopic", {"reassignment": {"throttle": {"bytesPerSecond": 1023}}}, "greater than or equal to 1024"),
        ("PartitionReassignment", {"partitions": []}, "should have at least 1 items"),
        ("PartitionReassignment", {"throttle": {"bytesPerSecond": 1023}}, "should be greater than or equal to 1024"),
        ("PartitionReassignment", {"maxConcurrentPartitions": 501}, "should be less than or equal to 500"),
        ("PartitionReassignment", {"schedule": {}}, "spec.schedule.windows: Required value"),
        ("PartitionReassignment", windows(), "should have at least 1 items"),
        ("PartitionReassignment", windows(*[{}] * 11), "must have at most 10 items"),
        ("PartitionReassignment", windows(*[{}] * 5_000), "must have at most 10 items"),
        ("PartitionReassignment", windows({"schedule": "@daily"}), "a cron expression of five fields"),
        ("PartitionReassignment", windows({"timeZone": "Europe Berlin"}), "a name of the IANA time zones"),
        ("PartitionReassignment", windows({"durationMinutes": 0}), "should be greater than or equal to 1"),
        ("PartitionReassignment", windows({"durationMinutes": 10_081}), "should be less than or equal to 10080"),
        ("PartitionReassignment", {"partitions": None}, "give either partitions or drainBrokers"),
        ("PartitionReassignment", {"drainBrokers": [1]}, "give either partitions or drainBrokers"),
        ("PartitionReassignment", {"partitions": None, "drainBrokers": []}, "should have at least 1 items"),
        ("PartitionReassignment", {"partitions": None, "drainBrokers": [1, 1]}, "Duplicate value"),
        ("PartitionReassignment", {"partitions": [move(), move(replicas=(3,))]}, "Duplicate value"),
        ("PartitionReassignment", {"partitions": [move(replicas=(1, 2, 1))]}, "name each broker once"),
        ("PartitionReassignment", {"partitions": [move(replicas=())]}, "should have at least 1 items"),
        ("PartitionReassignment", {"partitions": [move(replicas=(-1,))]}, "should be greater than or equal to 0"),
        ("PartitionReassignment", {"partitions": [move(partition=-1)]}, "should be greater than or equal to 0"),
        ("PartitionReassignment", {"partitions": [move("a b")]}, TOPIC_NAME_MESSAGE),
        ("PartitionReassignment", {"ttlSecondsAfterFinished": -1}, "should be greater than or equal to 0"),
        ("PreferredElection", {"topics": None}, SCOPE_MESSAGE),
        ("PreferredElection", {"topics": None, "allPartitions": False}, SCOPE_MESSAGE),
        ("PreferredElection", {"allPartitions": True}, SCOPE_MESSAGE),
        ("PreferredElection", {"partitions": [{"topic": "orders", "partition": 0}]}, SCOPE_MESSAGE),
        ("PreferredElection", {"topics": ["orders", "orders"]}, "Duplicate value"),
        ("PreferredElection", {"topics": ["orders/eu"]}, TOPIC_NAME_MESSAGE),
        ("PreferredElection", {"topics": None, "partitions": [{"topic": "a", "partition": 0}] * 2}, "Duplicate value"),
        ("PreferredElection", {"electionType": "Any"}, 'supported values: "Preferred", "Unclean"'),
        ("PreferredElection", {"electionType": "Unclean"}, "set acknowledgeDataLoss: true"),
        (
            "PreferredElection",
            {"electionType": "Unclean", "acknowledgeDataLoss": False},
            "set acknowledgeDataLoss: true",
        ),
        ("PreferredElection", {"schedule": "@daily"}, "a cron expression of five fields"),
        ("PreferredElection", SCHEDULED | {"timeZone": "Europe Berlin"}, "a name of the IANA time zones"),
        ("PreferredElection", SCHEDULED | {"imbalanceThresholdPercent": 101}, "should be less than or equal to 100"),
        ("PreferredElection", SCHEDULED | {"ttlSecondsAfterFinished": 1}, "an election with a schedule never ends"),
        ("PreferredElection", SCHEDULED | UNCLEAN, "an unclean election has no schedule"),
        ("PreferredElection", {"suspend": True}, "belong to a schedule"),
        ("PreferredElection", {"timeZone": "UTC"}, "belong to a schedule"),
        ("RebalancePlan", {"brokers": None}, "give brokers for the modes drain and relieve"),
        ("RebalancePlan", {"mode": "rebalance"}, "give brokers for the modes drain and relieve"),
        ("RebalancePlan", {"mode": "relieve", "brokers": None}, "give brokers for the modes drain and relieve"),
        ("RebalancePlan", {"belowPercent": 80}, "belowPercent belongs to the mode relieve"),
        ("RebalancePlan", {"mode": "relieve", "belowPercent": 101}, "should be less than or equal to 100"),
        ("RebalancePlan", {"replicationFactor": 3}, "belongs to the mode replicationFactor"),
        ("RebalancePlan", {"mode": "replicationFactor", "brokers": None}, "belongs to the mode replicationFactor"),
        ("RebalancePlan", {"mode": "tidy"}, "supported values"),
        ("RebalancePlan", {"limits": {"maxMoves": 0}}, "should be greater than or equal to 1"),
        ("RebalancePlan", {"schedule": "daily"}, "five fields"),
        ("RebalancePlan", HEALING | {"schedule": "0 3 * * *"}, "the mode heal has no schedule"),
        ("RebalancePlan", HEALING | {"ttlSecondsAfterFinished": 1}, "never ends"),
        ("RebalancePlan", HEALING | {"brokers": [3]}, "give brokers for the modes drain and relieve"),
        ("RebalancePlan", HEALING | {"heal": {"afterMinutes": 0}}, "should be greater than or equal to 1"),
        ("RebalancePlan", {"heal": {}}, "heal belongs to the mode heal"),
        ("RebalancePlan", {"timeZone": "UTC"}, "timeZone belongs to a schedule"),
        ("RebalancePlan", {"schedule": "0 3 * * *", "ttlSecondsAfterFinished": 1}, "never ends"),
        ("RebalancePlan", {"windows": []}, "should have at least 1 items"),
        ("FeatureSet", {"features": None}, "spec.features: Required value"),
        ("FeatureSet", {"features": []}, "should have at least 1 items"),
        ("FeatureSet", {"features": [feature("f"), feature("f", 2)]}, "Duplicate value"),
        ("FeatureSet", {"features": [feature("f", 0)]}, "should be greater than or equal to 1"),
        ("FeatureSet", {"features": [feature("f", 32768)]}, "should be less than or equal to 32767"),
        ("FeatureSet", {"features": [feature("a b")]}, "a feature name has only the characters"),
        ("FeatureSet", {"features": [feature("")]}, "should be at least 1 chars long"),
        ("FeatureSet", {"features": [{"name": "f"}]}, "maxVersionLevel: Required value"),
        ("FeatureSet", {"deletionPolicy": "Maybe"}, 'supported values: "Retain", "Delete"'),
    ],
)
def test_an_object_that_is_wrong_by_itself_is_refused_with_what_to_change(
    api: KubernetesCluster, kind: str, spec: dict[str, Any], message: str
) -> None:
    assert message in refusal(api, "create", "--dry-run=server", stdin=manifest(kind, spec))


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("KafkaCluster", "security"),
        ("KafkaTopic", "retention"),
        ("PartitionReassignment", "goals"),
        ("PreferredElection", "quorum"),
        ("RebalancePlan", "goals"),
        ("FeatureSet", "minVersionLevel"),
    ],
)
def test_a_field_that_nothing_implements_is_refused(api: KubernetesCluster, kind: str, field: str) -> None:
    assert f'unknown field "spec.{field}"' in refusal(
        api, "create", "--dry-run=server", stdin=manifest(kind, {field: {}})
    )


@pytest.mark.parametrize(
    ("kind", "before", "after", "message"),
    [
        ("KafkaTopic", {}, {"clusterRef": {"name": "other"}}, "clusterRef cannot change"),
        ("KafkaTopic", {}, {"clusterRef": {"name": "demo", "namespace": "other"}}, "clusterRef cannot change"),
        ("KafkaTopic", {"topicName": "orders"}, {"topicName": "orders2"}, "topicName cannot change"),
        ("KafkaTopic", {}, {"topicName": "orders2"}, "topicName cannot change"),
        ("KafkaTopic", {"topicName": "orders"}, {"topicName": None}, "topicName cannot change"),
        ("KafkaTopic", {}, {"partitions": 2}, "the number of partitions cannot decrease"),
        (
            "KafkaTopic",
            {},
            {"partitions": None, "replicationFactor": None, "replicaAssignment": [[1, 2]]},
            "the number of partitions cannot decrease",
        ),
        ("PartitionReassignment", {}, {"partitions": [move("audit")]}, "create a new PartitionReassignment"),
        ("PartitionReassignment", {}, {"partitions": None, "drainBrokers": [1]}, "create a new PartitionReassignment"),
        (
            "PartitionReassignment",
            {"partitions": None, "drainBrokers": [1]},
            {"partitions": None, "drainBrokers": [1, 2]},
            "create a new PartitionReassignment",
        ),
        ("PartitionReassignment", {}, {"clusterRef": {"name": "other"}}, "clusterRef cannot change"),
        ("PreferredElection", {}, {"topics": ["audit"]}, "create a new PreferredElection"),
        ("PreferredElection", {}, {"topics": None, "allPartitions": True}, "create a new PreferredElection"),
        ("PreferredElection", {}, UNCLEAN, "create a new PreferredElection"),
        ("PreferredElection", {}, SCHEDULED, "cannot change from one to the other"),
        ("PreferredElection", SCHEDULED, {"schedule": None}, "cannot change from one to the other"),
        ("PreferredElection", {}, {"clusterRef": {"name": "other"}}, "clusterRef cannot change"),
        ("RebalancePlan", {}, {"brokers": [4]}, "create a new RebalancePlan"),
        ("RebalancePlan", {}, {"mode": "expand"}, "create a new RebalancePlan"),
        ("RebalancePlan", {"mode": "relieve"}, {"belowPercent": 80}, "create a new RebalancePlan"),
        ("RebalancePlan", {}, {"schedule": "0 3 * * *"}, "create a new RebalancePlan"),
        ("RebalancePlan", {}, {"scope": {"topics": ["orders"]}}, "create a new RebalancePlan"),
        ("RebalancePlan", {"approval": "Required"}, {"approval": None}, "cannot be changed to Automatic"),
        ("FeatureSet", {}, {"clusterRef": {"name": "other"}}, "clusterRef cannot change"),
    ],
)
def test_what_cannot_change_is_refused(
    api: KubernetesCluster, kind: str, before: dict[str, Any], after: dict[str, Any], message: str
) -> None:
    api.kubectl("delete", kind, "example", "--ignore-not-found", "--namespace", NAMESPACE)
    api.kubectl("create", "-f", "-", stdin=manifest(kind, before))
    assert message in refusal(api, "replace", "--dry-run=server", stdin=manifest(kind, {**before, **after}))


@pytest.mark.parametrize(
    ("kind", "before", "after", "field"),
    [
        ("KafkaTopic", {"partitions": 3}, {"partitions": 2}, "spec.partitions: Forbidden"),
        ("KafkaTopic", {"topicName": "one"}, {"topicName": "other"}, "spec.topicName: Forbidden"),
        ("KafkaTopic", {}, {"clusterRef": {"name": "other"}}, "spec.clusterRef: Forbidden"),
        ("PreferredElection", {}, {"electionType": "Unclean"}, "spec.acknowledgeDataLoss: Invalid value"),
    ],
)
def test_a_refusal_names_the_field_that_is_to_change(
    api: KubernetesCluster, kind: str, before: dict[str, Any], after: dict[str, Any], field: str
) -> None:
    api.kubectl("delete", kind, "example", "--ignore-not-found", "--namespace", NAMESPACE)
    api.kubectl("create", "-f", "-", stdin=manifest(kind, before))
    assert field in refusal(api, "replace", "--dry-run=server", stdin=manifest(kind, {**before, **after}))


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("KafkaCluster", {"zookeeper": {"connect": "elsewhere:2181/kafka"}, "bootstrapServers": None}),
        ("KafkaTopic", {"topicName": "example", "partitions": 4, "config": None, "driftPolicy": "Report"}),
        ("KafkaTopic", {"partitions": None, "replicationFactor": None, "replicaAssignment": [[1, 2]] * 3}),
        ("PartitionReassignment", {"ttlSecondsAfterFinished": 60, **windows(*[{}] * 10)}),
        ("PreferredElection", {"ttlSecondsAfterFinished": 60, "acknowledgeDataLoss": True}),
        ("RebalancePlan", {"limits": {"maxMoves": 9}, "suspend": True, "approvedPlan": "0123456789abcdef"}),
        ("RebalancePlan", {"windows": [{"schedule": "0 3 * * *", "durationMinutes": 60}]}),
        ("FeatureSet", {"features": [{"name": "f", "maxVersionLevel": 2}], "allowDowngrade": True, "dryRun": True}),
    ],
)
def test_what_may_change_is_taken(api: KubernetesCluster, kind: str, after: dict[str, Any]) -> None:
    api.kubectl("delete", kind, "example", "--ignore-not-found", "--namespace", NAMESPACE)
    api.kubectl("create", "-f", "-", stdin=manifest(kind, {}))
    assert "replaced" in api.kubectl("replace", "--dry-run=server", "-f", "-", stdin=manifest(kind, after))


def test_an_object_whose_name_is_too_long_for_a_topic_needs_a_topic_name(api: KubernetesCluster) -> None:
    name = "x" * 250
    message = "a topic name has at most 249 characters: give a shorter topicName"
    assert message in refusal(api, "create", "--dry-run=server", stdin=manifest("KafkaTopic", {}, name))
    assert "created" in api.kubectl(
        "create", "--dry-run=server", "-f", "-", stdin=manifest("KafkaTopic", {"topicName": "x"}, name)
    )


def test_the_largest_reassignment_that_the_schema_takes_can_be_stored(api: KubernetesCluster) -> None:
    partitions = [move(f"payments.orders.{number // 50}", number % 50, (1, 2, 3)) for number in range(MAX_PARTITIONS)]
    stdin = manifest("PartitionReassignment", {"partitions": partitions}, "largest")
    api.kubectl("apply", "--server-side", "-f", "-", stdin=stdin)
    stored = api.get("partitionreassignment", "largest", "--namespace", NAMESPACE)
    assert len(stored["spec"]["partitions"]) == MAX_PARTITIONS
    one_more = manifest("PartitionReassignment", {"partitions": [*partitions, move("more")]}, "larger")
    assert f"must have at most {MAX_PARTITIONS} items" in refusal(api, "apply", "--server-side", stdin=one_more)


def test_a_status_keeps_nothing_unknown(api: KubernetesCluster) -> None:
    api.kubectl("apply", "-f", "-", stdin=manifest("KafkaTopic", {}, "remembering"))
    target = ("kafkatopic", "remembering", "--namespace", NAMESPACE)
    patch = json.dumps({"status": {"unknown": 1}})
    api.kubectl("patch", *target, "--subresource=status", "--type=merge", "--patch", patch)
    assert api.get(*target)["status"] == {"observedGeneration": -1}


def test_the_columns_show_what_the_status_says(api: KubernetesCluster) -> None:
    api.kubectl("apply", "-f", "-", stdin=manifest("KafkaTopic", {}, "shown"))
    status = {
        "topicName": "shown",
        "replicationFactor": 3,
        "counts": {"partitions": 12, "online": 11, "underReplicated": 5},
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "PartitionsOffline",
                "message": "1 of 12 partitions has no leader",
                "observedGeneration": 1,
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ],
    }
    target = ("kafkatopic", "shown", "--namespace", NAMESPACE)
    api.kubectl("patch", *target, "--subresource=status", "--type=merge", "--patch", json.dumps({"status": status}))
    header, row = api.kubectl("get", *target).splitlines()
    assert header.split()[:10] == [
        "NAME",
        "CLUSTER",
        "TOPIC",
        "PARTITIONS",
        "RF",
        "ONLINE",
        "UNDERREPLICATED",
        "DRIFT",
        "READY",
        "REASON",
    ]
    assert row.split()[:9] == ["shown", "demo", "shown", "12", "3", "11", "5", "False", "PartitionsOffline"]
    assert "1 of 12 partitions has no leader" in api.kubectl("get", *target, "-o", "wide")


def test_each_kind_goes_by_its_short_name_and_all_by_the_category(api: KubernetesCluster) -> None:
    for kind in KINDS:
        name = kind.definition.kind
        api.kubectl("apply", "-f", "-", stdin=manifest(name, {}, "named"))
        assert api.get(kind.definition.short_name, "named", "--namespace", NAMESPACE)["kind"] == name
    listed = api.kubectl("get", "kontroller", "--namespace", NAMESPACE, "-o", "name").splitlines()
    assert {f"{kind.definition.kind.lower()}.kontroller.dev/named" for kind in KINDS} <= set(listed)


def test_people_can_ask_what_a_field_means(api: KubernetesCluster) -> None:
    explained = " ".join(api.kubectl("explain", "kafkatopic.spec.deletionPolicy").split())
    assert (
        "Retain leaves the topic and its data; Delete deletes both, unless another KafkaTopic claims the topic"
        in explained
    )
    assert explained.endswith("and so takes it over.")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_taken(api: KubernetesCluster, example: Path) -> None:
    objects = list(yaml.safe_load_all(example.read_text()))
    printed = api.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(example)).splitlines()
    assert len(printed) == len(objects)
