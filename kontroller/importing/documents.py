"""KafkaTopics as YAML, one document after the other, so that ten thousand of them need no more memory than one.

What no KafkaTopic can say is not lost either: it is a comment in the output, with the reason before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from pydantic import ValidationError

from controller_core.model.topics.config_keys import find_declarable
from controller_core.model.topics.topic_names import explain_illegal
from controller_core.model.wording import shorten
from controller_operator.resources import KafkaTopic
from controller_operator.resources.common import API_VERSION
from controller_operator.resources.topic import count_replicas

_WIDTH: Final = 110
_NOTES_LIMIT: Final = 5


class Inexpressible(Exception):
    """No KafkaTopic can say it; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What becomes of one topic: its KafkaTopic, or why there can be none, and what was found instead."""

    topic: str
    document: Mapping[str, Any] | None = None
    reason: str | None = None
    instead: Any = None
    notes: tuple[str, ...] = ()
    """What a person should know about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster that the KafkaTopics refer to, and their namespace; None: whoever applies them says it."""

    cluster: str
    cluster_namespace: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A topic as its KafkaTopic is to say it."""

    topic: str
    object_name: str
    partitions: int
    replication_factor: int | None = None
    replica_assignment: Sequence[Sequence[int]] | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    has_zookeeper: bool = True
    """Whether its cluster has: else topics may have configuration that only later releases know."""


def kafka_topic(wanted: Wanted, target: Target) -> Imported:
    """The KafkaTopic, without the configuration that the operator would refuse: the topic keeps that as it is.

    Raises `Inexpressible` where the schema does not take it."""
    replicas = count_replicas(wanted.replication_factor, wanted.replica_assignment)
    config, left_out = find_declarable(wanted.config, replicas, has_zookeeper=wanted.has_zookeeper)
    metadata = {
        "name": wanted.object_name,
        "namespace": target.namespace,
        "labels": dict(wanted.labels),
        "annotations": dict(wanted.annotations),
    }
    spec = {
        "clusterRef": _without_nothing({"name": target.cluster, "namespace": target.cluster_namespace}),
        "topicName": None if wanted.topic == wanted.object_name else wanted.topic,
        "partitions": wanted.partitions,
        "replicationFactor": wanted.replication_factor,
        "replicaAssignment": [_InOneLine(replicas) for replicas in wanted.replica_assignment or ()],
        "config": dict(sorted(config.items())),
    }
    document = {
        "apiVersion": API_VERSION,
        "kind": "KafkaTopic",
        "metadata": _without_nothing(metadata),
        "spec": _without_nothing(spec),
    }
    _require_valid(wanted.topic, document)
    return Imported(topic=wanted.topic, document=document, notes=_left_out_notes(left_out))


def as_yaml(imported: Imported) -> str:
    """One document of the output, or a comment that says what there would be."""
    if imported.document is not None:
        return "---\n" + _dump(imported.document)
    told = f"{imported.reason}\n{_dump(imported.instead) if imported.instead is not None else ''}"
    lines = f"topic {imported.topic} is no KafkaTopic: {told}".splitlines()
    return "".join(f"# {line}\n" for line in lines)


def said(imported: Imported) -> Iterable[str]:
    """What is to be said about it beside the output, in lines."""
    if imported.document is None:
        yield f"topic {imported.topic} is no KafkaTopic: {imported.reason}; the output has a comment of it"
    for note in imported.notes:
        yield f"topic {imported.topic}: {note}"


def _left_out_notes(left_out: Mapping[str, str]) -> tuple[str, ...]:
    first = list(left_out.items())[:_NOTES_LIMIT]
    notes = [f"config leaves out {shorten(key, 250)}, which the topic keeps: {shorten(why, 500)}" for key, why in first]
    more = len(left_out) - len(first)
    return (*notes, *([f"config leaves out {more} more keys, which the topic keeps"] if more else []))


def _without_nothing(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, {}, [])}


def _require_valid(topic: str, document: Mapping[str, Any]) -> None:
    illegal = explain_illegal(topic)
    if illegal is not None:
        raise Inexpressible(illegal)
    try:
        KafkaTopic.model_validate({**document, "metadata": {"namespace": "any", **document["metadata"]}})
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
        raise Inexpressible("; ".join(wrong)) from error


class _InOneLine(list[Any]):
    """A list that is written in one line."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # the one in C where there is one
    """Writes a list that occurs twice twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    _InOneLine, lambda dumper, each: dumper.represent_sequence("tag:yaml.org,2002:seq", each, flow_style=True)
)


def _dump(value: Any) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True))
