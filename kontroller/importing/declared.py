"""Topics as files of other tools declare them, checked and made into KafkaTopics.

Each source says what it found as `Declared`, with the values as they were written. This module gives the values their
meaning, checks them by the controller's own tables, and refuses topics that two objects declare. A topic with a fault is
refused, because a part of its declaration would be another topic."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controller_core.model.topics.config_keys import RESERVED_KEYS, find_objections
from controller_core.model.topics.topic_configs import is_known_key, suggest_key
from controller_core.model.topics.topic_names import INTERNAL_TOPICS, explain_illegal, normalize
from controller_core.model.wording import shorten
from controller_operator.resources.common import PAUSE_ANNOTATION, is_object_name
from controller_operator.resources.topic import count_replicas
from kontroller.importing.documents import (
    Imported,
    Inexpressible,
    LeftOut,
    Target,
    Wanted,
    build_kafka_topic,
)
from kontroller.importing.kept_metadata import select_annotations, select_labels
from kontroller.importing.object_names import NameTaken, ObjectNames
from kontroller.importing.values import Unreadable, normalize_config, normalize_number, read_count, read_text

_CONFLUENT: Final = "confluent."
TEMPLATE: Final = "{{"
_SHOWN: Final = 100
_CONFLICTS_LIMIT: Final = 5
NO_CLUSTER: Final = "the file does not say in which KafkaCluster: give --cluster"
NAMED_BY_TEMPLATE: Final = "its name is a template: render the file first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A topic in a file. Values are as they were written."""

    place: str
    """The file, and the line or address in it."""
    topic: str
    object_name: str | None = None
    """The name of the source object in Kubernetes."""
    namespace: str | None = None
    cluster: str | None = None
    cluster_namespace: str | None = None
    partitions: object = None
    replicas: object = None
    replica_assignment: object = None
    config: Mapping[str, object] = field(default_factory=dict)
    labels: Mapping[str, object] = field(default_factory=dict)
    annotations: Mapping[str, object] = field(default_factory=dict)
    pause_reason: str | None = None
    """The reason why the source's tool does not manage the topic now."""
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The user's own values. They go before those of the files; the defaults fill gaps."""

    cluster: str | None = None
    cluster_namespace: str | None = None
    namespace: str | None = None
    default_partitions: int | None = None
    default_replication_factor: int | None = None
    with_internal: bool = False

    def find_target(
        self, *, cluster: str | None, cluster_namespace: str | None = None, namespace: str | None
    ) -> Target:
        """Return the target of an object for which the file has these values. The cluster is empty without a name."""
        namespace = self.namespace or namespace
        cluster_namespace = self.cluster_namespace or (None if self.cluster else cluster_namespace)
        return Target(
            cluster=self.cluster or cluster or "",
            cluster_namespace=None if cluster_namespace == namespace else cluster_namespace,
            namespace=namespace,
        )


def import_declared(topics: Iterable[Declared], given: Given, left_out: LeftOut) -> Iterator[Imported]:
    """Yield the import of each topic in order. Topics that two objects declare are refused.

    An object that occurs twice without a difference is imported once."""
    chosen = list(_choose(topics, given, left_out))
    names: defaultdict[str | None, ObjectNames] = defaultdict(ObjectNames)
    for each, conflicts in zip(chosen, _find_conflicts(chosen, given), strict=True):
        yield _import_topic(each, conflicts, given, names)


def _choose(topics: Iterable[Declared], given: Given, left_out: LeftOut) -> Iterator[Declared]:
    seen: defaultdict[tuple[str, str | None, str | None], list[Declared]] = defaultdict(list)
    for each in topics:
        same = seen[each.topic, each.namespace, each.object_name]
        if each.topic in INTERNAL_TOPICS and not given.with_internal:
            left_out["internal to Kafka"] += 1
        elif any(replace(each, place=other.place) == other for other in same):
            left_out["repeated without a difference"] += 1
        else:
            same.append(each)
            yield each


def _find_conflicts(topics: Sequence[Declared], given: Given) -> Iterator[list[str]]:
    """Yield the contradictions of each topic to the others of its cluster.

    Objects without a namespace may come into any, so their cluster may be that of any namespace."""
    by_name: defaultdict[tuple[str, str], list[tuple[str | None, Declared]]] = defaultdict(list)
    placed = [(_find_target(each, given), each) for each in topics]
    for target, each in placed:
        namespace = target.cluster_namespace or target.namespace
        by_name[target.cluster, normalize(each.topic)].append((namespace, each))
    for target, each in placed:
        namespace = target.cluster_namespace or target.namespace
        others = [
            other
            for its_namespace, other in by_name[target.cluster, normalize(each.topic)]
            if other is not each and (its_namespace == namespace or None in (its_namespace, namespace))
        ]
        yield [
            f"it is also declared at {other.place}: keep one of them"
            if other.topic == each.topic
            else f"the metrics of {other.topic} ({other.place}) have the same names, so Kafka refuses one of the topics"
            for other in others[:_CONFLICTS_LIMIT]
        ]


def _find_target(declared: Declared, given: Given) -> Target:
    return given.find_target(
        cluster=declared.cluster, cluster_namespace=declared.cluster_namespace, namespace=declared.namespace
    )


def _import_topic(
    declared: Declared, conflicts: Sequence[str], given: Given, names: Mapping[str | None, ObjectNames]
) -> Imported:
    checks = _Checks(notes=list(declared.notes), faults=[*declared.faults, *conflicts])
    target = _find_target(declared, given)
    checks.check_names(declared.topic, target)
    assignment = checks.read_assignment(declared.replica_assignment)
    partitions = checks.read_count(
        "partitions", declared.partitions, given.default_partitions, option="--default-partitions"
    )
    replicas = None
    if assignment is None:
        replicas = checks.read_count(
            "replicas", declared.replicas, given.default_replication_factor, option="--default-replication-factor"
        )
    config = checks.read_config(declared.config, count_replicas(replicas, assignment) or sys.maxsize)
    labels = select_labels(declared.labels, checks.notes)
    annotations = select_annotations(declared.annotations, checks.notes)
    if declared.pause_reason is not None:
        annotations[PAUSE_ANNOTATION] = "true"
        checks.notes.append(f"{declared.pause_reason}, so it is paused")
    if partitions is None or checks.faults:
        return Imported(name=declared.topic, place=declared.place, reasons=tuple(checks.faults))
    try:
        wanted = Wanted(
            topic=declared.topic,
            object_name=names[target.namespace].assign_name(declared.topic, _choose_name(declared)),
            partitions=partitions,
            replication_factor=replicas,
            replica_assignment=assignment,
            config=config,
            labels=labels,
            annotations=annotations,
            has_zookeeper=False,
        )
        imported = build_kafka_topic(wanted, target)
    except (Inexpressible, NameTaken) as error:
        return Imported(name=declared.topic, place=declared.place, reasons=(str(error),))
    return replace(imported, place=declared.place, notes=(*checks.notes, *imported.notes))


def _choose_name(declared: Declared) -> str | None:
    name = declared.object_name
    return name if name is not None and is_object_name(name) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checks:
    """Reads the values of one topic, and collects remarks and faults."""

    notes: list[str]
    faults: list[str]

    def check_names(self, topic: str, target: Target) -> None:
        """Check the names of the topic and of its cluster."""
        illegal = explain_illegal(topic)
        if illegal is not None:
            self.faults.append(NAMED_BY_TEMPLATE if TEMPLATE in topic else illegal)
        if not target.cluster:
            self.faults.append(NO_CLUSTER)

    def read_count(self, field: str, value: object, default: int | None, *, option: str) -> int | None:
        """Return a count, or the default if the file leaves it to the brokers; None with a fault."""
        try:
            count = read_count(value)
        except Unreadable as error:
            self.faults.append(f"{field}: {error}")
            return None
        if count is None and default is None:
            self.faults.append(
                f"its {field} are left to the brokers: give {option}, or import the topic from the live cluster"
            )
        return default if count is None else count

    def read_assignment(self, value: object) -> list[list[int]] | None:
        """Return the brokers of each partition, if the file has them."""
        if value is None:
            return None
        try:
            return [[int(normalize_number(broker)) for broker in replicas] for replicas in value]  # type: ignore[attr-defined]
        except (TypeError, ValueError, Unreadable):
            self.faults.append("its assignment is no list of lists of broker ids")
            return None

    def read_config(self, declared: Mapping[str, object], replicas: int) -> dict[str, str]:
        """Return the configuration that a KafkaTopic can declare, in Kafka's texts."""
        config: dict[str, str] = {}
        for key, value in declared.items():
            why = _explain_left_out(key, value)
            if why is not None:
                self.notes.append(f"config leaves out {key}: {why}")
                continue
            if not is_known_key(key):
                suggestion = suggest_key(key)
                hint = "" if suggestion is None else f": {suggestion}?"
                self.faults.append(f"topics have no configuration {shorten(key, _SHOWN)}{hint}")
                continue
            try:
                config[key] = normalize_config(key, value)
            except Unreadable as error:
                self.faults.append(f"{key}: {error}")
                continue
            if isinstance(value, list) or read_text(value) != config[key]:
                self.notes.append(f"{key} {shorten(_show(value), _SHOWN)} becomes {config[key]!r}")
        self.faults.extend(find_objections(config, replicas, has_zookeeper=False))
        return config


def _explain_left_out(key: str, value: object) -> str | None:
    if value is None:
        return "it has no value"
    if key in RESERVED_KEYS:
        return "it belongs to moves of replicas, and would throttle them forever"
    return "only Confluent's brokers have it" if key.startswith(_CONFLUENT) else None


def _show(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else repr(str(value))
