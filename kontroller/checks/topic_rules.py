"""Tries topic rules on a topic, without a cluster."""

from collections.abc import Mapping
from pathlib import Path

from controller_core.model.topics.topic_changes import ChangeKind, TopicChange, TopicShape
from controller_core.rules.topic_rules import read_topic_rules


def try_rules(
    path: Path,
    name: str,
    partitions: int,
    factor: int,
    configs: Mapping[str, str],
    principal: str,
    namespace: str | None,
) -> str | None:
    """Return the objection to the creation of a topic; None if the rules allow it. Raises `InvalidRules`."""
    change = TopicChange(
        kind=ChangeKind.CREATE_TOPICS if namespace is None else ChangeKind.KAFKA_TOPIC,
        topic=TopicShape(name=name, partitions=partitions, replication_factor=factor, configs=configs),
        principal=principal if namespace is None else "",
        namespace=namespace or "",
    )
    objection = read_topic_rules(path).find_objection(change)
    return objection.message if objection is not None else None
