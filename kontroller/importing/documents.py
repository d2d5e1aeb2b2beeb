"""The objects of the output as a stream of YAML documents. All sources end here, live clusters and files.

A topic that no KafkaTopic can describe becomes a comment in the output, with the reason before it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from controller_core.model.topics.config_keys import find_declarable
from controller_core.model.topics.topic_names import explain_illegal
from controller_core.model.wording import shorten
from controller_operator.resources import KafkaTopic
from controller_operator.resources.common import API_VERSION, Resource
from controller_operator.resources.topic import count_replicas
from kontroller.yaml_output import InOneLine, dump_yaml

_NOTES_LIMIT: Final = 5


class Inexpressible(Exception):
    """No object of the output can describe the source. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result for one topic: its KafkaTopic, or the reasons for its absence and the raw values.

    KafkaRebalances of Strimzi have such results, too."""

    name: str
    source: str = "topic"
    """The word for the source, in remarks."""
    kind: str = "KafkaTopic"
    place: str = ""
    """The place in a file that declares it."""
    document: Mapping[str, Any] | None = None
    reasons: tuple[str, ...] = ()
    instead: Any = None
    notes: tuple[str, ...] = ()
    """Remarks for a person."""


class LeftOut(Counter[str]):
    """The number of objects left out, by reason."""

    def __str__(self) -> str:
        return ", ".join(f"{count} {reason}" for reason, count in self.most_common()) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster that the objects refer to, and their namespace; None: set when they are applied."""

    cluster: str
    cluster_namespace: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A topic, with the values for its KafkaTopic."""

    topic: str
    object_name: str
    partitions: int
    replication_factor: int | None = None
    replica_assignment: Sequence[Sequence[int]] | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    has_zookeeper: bool = True
    """True if the topic's cluster has ZooKeeper. Otherwise topics may have configurations of later Kafka releases."""


def build_kafka_topic(wanted: Wanted, target: Target) -> Imported:
    """Build the KafkaTopic without configurations that the operator would refuse. The topic keeps them.

    Raises `Inexpressible` if the schema does not accept the KafkaTopic."""
    replicas = count_replicas(wanted.replication_factor, wanted.replica_assignment)
    config, left_out = find_declarable(wanted.config, replicas, has_zookeeper=wanted.has_zookeeper)
    metadata = {
        "name": wanted.object_name,
        "namespace": target.namespace,
        "labels": dict(wanted.labels),
        "annotations": dict(wanted.annotations),
    }
    spec = {
        "clusterRef": refer_to(target),
        "topicName": None if wanted.topic == wanted.object_name else wanted.topic,
        "partitions": wanted.partitions,
        "replicationFactor": wanted.replication_factor,
        "replicaAssignment": [InOneLine(replicas) for replicas in wanted.replica_assignment or ()],
        "config": dict(sorted(config.items())),
    }
    illegal = explain_illegal(wanted.topic)
    if illegal is not None:
        raise Inexpressible(illegal)
    document = build_document(KafkaTopic, metadata, spec)
    return Imported(name=wanted.topic, document=document, notes=_make_notes(left_out))


def refer_to(target: Target) -> dict[str, str]:
    """Return the clusterRef of an object."""
    return _drop_empty({"name": target.cluster, "namespace": target.cluster_namespace})


def build_document(
    kind: type[Resource[Any, Any]], metadata: Mapping[str, Any], spec: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an object of a kind. Fields without a value are left out. Raises `Inexpressible`."""
    document = {
        "apiVersion": API_VERSION,
        "kind": kind.definition.kind,
        "metadata": _drop_empty(metadata),
        "spec": _drop_empty(spec),
    }
    _require_valid(kind, document)
    return document


def format_yaml(imported: Imported) -> str:
    """Return one document of the output, or a comment about the source."""
    if imported.document is not None:
        return "---\n" + dump_yaml(imported.document)
    instead = "" if imported.instead is None else dump_yaml(imported.instead)
    lines = f"{chr(10).join(_list_reasons(imported))}\n{instead}".splitlines()
    return "".join(f"# {line}\n" for line in lines)


def list_remarks(imported: Imported) -> Iterable[str]:
    """Yield the remarks about a source for standard error, line by line."""
    hint = "" if imported.instead is None else "; the output has it as a comment"
    for reason in _list_reasons(imported):
        yield f"{reason}{hint}"
    for note in imported.notes:
        yield f"{_name(imported)}: {note}"


def _list_reasons(imported: Imported) -> list[str]:
    return [f"{_name(imported)} has no {imported.kind}: {reason}" for reason in imported.reasons]


def _name(imported: Imported) -> str:
    return f"{imported.place and f'{imported.place}: '}{imported.source} {imported.name}"


def _make_notes(left_out: Mapping[str, str]) -> tuple[str, ...]:
    first = list(left_out.items())[:_NOTES_LIMIT]
    notes = [f"config leaves out {shorten(key, 250)}, which the topic keeps: {shorten(why, 500)}" for key, why in first]
    more = len(left_out) - len(first)
    return (*notes, *([f"config leaves out {more} more keys, which the topic keeps"] if more else []))


def _drop_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, {}, [])}


def _require_valid(kind: type[BaseModel], document: Mapping[str, Any]) -> None:
    try:
        kind.model_validate({**document, "metadata": {"namespace": "any", **document["metadata"]}})
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
        raise Inexpressible("; ".join(wrong)) from error
