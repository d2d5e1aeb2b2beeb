"""A change of a topic as topic rules see it, and the rules' answer.

The rules themselves are in `controller_core.rules`. The controller asks them about clients' requests, and the operator
about KafkaTopics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from controller_core.model.ids import BrokerId


class ChangeKind(StrEnum):
    """The kind of a change: the name of Kafka's request, or of the Kubernetes object."""

    CREATE_TOPICS = "CreateTopics"
    CREATE_PARTITIONS = "CreatePartitions"
    ALTER_CONFIGS = "AlterConfigs"
    """AlterConfigs or IncrementalAlterConfigs."""
    KAFKA_TOPIC = "KafkaTopic"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShape:
    """A topic as it is, or as it would be after a change."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)
    """The configuration that is set for the topic, without defaults."""
    replicas: Sequence[Sequence[BrokerId]] = ()
    """The brokers that the change itself assigns to new partitions; empty if they are chosen for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """A change of one topic, and who asks for it."""

    kind: ChangeKind
    topic: TopicShape
    """The topic after the change."""
    old: TopicShape | None = None
    """The topic before the change; None if the change creates it."""
    principal: str = ""
    """The principal of a request; empty for a KafkaTopic."""
    namespace: str = ""
    """The namespace of a KafkaTopic; empty for a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """The refusal of a change."""

    message: str
    failed_rule: str | None = None
    """The rule that could not be evaluated. None: a rule forbids the change."""


class TopicRules(Protocol):
    """The rules for topics."""

    @property
    def count(self) -> int:
        """The number of rules."""
        ...

    def find_objection(self, change: TopicChange) -> Objection | None:
        """Return the objection of the first rule that the change breaks; None if it breaks none."""
        ...


class _NoRules:
    count: Final = 0

    def find_objection(self, change: TopicChange) -> Objection | None:
        """See `TopicRules`."""
        return None


NO_RULES: Final[TopicRules] = _NoRules()
