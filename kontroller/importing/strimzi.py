"""Converts Strimzi's KafkaTopics.

Name, labels and annotations stay, except Strimzi's and kubectl's own. Strimzi may leave partitions or replicas to the
brokers; a KafkaTopic of kontroller.dev must state them, so such a topic has to be imported from the live cluster.
`strimzi.io/pause-reconciliation` and `strimzi.io/managed: "false"` become the pause annotation. Deleting Strimzi's
object deletes the topic; ours retains it by default. Other kinds are not copied, because they may be secrets."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import IO, Any, Final

import yaml

from controller_core.model.topics.topic_names import INTERNAL_TOPICS
from controller_operator.resources.common import PAUSE_ANNOTATION
from kontroller.importing.documents import Imported, Inexpressible, Target, Wanted, build_kafka_topic
from kontroller.importing.object_names import NameTaken, ObjectNames

_GROUP: Final = "kafka.strimzi.io/"
_CLUSTER_LABEL: Final = "strimzi.io/cluster"
_PAUSED: Final = {"strimzi.io/pause-reconciliation": "true", "strimzi.io/managed": "false"}
_NOT_THEIRS: Final = ("strimzi.io/", "kubectl.kubernetes.io/")
_KNOWN: Final = frozenset({"topicName", "partitions", "replicas", "config"})
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NoYaml(Exception):
    """The input is not YAML."""


class StrimziTopics:
    """Reads Strimzi's KafkaTopics. `cluster` and `namespace` override the objects' own."""

    def __init__(self, cluster: str | None, cluster_namespace: str | None, namespace: str | None) -> None:
        self._cluster = cluster
        self._cluster_namespace = cluster_namespace
        self._namespace = namespace
        self._names: dict[str | None, ObjectNames] = {}

    def read(self, source: IO[str], *, with_internal: bool = False) -> Iterator[Imported]:
        """Yield each topic of a file. Raises `NoYaml` after the topics before the error."""
        try:
            for document in yaml.load_all(source, _Loader):  # a safe loader, in C if there is one
                for each in _list_objects(document):
                    imported = self._import_object(each)
                    if imported.topic not in INTERNAL_TOPICS or with_internal:
                        yield imported
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise NoYaml(f"{source.name} is not YAML: {' '.join(str(error).split())}") from error

    def _import_object(self, found: Any) -> Imported:
        if not isinstance(found, dict) or not _is_topic(found):
            named = (
                f"{found.get('kind')} {_read_part(found, 'metadata').get('name')}" if isinstance(found, dict) else "?"
            )
            return Imported(topic=named, reason="it is not one of Strimzi's either")
        metadata, spec = _read_part(found, "metadata"), _read_part(found, "spec")
        topic = str(spec.get("topicName") or metadata.get("name"))
        try:
            return self._import_topic(topic, metadata, spec)
        except (Inexpressible, NameTaken) as error:
            return Imported(topic=topic, reason=str(error), instead=found)

    def _import_topic(self, topic: str, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Imported:
        unknown = sorted(map(str, set(spec) - _KNOWN))
        if unknown:
            raise Inexpressible(f"its spec has {', '.join(unknown)}")
        annotations = _read_part(metadata, "annotations")
        namespace = self._namespace or metadata.get("namespace")
        target = Target(
            cluster=self._cluster or _read_cluster(metadata),
            cluster_namespace=self._cluster_namespace,
            namespace=namespace,
        )
        is_paused = any(annotations.get(name) == value for name, value in _PAUSED.items())
        names = self._names.setdefault(namespace, ObjectNames())
        imported = build_kafka_topic(
            Wanted(
                topic=topic,
                object_name=names.assign_name(topic, str(metadata["name"])),
                labels=_filter_own(_read_part(metadata, "labels")),
                annotations=_filter_own(annotations) | ({PAUSE_ANNOTATION: "true"} if is_paused else {}),
                partitions=_read_number(spec, "partitions"),
                replication_factor=_read_number(spec, "replicas"),
                config={
                    str(key): _convert_config_value(key, value) for key, value in _read_part(spec, "config").items()
                },
            ),
            target,
        )
        notes = ("Strimzi did not manage it, so it is paused",) if is_paused else ()
        return replace(imported, notes=(*notes, *imported.notes))


def _list_objects(document: Any) -> Iterable[Any]:
    """Return the objects of a document: itself, or its items if it is a list as written by `kubectl get --output
    yaml`."""
    if document is None:
        return ()
    is_list = isinstance(document, dict) and isinstance(document.get("items"), list)
    return document["items"] if is_list else (document,)


def _is_topic(found: Mapping[str, Any]) -> bool:
    is_theirs = found.get("kind") == "KafkaTopic" and str(found.get("apiVersion")).startswith(_GROUP)
    return is_theirs and bool(_read_part(found, "metadata").get("name"))


def _read_part(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = found.get(name)
    return part if isinstance(part, dict) else {}


def _read_cluster(metadata: Mapping[str, Any]) -> str:
    name = _read_part(metadata, "labels").get(_CLUSTER_LABEL)
    if not name:
        raise Inexpressible(f"it has no label {_CLUSTER_LABEL}: give --cluster")
    return str(name)


def _read_number(spec: Mapping[str, Any], field: str) -> int:
    value = spec.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Inexpressible(
            f"its {field} are left to the brokers: import the topic from the live cluster, which knows them"
        )
    return value


def _convert_config_value(key: Any, value: Any) -> str:
    """Return a value as Strimzi passes it to Kafka. Raises `Inexpressible`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list):
        return ",".join(_convert_config_value(key, each) for each in value)
    raise Inexpressible(f"its config has a {type(value).__name__} as {key}")


def _filter_own(said: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in said.items() if not str(name).startswith(_NOT_THEIRS)}
