"""The resources that the tests apply."""

from typing import Any

from tests.e2e.release import NAME, Release


def cluster(name: str) -> dict[str, Any]:
    """Return a KafkaCluster: that of the chart."""
    return {
        "apiVersion": "kontroller.dev/v1alpha1",
        "kind": "KafkaCluster",
        "metadata": {"name": name},
        "spec": {"zookeeper": {"connect": f"{NAME}-zookeeper:2181/kafka"}},
    }


def topic(name: str, assignment: list[list[int]], **config: str) -> dict[str, Any]:
    """Return a KafkaTopic that others may move."""
    return {
        "apiVersion": "kontroller.dev/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": name},
        "spec": {
            "clusterRef": {"name": "demo"},
            "replicaAssignment": assignment,
            "driftPolicy": "Report",
            "config": config,
        },
    }


def reassignment(name: str, topic_name: str, targets: list[list[int]]) -> dict[str, Any]:
    """Return a PartitionReassignment of all partitions of a topic."""
    moves = [{"topic": topic_name, "partition": number, "replicas": to} for number, to in enumerate(targets)]
    return {
        "apiVersion": "kontroller.dev/v1alpha1",
        "kind": "PartitionReassignment",
        "metadata": {"name": name},
        "spec": {"clusterRef": {"name": "demo"}, "partitions": moves},
    }


def make_emptying(name: str, broker: int) -> dict[str, Any]:
    """Return a PartitionReassignment that moves everything away from a broker."""
    return {
        "apiVersion": "kontroller.dev/v1alpha1",
        "kind": "PartitionReassignment",
        "metadata": {"name": name},
        "spec": {"clusterRef": {"name": "demo"}, "drainBrokers": [broker]},
    }


def ready_condition(release: Release, kind: str, name: str) -> dict[str, str]:
    """Return the Ready condition of a resource; with empty texts if it has none yet."""
    conditions = release.status(kind, name).get("conditions", [])
    none = {"status": "", "reason": "", "message": ""}
    return next((each for each in conditions if each["type"] == "Ready"), none)
