"""The budget of a namespace: the part of a KafkaCluster that its objects may use."""

from typing import Annotated

from pydantic import Field

from controller_operator.resources.schema import MAX_REPLICAS, Model, Observed, key_by

_WIDE = {"format": "int64"}


class ConfigBound(Model):
    """A key of a topic's configuration that a namespace may set, and its bounds."""

    key: str = Field(min_length=1, max_length=249)
    """The key, such as retention.ms."""

    min: Annotated[int, Field(json_schema_extra=_WIDE)] | None = None
    """Smallest number; default: any value."""

    max: Annotated[int, Field(json_schema_extra=_WIDE)] | None = None
    """Largest number; default: any value. -1, which is no limit for retention.ms and retention.bytes, exceeds each."""


class Budget(Model):
    """The largest use by a namespace. Only growth is refused: existing topics stay as they are."""

    max_topics: int | None = Field(default=None, ge=0)
    """Number of topics; default: no limit. With a topicPrefix all topics with it count, otherwise those of KafkaTopics."""

    max_partitions: int | None = Field(default=None, ge=0)
    """Number of partitions of these topics together; default: no limit."""

    min_replication_factor: int | None = Field(default=None, ge=1, le=MAX_REPLICAS)
    """Smallest number of replicas that a partition gets; default: 1."""

    max_replication_factor: int | None = Field(default=None, ge=1, le=MAX_REPLICAS)
    """Largest number of replicas that a partition gets; default: no limit."""

    max_moves: int | None = Field(default=None, ge=1)
    """Number of PartitionReassignments at once; default: no limit. Further ones wait."""

    configs: Annotated[tuple[ConfigBound, ...], Field(max_length=200, json_schema_extra=key_by("key"))] | None = None
    """The keys that a KafkaTopic may set; default: all. Other keys have the brokers' defaults."""


class NamespaceUse(Observed):
    """The use of a namespace that has a budget."""

    namespace: str
    """Name of the namespace."""

    topics: int
    """Topics that count."""

    max_topics: int | None = None
    """Its limit, if it has one."""

    partitions: int
    """Partitions of these topics."""

    max_partitions: int | None = None
    """Its limit, if it has one."""
