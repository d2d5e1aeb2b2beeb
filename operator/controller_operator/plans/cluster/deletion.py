"""The deletion of a KafkaCluster to which objects still refer: the words of the webhook and of the status.

A topic with `deletionPolicy: Delete` cannot be deleted without its KafkaCluster, and a running move cannot be cancelled.
"""

from collections import Counter
from collections.abc import Collection

from controller_core.model.wording import format_count, list_some
from controller_operator.kubernetes.object_store import Key
from controller_operator.plans.outcome import Verdict
from controller_operator.resources import KafkaCluster
from controller_operator.resources.common import DELETE_FIRST_ANNOTATION, ObjectMeta
from controller_operator.resources.conditions import Reason


def is_forced(cluster: ObjectMeta) -> bool:
    """Return True if the KafkaCluster may go before its dependents. Only `true` says so, because data may stay behind."""
    return cluster.annotations.get(DELETE_FIRST_ANNOTATION, "").strip().lower() == "true"


def explain_refusal(cluster: ObjectMeta, dependents: Collection[Key]) -> str:
    """Return why the webhook refuses the deletion, and how to go on. Without `dependents` none is named."""
    if not dependents:
        return f"KafkaCluster {cluster.namespace}/{cluster.name} is still needed"
    return f"KafkaCluster {cluster.namespace}/{cluster.name} is still needed: {_explain_need(cluster, dependents)}"


def make_waiting_verdict(cluster: ObjectMeta, dependents: Collection[Key]) -> Verdict:
    """Return the verdict on a KafkaCluster that is being deleted and waits for its dependents."""
    return Verdict.make_working(Reason.WAITING_FOR_DEPENDENTS, f"being deleted: {_explain_need(cluster, dependents)}")


def describe_dependents(dependents: Collection[Key]) -> str:
    """Return the numbers of objects by kind, and the names of some: `2 KafkaTopics (shop/a, shop/b)`."""
    kinds = Counter(key.kind for key in dependents)
    counts = " and ".join(format_count(count, kind) for kind, count in sorted(kinds.items()))
    return f"{counts} ({list_some(sorted(f'{key.namespace}/{key.name}' for key in dependents))})"


def _explain_need(cluster: ObjectMeta, dependents: Collection[Key]) -> str:
    verb = "refers" if len(dependents) == 1 else "refer"
    return (
        f"{describe_dependents(dependents)} {verb} to it. Delete these first. To delete it without them, so that their"
        f" topics and data stay: kubectl annotate {KafkaCluster.definition.crd_name} {cluster.name}"
        f" --namespace {cluster.namespace} {DELETE_FIRST_ANNOTATION}=true"
    )
