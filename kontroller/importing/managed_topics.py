"""A cluster as Kubernetes knows it: its address, the topics with a KafkaTopic, and the names in use."""

from collections.abc import Iterable
from dataclasses import dataclass

from controller_operator.kubernetes.object_api import ApiForbidden, ObjectApi, ObjectGone
from controller_operator.kubernetes.object_store import Key, Raw, key_of
from controller_operator.resources.cluster_address import AtBrokers, AtZooKeeper, ClusterAddress


class NoSuchCluster(Exception):
    """The KafkaCluster does not exist, or has no address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCluster:
    """A KafkaCluster, and the objects that refer to it or to another KafkaCluster for the same Kafka cluster."""

    address: ClusterAddress
    managed: frozenset[str]
    """Names of topics that have a KafkaTopic."""
    taken: frozenset[str]
    """Names of the KafkaTopics in the namespace that topics are imported into."""
    notes: tuple[str, ...] = ()


async def read_known_cluster(api: ObjectApi, cluster: Key, namespace: str) -> KnownCluster:
    """Read a KafkaCluster and the KafkaTopics of all namespaces. Raises `NoSuchCluster` and `ApiError`.

    If the user may not see all namespaces, only that one is read, with a note."""
    try:
        found = await api.get(cluster)
    except ObjectGone as error:
        raise NoSuchCluster(f"there is no {cluster}") from error
    notes: list[str] = []
    clusters = await _list_visible(api, "KafkaCluster", cluster.namespace, notes)
    topics = await _list_visible(api, "KafkaTopic", namespace, notes)
    same = {key_of(each)[1:] for each in clusters if _is_same(each, found)} | {cluster[1:]}
    return KnownCluster(
        address=_read_address(cluster, found["spec"]),
        managed=frozenset(_read_topic_name(each) for each in topics if _read_cluster_reference(each) in same),
        taken=frozenset(each["metadata"]["name"] for each in topics if each["metadata"]["namespace"] == namespace),
        notes=tuple(notes),
    )


def _read_address(cluster: Key, spec: Raw) -> ClusterAddress:
    zookeeper = spec.get("zookeeper")
    if zookeeper is not None:
        return AtZooKeeper(zookeeper["connect"])
    if "bootstrapServers" not in spec:
        raise NoSuchCluster(f"{cluster} has neither zookeeper nor bootstrapServers")
    return AtBrokers(spec["bootstrapServers"])


async def _list_visible(api: ObjectApi, kind: str, namespace: str, notes: list[str]) -> Iterable[Raw]:
    try:
        return (await api.list_all(kind, None)).items
    except ApiForbidden:
        notes.append(
            f"only the {kind}s of namespace {namespace} are visible: topics that are managed in other namespaces are "
            f"imported, too"
        )
        return (await api.list_all(kind, namespace)).items


def _is_same(cluster: Raw, other: Raw) -> bool:
    cluster_id = cluster.get("status", {}).get("clusterId")
    return cluster_id is not None and cluster_id == other.get("status", {}).get("clusterId")


def _read_topic_name(raw: Raw) -> str:
    return str(raw["spec"].get("topicName") or raw["metadata"]["name"])


def _read_cluster_reference(raw: Raw) -> tuple[str, str]:
    reference = raw["spec"]["clusterRef"]
    return reference.get("namespace") or raw["metadata"]["namespace"], reference["name"]
