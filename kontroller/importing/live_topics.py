"""KafkaTopics for the topics of a live cluster, read from ZooKeeper in parts or from brokers at once.

A moving partition counts as being at its target, as it does for the operator."""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from controller_core.model.ids import TopicName
from controller_core.model.metadata import TopicAssignment
from controller_core.model.snapshot import Snapshot
from controller_core.model.topics.topic_names import INTERNAL_TOPICS
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkNode, ZkSession
from kontroller.importing.documents import Imported, Inexpressible, LeftOut, Target, Wanted, build_kafka_topic
from kontroller.importing.object_names import NameTaken, ObjectNames

_PART: Final = 500
"""Topics that are read together."""
_UNTOLD: Final = "the brokers do not reveal its configuration: allow your user DescribeConfigs on it"


class NoTopics(Exception):
    """ZooKeeper has no list of topics at that address: there never was a Kafka cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The selection of topics, and the form of their import."""

    managed: Collection[str] = frozenset()
    """Topics that have a KafkaTopic."""
    with_internal: bool = False
    pins_replicas: bool = False
    """True to write the brokers of each partition instead of their number."""


async def import_topics(
    session: ZkSession, choice: Choice, target: Target, names: ObjectNames, left_out: LeftOut
) -> AsyncIterator[Imported]:
    """Yield each selected topic of the cluster by name, and count the others. Raises `NoTopics` and `ZkError`."""
    listed, deleting = await session.children_many([paths.TOPICS, paths.DELETE_TOPICS])
    if listed is None:
        raise NoTopics(f"ZooKeeper has no {paths.TOPICS} there: check that the address ends with the brokers' chroot")
    chosen = _choose(map(TopicName, listed), choice, frozenset(deleting or ()), left_out)
    for begin in range(0, len(chosen), _PART):
        part = chosen[begin : begin + _PART]
        assignments = await session.read_many([paths.topic(name) for name in part])
        configs = await session.read_many([paths.topic_config(name) for name in part])
        for name, assignment, config in zip(part, assignments, configs, strict=True):
            if assignment is not None:  # otherwise it has just been deleted
                yield _import_topic(name, assignment, config, choice, target, names)


def import_seen_topics(
    view: Snapshot, choice: Choice, target: Target, names: ObjectNames, left_out: LeftOut
) -> Iterator[Imported]:
    """Yield each selected topic of a cluster without ZooKeeper, as its brokers report it."""
    for name in _choose(view.topics, choice, view.deleting, left_out):
        topic = view.topics[name]
        config = topic.config if topic.is_config_known else None
        try:
            yield _make_document(name, topic.assignment, config, choice, target, names, has_zookeeper=False)
        except (Inexpressible, NameTaken) as error:
            yield Imported(name=name, reasons=(str(error),), instead=_describe_found(topic.assignment, topic.config))


def _choose(
    topics: Iterable[TopicName], choice: Choice, deleting: Collection[str], left_out: LeftOut
) -> list[TopicName]:
    chosen = []
    for topic in sorted(topics):
        if topic in INTERNAL_TOPICS and not choice.with_internal:
            left_out["internal to Kafka"] += 1
        elif topic in choice.managed:
            left_out["that have a KafkaTopic"] += 1
        elif topic in deleting:
            left_out["being deleted"] += 1
        else:
            chosen.append(topic)
    return chosen


def _import_topic(
    topic: TopicName, node: ZkNode, config: ZkNode | None, choice: Choice, target: Target, names: ObjectNames
) -> Imported:
    found: Any = {
        "assignment": node.data.decode(errors="replace"),
        "config": config.data.decode(errors="replace") if config else None,
    }
    try:
        assignment = codecs.decode_whole_topic(topic, node.data)
        overrides = codecs.decode_config(config.data, paths.topic_config(topic)) if config else {}
        found = _describe_found(assignment, overrides)
        return _make_document(topic, assignment, overrides, choice, target, names)
    except (MalformedZnode, Inexpressible, NameTaken) as error:
        return Imported(name=topic, reasons=(str(error),), instead=found)


def _describe_found(assignment: TopicAssignment, config: Mapping[str, str]) -> Any:
    """Return a topic as a comment shows it."""
    replicas = {number: list(each.target) for number, each in sorted(assignment.partitions.items())}
    return {"replicas": replicas, "config": dict(config)}


def _make_document(
    topic: TopicName,
    assignment: TopicAssignment,
    config: Mapping[str, str] | None,
    choice: Choice,
    target: Target,
    names: ObjectNames,
    *,
    has_zookeeper: bool = True,
) -> Imported:
    """Build the KafkaTopic, with remarks for a person. Raises `Inexpressible` and `NameTaken`."""
    if config is None:
        raise Inexpressible(_UNTOLD)
    replicas = _make_replica_fields(assignment, choice)
    wanted = Wanted(
        topic=topic,
        object_name=names.assign_name(topic),
        partitions=len(assignment.partitions),
        config=config,
        has_zookeeper=has_zookeeper,
        **replicas,
    )
    imported = build_kafka_topic(wanted, target)
    return replace(imported, notes=(*_make_notes(assignment), *imported.notes))


def _make_replica_fields(assignment: TopicAssignment, choice: Choice) -> dict[str, Any]:
    """Return the fields for the replicas. Raises `Inexpressible`."""
    numbers = sorted(assignment.partitions)
    if numbers != list(range(len(numbers))):
        raise Inexpressible("its partitions are not numbered from 0 without a gap")
    targets = [assignment.partitions[number].target for number in numbers]
    factors = sorted({len(target) for target in targets})
    if len(factors) != 1:
        several = ", ".join(map(str, factors)) or "no"
        raise Inexpressible(f"its partitions have {several} replicas, and a KafkaTopic has one replication factor")
    if choice.pins_replicas:
        return {"replica_assignment": [list(target) for target in targets]}
    return {"replication_factor": factors[0]}


def _make_notes(assignment: TopicAssignment) -> tuple[str, ...]:
    moving = sum(each.is_being_reassigned for each in assignment.partitions.values())
    return (f"{moving} partitions are moving: they count as being at their targets",) if moving else ()
