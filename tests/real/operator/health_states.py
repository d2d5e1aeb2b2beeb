"""The states of objects that GitOps tools must distinguish: each reached on real servers, with its health."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.operator.operated import Objects, Operator

PAUSE = "kontroller.dev/pause=true"
NOWHERE = "127.0.0.1:1"
TOPIC: dict[str, Any] = {"partitions": 1, "replicationFactor": 2}

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The servers on which the states are reached."""

    objects: Objects
    operator: Operator
    kafka: KafkaCluster
    znodes: ClusterZnodes
    other_cluster: str
    """The connect string of another cluster: one broker that supports the feature f, which is finalized at 3."""

    def serve_topic(self, topic: str, *replicas: int) -> None:
        """Create a topic of one partition, and wait until it is served."""
        serve_topic(self.znodes, topic, [replicas])

    def apply_without_operator(self, kind: str, name: str, spec: Object) -> Object:
        """Apply an object while no operator runs."""
        self.operator.process.stop()
        self.objects.apply(kind, name, spec)
        found = self.objects.get(kind, name) or {}
        self.operator.start()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state of an object, and its health."""

    kind: str
    name: str
    argo: str
    kstatus: str
    flux: str
    reach: Callable[[Stage, str], Object]
    """Brings an object with this name into the state and returns it."""

    @property
    def export(self) -> str:
        """The file in Argo CD's test data."""
        return f"testdata/{self.argo.lower()}_{self.name}.yaml"


def cluster_unseen(stage: Stage, name: str) -> Object:
    return stage.apply_without_operator("KafkaCluster", name, {"zookeeper": {"connect": NOWHERE}})


def cluster_ready(stage: Stage, name: str) -> Object:
    return _cluster(stage, name, stage.kafka.zookeeper_connect)


def cluster_unreachable(stage: Stage, name: str) -> Object:
    return _cluster(stage, name, NOWHERE, "Unknown", "ZooKeeperUnavailable")


def cluster_changed(stage: Stage, name: str) -> Object:
    _cluster(stage, name, stage.kafka.zookeeper_connect)
    return _cluster(stage, name, stage.other_cluster, "False", "ClusterChanged")


def cluster_paused(stage: Stage, name: str) -> Object:
    _cluster(stage, name, stage.kafka.zookeeper_connect)
    return _pause(stage, "KafkaCluster", name)


def topic_unseen(stage: Stage, name: str) -> Object:
    return stage.apply_without_operator("KafkaTopic", name, TOPIC)


def topic_ready(stage: Stage, name: str) -> Object:
    return _topic(stage, name)


def topic_of_unseen_change(stage: Stage, name: str) -> Object:
    _topic(stage, name)
    return stage.apply_without_operator("KafkaTopic", name, {**TOPIC, "partitions": 2})


def topic_without_cluster(stage: Stage, name: str) -> Object:
    return _topic(stage, name, {"clusterRef": {"name": "nowhere"}}, "False", "ClusterNotFound")


def topic_without_enough_brokers(stage: Stage, name: str) -> Object:
    return _topic(stage, name, {"replicationFactor": 5}, "False", "NotEnoughBrokers")


def topic_in_conflict(stage: Stage, name: str) -> Object:
    first = _topic(stage, f"{name}-older", {"topicName": name})
    since = datetime.fromisoformat(first["metadata"]["creationTimestamp"])
    wait_until(lambda: datetime.now(UTC) >= since + timedelta(seconds=1), "the next object is younger")
    return _topic(stage, name, {}, "False", "ResourceConflict")


def topic_of_wrong_config(stage: Stage, name: str) -> Object:
    return _topic(stage, name, {"config": {"retention.ms": "for ever"}}, "False", "InvalidConfig")


def topic_drifted(stage: Stage, name: str) -> Object:
    spec = {"config": {"retention.ms": "60000"}, "driftPolicy": "Report"}
    _topic(stage, name, spec)
    stage.znodes.change_config(name, {"retention.ms": "1"})
    return stage.objects.wait_ready("KafkaTopic", name, "True", "Drifted")


def topic_paused(stage: Stage, name: str) -> Object:
    _topic(stage, name)
    return _pause(stage, "KafkaTopic", name)


def topic_paused_before_change(stage: Stage, name: str) -> Object:
    topic_paused(stage, name)
    return _topic(stage, name, {"partitions": 3}, "Unknown", "Paused")


def move_unseen(stage: Stage, name: str) -> Object:
    return stage.apply_without_operator("PartitionReassignment", name, _move(name, 1, 2))


def move_to_unknown_broker(stage: Stage, name: str) -> Object:
    stage.serve_topic(name, 1, 2)
    stage.objects.apply("PartitionReassignment", name, _move(name, 1, 9))
    return stage.objects.wait_ready("PartitionReassignment", name, "False", "UnknownBroker")


def move_running(stage: Stage, name: str) -> Object:
    """Start a move to a paused broker; it ends when the broker resumes."""
    stage.serve_topic(name, 1, 2)
    stage.kafka.broker(3).pause()
    try:
        stage.objects.apply("PartitionReassignment", name, _move(name, 1, 3))
        return _catch_up(stage, name)
    finally:
        _resume(stage)


def move_paused(stage: Stage, name: str) -> Object:
    stage.serve_topic(name, 1, 2)
    stage.objects.apply("PartitionReassignment", name, _move(name, 1, 9))
    stage.objects.wait_ready("PartitionReassignment", name, "False", "UnknownBroker")
    return _pause(stage, "PartitionReassignment", name, "False")


def move_suspended(stage: Stage, name: str) -> Object:
    return _hold_move(stage, name, "Suspended", suspend=True)


def move_to_be_approved(stage: Stage, name: str) -> Object:
    return _hold_move(stage, name, "AwaitingApproval", approval="Required")


def move_outside_of_its_windows(stage: Stage, name: str) -> Object:
    """Hold a move back: the next window opens on a 29th of February."""
    windows = [{"schedule": "0 0 29 2 *", "durationMinutes": 1}]
    return _hold_move(stage, name, "OutsideWindow", schedule={"windows": windows})


def move_completed(stage: Stage, name: str) -> Object:
    stage.serve_topic(name, 1, 2)
    stage.objects.apply("PartitionReassignment", name, _move(name, 2, 3))
    return stage.objects.wait_ready("PartitionReassignment", name)


def move_failed(stage: Stage, name: str) -> Object:
    """Fail a move: another tool moves the partition back to its origin while it is in progress."""
    stage.serve_topic(name, 1, 2)
    stage.kafka.broker(3).pause()
    try:
        stage.objects.apply("PartitionReassignment", name, _move(name, 1, 3))
        _catch_up(stage, name)
        stage.znodes.reassign({(name, 0): [1, 2]})
        return stage.objects.wait_ready("PartitionReassignment", name, "False", "PartitionsFailed")
    finally:
        _resume(stage)


def election_unseen(stage: Stage, name: str) -> Object:
    return stage.apply_without_operator("PreferredElection", name, {"topics": [name]})


def election_without_cluster(stage: Stage, name: str) -> Object:
    spec = {"topics": [name], "clusterRef": {"name": "nowhere"}}
    stage.objects.apply("PreferredElection", name, spec)
    return stage.objects.wait_ready("PreferredElection", name, "False", "ClusterNotFound")


def election_completed(stage: Stage, name: str) -> Object:
    stage.serve_topic(name, 1, 2)
    stage.objects.apply("PreferredElection", name, {"topics": [name]})
    return stage.objects.wait_ready("PreferredElection", name)


def election_scheduled(stage: Stage, name: str) -> Object:
    stage.objects.apply("PreferredElection", name, {"allPartitions": True, "schedule": "0 0 1 1 *"})
    return stage.objects.wait_ready("PreferredElection", name, "True", "Scheduled")


def election_suspended(stage: Stage, name: str) -> Object:
    election_scheduled(stage, name)
    stage.objects.patch("PreferredElection", name, {"spec": {"suspend": True}})
    return stage.objects.wait_ready("PreferredElection", name, "True", "Suspended")


def election_before_its_topic(stage: Stage, name: str) -> Object:
    stage.objects.apply("PreferredElection", name, {"topics": ["missing"]})
    return stage.objects.wait_ready("PreferredElection", name, "False", "UnknownTopic")


def election_completed_and_kept(stage: Stage, name: str) -> Object:
    """Complete an election. Neither a pause nor the end of its cluster changes the result; its time to live may still
    change.
    """
    _cluster(stage, name, stage.kafka.zookeeper_connect)
    stage.serve_topic(name, 1, 2)
    spec = {"topics": [name], "clusterRef": {"name": name}}
    stage.objects.apply("PreferredElection", name, spec)
    stage.objects.wait_ready("PreferredElection", name)
    stage.objects.delete("KafkaCluster", name)
    wait_until(lambda: stage.objects.get("KafkaCluster", name) is None, "its cluster is gone")
    stage.objects.annotate("PreferredElection", name, PAUSE)
    stage.objects.apply("PreferredElection", name, {**spec, "ttlSecondsAfterFinished": 86_400})
    return stage.objects.wait_ready("PreferredElection", name)


def plan_unseen(stage: Stage, name: str) -> Object:
    return stage.apply_without_operator("RebalancePlan", name, {"mode": "rebalance"})


def plan_without_cluster(stage: Stage, name: str) -> Object:
    stage.objects.apply("RebalancePlan", name, {"mode": "rebalance", "clusterRef": {"name": "nowhere"}})
    return stage.objects.wait_ready("RebalancePlan", name, "False", "ClusterNotFound")


def plan_of_missing_topics(stage: Stage, name: str) -> Object:
    stage.objects.apply("RebalancePlan", name, {"mode": "rebalance", "scope": {"topics": ["missing-*"]}})
    return stage.objects.wait_ready("RebalancePlan", name, "False", "UnknownTopic")


def plan_scheduled(stage: Stage, name: str) -> Object:
    stage.objects.apply("RebalancePlan", name, {"mode": "rebalance", "schedule": "0 0 1 1 *"})
    return stage.objects.wait_ready("RebalancePlan", name, "True", "Scheduled")


def plan_that_heals(stage: Stage, name: str) -> Object:
    stage.objects.apply("RebalancePlan", name, {"mode": "heal"})
    return stage.objects.wait_ready("RebalancePlan", name, "True", "Reconciled")


def features_unseen(stage: Stage, name: str) -> Object:
    return stage.apply_without_operator("FeatureSet", name, _features(unseen=1))


def features_ready(stage: Stage, name: str) -> Object:
    _cluster(stage, name, stage.other_cluster, "False", "NoController")
    stage.objects.apply("FeatureSet", name, {**_features(f=3), "clusterRef": {"name": name}})
    return stage.objects.wait_ready("FeatureSet", name)


def features_dry_run(stage: Stage, name: str) -> Object:
    stage.objects.apply("FeatureSet", name, {**_features(dry=1), "dryRun": True})
    return stage.objects.wait_ready("FeatureSet", name, "False", "DryRun")


def features_refused(stage: Stage, name: str) -> Object:
    stage.objects.apply("FeatureSet", name, _features(refused=1))
    return stage.objects.wait_ready("FeatureSet", name, "False", "FeatureUnsupported")


def features_paused(stage: Stage, name: str) -> Object:
    stage.objects.apply("FeatureSet", name, _features(paused=1))
    stage.objects.wait_ready("FeatureSet", name, "False", "FeatureUnsupported")
    return _pause(stage, "FeatureSet", name, "False")


def _states(kind: str, *rows: tuple[str, str, str, str, Callable[[Stage, str], Object]]) -> list[State]:
    return [
        State(kind=kind, name=name, argo=argo, kstatus=kstatus, flux=flux, reach=reach)
        for name, argo, kstatus, flux, reach in rows
    ]


STATES = [
    *_states(
        "KafkaCluster",
        ("unseen", "Progressing", "InProgress", "InProgress", cluster_unseen),
        ("ready", "Healthy", "Current", "Current", cluster_ready),
        ("unreachable", "Progressing", "InProgress", "InProgress", cluster_unreachable),
        ("other-cluster", "Degraded", "Failed", "Failed", cluster_changed),
        ("paused", "Suspended", "Current", "Current", cluster_paused),
    ),
    *_states(
        "KafkaTopic",
        ("unseen", "Progressing", "InProgress", "InProgress", topic_unseen),
        ("ready", "Healthy", "Current", "Current", topic_ready),
        ("unseen-change", "Progressing", "InProgress", "InProgress", topic_of_unseen_change),
        ("no-cluster", "Progressing", "InProgress", "InProgress", topic_without_cluster),
        ("no-brokers", "Progressing", "InProgress", "InProgress", topic_without_enough_brokers),
        ("conflict", "Degraded", "Failed", "Failed", topic_in_conflict),
        ("wrong-config", "Degraded", "Failed", "Failed", topic_of_wrong_config),
        ("drifted", "Healthy", "Current", "Current", topic_drifted),
        ("paused", "Suspended", "Current", "Current", topic_paused),
        ("paused-change", "Suspended", "InProgress", "InProgress", topic_paused_before_change),
    ),
    *_states(
        "PartitionReassignment",
        ("unseen", "Progressing", "InProgress", "InProgress", move_unseen),
        ("unknown-broker", "Progressing", "InProgress", "InProgress", move_to_unknown_broker),
        ("running", "Progressing", "InProgress", "InProgress", move_running),
        ("paused", "Suspended", "InProgress", "InProgress", move_paused),
        ("suspended", "Suspended", "InProgress", "InProgress", move_suspended),
        ("to-be-approved", "Suspended", "InProgress", "InProgress", move_to_be_approved),
        ("outside-window", "Suspended", "InProgress", "InProgress", move_outside_of_its_windows),
        ("completed", "Healthy", "Current", "Current", move_completed),
        ("failed", "Degraded", "Failed", "Failed", move_failed),
    ),
    *_states(
        "PreferredElection",
        ("unseen", "Progressing", "InProgress", "InProgress", election_unseen),
        ("no-cluster", "Progressing", "InProgress", "InProgress", election_without_cluster),
        ("completed", "Healthy", "Current", "Current", election_completed),
        ("completed-and-kept", "Healthy", "Current", "Current", election_completed_and_kept),
        ("no-topic", "Progressing", "InProgress", "InProgress", election_before_its_topic),
        ("scheduled", "Healthy", "Current", "Current", election_scheduled),
        ("suspended", "Suspended", "Current", "Current", election_suspended),
    ),
    *_states(
        "RebalancePlan",
        ("unseen", "Progressing", "InProgress", "InProgress", plan_unseen),
        ("no-cluster", "Progressing", "InProgress", "InProgress", plan_without_cluster),
        ("no-topics", "Degraded", "Failed", "Failed", plan_of_missing_topics),
        ("scheduled", "Healthy", "Current", "Current", plan_scheduled),
        ("heals", "Healthy", "Current", "Current", plan_that_heals),
    ),
    *_states(
        "FeatureSet",
        ("unseen", "Progressing", "InProgress", "InProgress", features_unseen),
        ("ready", "Healthy", "Current", "Current", features_ready),
        ("dry-run", "Suspended", "InProgress", "Current", features_dry_run),
        ("refused", "Degraded", "Failed", "Failed", features_refused),
        ("paused", "Suspended", "InProgress", "InProgress", features_paused),
    ),
]


def _cluster(stage: Stage, name: str, connect: str, status: str = "True", reason: str | None = None) -> Object:
    stage.objects.apply("KafkaCluster", name, {"zookeeper": {"connect": connect}})
    return stage.objects.wait_ready("KafkaCluster", name, status, reason)


def _topic(
    stage: Stage, name: str, changes: Object | None = None, status: str = "True", reason: str | None = None
) -> Object:
    stage.objects.apply("KafkaTopic", name, {**TOPIC, **(changes or {})})
    return stage.objects.wait_ready("KafkaTopic", name, status, reason)


def _pause(stage: Stage, kind: str, name: str, status: str = "True") -> Object:
    stage.objects.annotate(kind, name, PAUSE)
    return stage.objects.wait_ready(kind, name, status, "Paused")


def _hold_move(stage: Stage, name: str, reason: str, **held: Any) -> Object:
    stage.serve_topic(name, 1, 2)
    stage.objects.apply("PartitionReassignment", name, {**_move(name, 1, 3), **held})
    return stage.objects.wait_ready("PartitionReassignment", name, "False", reason)


def _move(topic: str, *replicas: int) -> Object:
    return {"partitions": [{"topic": topic, "partition": 0, "replicas": [*replicas]}]}


def _features(**levels: int) -> Object:
    return {"features": [{"name": name, "maxVersionLevel": level} for name, level in levels.items()]}


def _catch_up(stage: Stage, name: str) -> Object:
    kind = "PartitionReassignment"

    def is_moving() -> bool:
        return bool(stage.objects.status(kind, name).get("counts", {}).get("moving") == 1)

    wait_until(is_moving, "the partition moves")
    return stage.objects.get(kind, name) or {}


def _resume(stage: Stage) -> None:
    stage.kafka.broker(3).resume()
    stage.kafka.broker(3).wait_until_ready()
