"""Topics as objects of Kubernetes' form: Strimzi's, koperator's, Confluent for Kubernetes' and Jikkou's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kontroller.importing.declared import Declared
from kontroller.importing.sources.loading import Fields, Misshapen

Cluster = tuple[str | None, str | None]
"""The name of the cluster, and its namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The form of one tool's KafkaTopic."""

    partitions: str = "partitions"
    replicas: str = "replicas"
    config: str = "config"
    topic: str = ""
    """The field with the topic's name. Without it, the topic has the object's name."""
    more: frozenset[str] = frozenset()
    """Fields that say only how the tool reaches the cluster."""
    read_cluster: Callable[[Fields, Fields], Cluster]
    """Finds the cluster in the metadata and the spec."""
    pauses: Mapping[str, Callable[[str], bool]]
    """Annotations that stop the tool's management, with the values that do."""
    deletes: str = ""
    """The annotation that makes the tool delete the topic."""


def _read_label(metadata: Fields, spec: Fields) -> Cluster:
    return metadata.get_fields("labels").get_text("strimzi.io/cluster"), None


def _read_reference(field: str) -> Callable[[Fields, Fields], Cluster]:
    def read(metadata: Fields, spec: Fields) -> Cluster:
        reference = spec.get_fields(field)
        return reference.get_text("name"), reference.get_text("namespace")

    return read


DIALECTS: Final[Mapping[str, Dialect]] = {
    "kafka.strimzi.io": Dialect(
        topic="topicName",
        read_cluster=_read_label,
        pauses={
            "strimzi.io/managed": lambda value: value == "false",
            "strimzi.io/pause-reconciliation": lambda value: value == "true",
        },
    ),
    "kafka.banzaicloud.io": Dialect(
        topic="name",
        replicas="replicationFactor",
        more=frozenset({"clusterRef"}),
        read_cluster=_read_reference("clusterRef"),
        pauses={"managedBy": lambda value: value != "koperator"},
    ),
    "platform.confluent.io": Dialect(
        topic="name",
        partitions="partitionCount",
        config="configs",
        more=frozenset({"kafkaClusterRef", "kafkaRest", "kafkaRestClassRef"}),
        read_cluster=_read_reference("kafkaClusterRef"),
        pauses={"platform.confluent.io/block-reconcile": lambda value: value == "true"},
    ),
    "kafka.jikkou.io": Dialect(
        config="configs",
        more=frozenset({"configMapRefs"}),
        read_cluster=lambda metadata, spec: (None, None),
        pauses={"jikkou.io/ignore": lambda value: value == "true"},
        deletes="jikkou.io/delete",
    ),
}
"""The dialects by API group."""


def is_being_deleted(found: Fields, dialect: Dialect) -> bool:
    """Return True if the object is in deletion, or asks for the deletion of its topic."""
    metadata = found.get_fields("metadata")
    return "deletionTimestamp" in metadata or metadata.get_fields("annotations").is_set(dialect.deletes)


def read_object(found: Fields, dialect: Dialect, place: str, config_maps: Mapping[str, Fields]) -> Declared:
    """Read a tool's KafkaTopic. Raises `Misshapen`."""
    metadata, spec = found.get_fields("metadata"), found.get_fields("spec")
    name = metadata.get_text("name")
    topic = spec.get_text(dialect.topic) or name
    if not topic:
        raise Misshapen("metadata has no name")
    cluster, cluster_namespace = dialect.read_cluster(metadata, spec)
    known = {dialect.partitions, dialect.replicas, dialect.config, dialect.topic, *dialect.more}
    unknown = sorted(spec.keys() - known)
    annotations = metadata.get_fields("annotations")
    pauses = (
        f"{key} is {value}" for key, value in annotations.items() if _is_pause(dialect.pauses.get(key), str(value))
    )
    return Declared(
        place=place,
        topic=topic,
        object_name=name,
        namespace=metadata.get_text("namespace"),
        cluster=cluster,
        cluster_namespace=cluster_namespace,
        partitions=spec.get(dialect.partitions),
        replicas=spec.get(dialect.replicas),
        config=spec.get_fields(dialect.config) | _read_config_maps(spec, config_maps),
        labels=metadata.get_fields("labels"),
        annotations=annotations,
        pause_reason=next(pauses, None),
        notes=(f"spec leaves out {', '.join(unknown)}: topics have no such field",) if unknown else (),
    )


def _is_pause(is_pause: Callable[[str], bool] | None, value: str) -> bool:
    return is_pause is not None and is_pause(value.lower())


def _read_config_maps(spec: Fields, config_maps: Mapping[str, Fields]) -> dict[str, object]:
    """Return the configuration of the ConfigMaps that a topic of Jikkou names. They go before its own."""
    config: dict[str, object] = {}
    names = spec.get("configMapRefs") or ()
    for name in [names] if isinstance(names, str) else names:
        if str(name) not in config_maps:
            raise Misshapen(f"the ConfigMap {name} is in none of the files: add its file")
        config |= config_maps[str(name)]
    return config
