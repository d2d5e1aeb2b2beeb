"""Files of topic rules, and changes to judge."""

from pathlib import Path
from typing import Any

import yaml

from controller_core.model.ids import BrokerId
from controller_core.model.topics.topic_changes import ChangeKind, TopicChange, TopicShape

THREE_REPLICAS = {"expression": "topic.replicationFactor >= 3", "message": "use at least 3 replicas"}


def write_rules(folder: Path, *rules: dict[str, Any]) -> Path:
    """Write a file with these rules."""
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"rules": list(rules)}))
    return path


def rule(expression: str, message: str = "no") -> dict[str, Any]:
    return {"expression": expression, "message": message}


def shape(name: str = "orders", partitions: int = 1, factor: int = 1, **configs: str) -> TopicShape:
    """Return a topic's shape. Configurations have `_` for each `.` of their keys."""
    named = {key.replace("_", "."): value for key, value in configs.items()}
    return TopicShape(name=name, partitions=partitions, replication_factor=factor, configs=named)


def creation(name: str = "orders", partitions: int = 1, factor: int = 1, **configs: str) -> TopicChange:
    topic = shape(name, partitions, factor, **configs)
    return TopicChange(kind=ChangeKind.CREATE_TOPICS, topic=topic, principal="User:alice")


def brokers(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))
