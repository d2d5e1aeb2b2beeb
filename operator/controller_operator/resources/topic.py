"""KafkaTopic: a topic's partitions, replicas and configuration, and what to do about changes made elsewhere."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from controller_operator.resources.common import (
    AGE,
    CLUSTER,
    MESSAGE,
    READY,
    REASON,
    Column,
    Definition,
    DeletionPolicy,
    DriftCorrections,
    OwnCluster,
    PartitionCounts,
    PartitionStatus,
    Resource,
    Spec,
    Status,
    condition_column,
)
from controller_operator.resources.conditions import ConditionType
from controller_operator.resources.reassignment import ReassignmentThrottle
from controller_operator.resources.schema import (
    MAX_PARTITIONS,
    MAX_REPLICAS,
    MAX_STATUS_ENTRIES,
    MAX_TOPIC_NAME,
    Model,
    Observed,
    Replicas,
    Rule,
    Topic,
    rules,
)

_PARTITIONS: Final = (
    "(has({0}.partitions) ? {0}.partitions : has({0}.replicaAssignment) ? size({0}.replicaAssignment) : 0)"
)
_MAX_CONFIG_VALUE: Final = 32_768
MAX_UNDECLARED_KEYS: Final = 50
MAX_SHOWN_TEXT: Final = 250
_TOPIC_NAME: Final = "(has({0}.spec.topicName) ? {0}.spec.topicName : {0}.metadata.name)"


class AdoptionPolicy(StrEnum):
    """Whether a topic that exists already is taken over."""

    IF_EQUAL = "IfEqual"
    ALWAYS = "Always"
    NEVER = "Never"


class UndeclaredConfigPolicy(StrEnum):
    """What is done about configuration that somebody else set and the spec does not name."""

    KEEP = "Keep"
    REMOVE = "Remove"


class DriftPolicy(StrEnum):
    """What is done about changes that were made elsewhere."""

    ENFORCE = "Enforce"
    REPORT = "Report"
    IGNORE = "Ignore"


ReplicaAssignment = Annotated[
    tuple[Replicas, ...],
    Field(
        min_length=1,
        max_length=MAX_PARTITIONS,
        json_schema_extra=rules(
            Rule(
                "self.all(replicas, size(replicas) == size(self[0]))",
                "every partition of a topic has the same number of replicas",
            )
        ),
    ),
]


def _config_text(value: object) -> object:
    """A value of the configuration as Kafka knows it: text. Anything but a scalar is left for the model to refuse."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


ConfigValue = Annotated[
    str,
    BeforeValidator(_config_text),
    Field(max_length=_MAX_CONFIG_VALUE),
    WithJsonSchema(
        {
            "x-kubernetes-preserve-unknown-fields": True,
            "maxLength": _MAX_CONFIG_VALUE,
            "maxItems": 0,
            "maxProperties": 0,
        }
    ),
]
"""A structural schema has one type for each value, or none. What the API server then lets pass and is no scalar (null, an
empty list or object) is an `InvalidSpec`."""


_EITHER = "give either replicationFactor or replicaAssignment"
_PARTITIONS_SAID = "give partitions: only a replicaAssignment says their number by itself"
_ONE_ENTRY_EACH = "replicaAssignment has one entry for each of the partitions"


class TopicMoves(Model):
    """How replicas move. What is said here holds for moves that have not begun; one that runs is changed in the
    PartitionReassignment that the topic owns."""

    throttle: ReassignmentThrottle | None = None
    """A limit to what the moves take, set before they begin and removed with their end; none when left out."""

    max_concurrent_partitions: int | None = Field(default=None, ge=1, le=MAX_STATUS_ENTRIES)
    """How many partitions move at a time: the next ones begin when these are done. All at once when left out."""


def count_replicas(factor: int | None, assignment: Sequence[Sequence[int]] | None) -> int:
    """Return the number of replicas of each partition, from whichever of both says it."""
    return factor or len((assignment or ((),))[0])


class KafkaTopicSpec(Spec):
    """The topic as it should be."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule("has(self.replicationFactor) != has(self.replicaAssignment)", _EITHER),
            Rule("has(self.partitions) || has(self.replicaAssignment)", _PARTITIONS_SAID, ".partitions"),
            Rule(
                "!has(self.partitions) || !has(self.replicaAssignment)"
                " || size(self.replicaAssignment) == self.partitions",
                _ONE_ENTRY_EACH,
                ".replicaAssignment",
            ),
            Rule(
                f"{_PARTITIONS.format('self')} >= {_PARTITIONS.format('oldSelf')}",
                "the number of partitions cannot decrease: Kafka cannot take partitions away from a topic",
                ".partitions",
            ),
        )
    )

    cluster_ref: OwnCluster
    """The cluster that has the topic. Cannot change."""

    topic_name: Topic | None = None
    """Name of the topic; the object's own name when left out. Cannot change."""

    partitions: int | None = Field(default=None, ge=1, le=100_000)
    """Number of partitions. It may grow; records with a key then go to other partitions than before. May be left out
    where replicaAssignment says it."""

    replication_factor: int | None = Field(default=None, ge=1, le=MAX_REPLICAS)
    """Replicas of each partition; the cluster chooses the brokers. Either this or replicaAssignment."""

    replica_assignment: ReplicaAssignment | None = None
    """The brokers of each partition, in the order of the partitions, each list with the preferred leader first:
    [[1, 2, 3], [2, 3, 1]]. If only the order of a list changes, its first broker is elected as leader. Nothing moves
    to brokers in spec.brokersToRemove of the KafkaCluster. Either this or replicationFactor."""

    reassignment: TopicMoves | None = None
    """How replicas move where replicationFactor or replicaAssignment asks for that. If the spec asks for other replicas
    while a move runs, the move is cancelled: what it has not finished goes back, and the next move begins from there."""

    config: dict[str, ConfigValue] | None = Field(default=None, max_length=200)
    """Topic configuration that differs from the brokers' defaults, such as retention.ms: 604800000. Values are strings,
    numbers or booleans. A key that is taken away here goes back to the default. min.insync.replicas may not be above the
    number of replicas. The lists of throttled replicas may not be named: use reassignment.throttle."""

    undeclared_config_policy: UndeclaredConfigPolicy = UndeclaredConfigPolicy.KEEP
    """What becomes of configuration that is set on the topic and that config does not name. Keep leaves it and shows it
    in the status; Remove takes it for a difference from the spec, which goes back to the default as adoptionPolicy and
    driftPolicy say. The lists of throttled replicas always stay, because moves of replicas use them."""

    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    """What becomes of the topic when this object is deleted. Retain leaves it and its data; Delete deletes both. If another
    KafkaTopic claims the topic, it stays with its data in any case, and that one takes it over."""

    adoption_policy: AdoptionPolicy = AdoptionPolicy.IF_EQUAL
    """Whether a topic that exists already is taken over. IfEqual takes it only when it is as the spec says; Always
    takes it and changes it to the spec; Never leaves it alone. It does not matter for a topic that a deleted KafkaTopic
    hands over."""

    drift_policy: DriftPolicy = DriftPolicy.ENFORCE
    """What is done when the topic was changed elsewhere. Enforce puts it back; Report says so in the status and leaves
    it; Ignore does neither. With these two only what is changed in the spec is changed in the topic."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        """The rules of the schema, for an object that was stored before there were those rules."""
        if (self.replication_factor is None) == (self.replica_assignment is None):
            raise ValueError(_EITHER)
        if self.partitions is None and self.replica_assignment is None:
            raise ValueError(_PARTITIONS_SAID)
        if self.replica_assignment is not None and self.partitions not in (None, len(self.replica_assignment)):
            raise ValueError(_ONE_ENTRY_EACH)
        return self

    @property
    def partition_count(self) -> int:
        """The number of partitions, from whichever field says it."""
        return self.partitions or len(self.replica_assignment or ())

    @property
    def replica_count(self) -> int:
        """The number of replicas of each partition, from whichever field says it."""
        return count_replicas(self.replication_factor, self.replica_assignment)


class Difference(Observed):
    """One thing about the topic that is not as the spec says."""

    key: str
    """What differs: partitions, replicationFactor, replicaAssignment[N], or config.KEY."""

    desired: str | None = None
    """The value of the spec; missing where the spec says nothing."""

    live: str | None = None
    """The value in the cluster; missing where it has none."""


class UndeclaredKey(Observed):
    """A key of the topic's configuration that the spec does not name."""

    key: str
    """The key; at most 250 characters of it."""

    value: str
    """Its value in the cluster; at most 250 characters of it."""


class UndeclaredConfig(Observed):
    """The configuration that somebody else set on the topic. Its lists of throttled replicas do not count."""

    total: int
    """How many keys there are, however long the list is."""

    keys: Annotated[tuple[UndeclaredKey, ...], Field(max_length=MAX_UNDECLARED_KEYS)] = ()
    """The keys; the first 50 by name."""


class PlanAction(StrEnum):
    """A step towards the spec."""

    CREATE_TOPIC = "CreateTopic"
    ADD_PARTITIONS = "AddPartitions"
    SET_CONFIG = "SetConfig"
    UNSET_CONFIG = "UnsetConfig"
    REASSIGN_REPLICAS = "ReassignReplicas"


class PlannedChange(Observed):
    """One step that the next apply would take."""

    action: PlanAction
    """What would be done."""

    key: str
    """What it would be done to, as in the drift list; of CreateTopic the topic's name."""

    live: str | None = None
    """The value in the cluster now."""

    desired: str | None = None
    """The value afterwards; of CreateTopic how many partitions with how many replicas there would be."""


class Plan(Observed):
    """What the next apply would change."""

    total: int
    """Steps in all, however long the list is."""

    changes: Annotated[tuple[PlannedChange, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """The steps; the first 500."""


class TopicOwner(Observed):
    """The older object that has the topic."""

    name: str
    """Its name, as namespace/name."""

    topic_id: str | None = None
    """The id of its topic; missing as long as it has none."""


class KafkaTopicStatus(Status):
    """The topic as it is."""

    topic_name: str | None = None
    """Name of the topic in the cluster."""

    topic_id: str | None = None
    """The id that the cluster gave the topic: another one means that it was deleted and created again."""

    owner: TopicOwner | None = None
    """The older object that has the topic; this one takes the topic over with its data when that one is deleted. Missing
    where this object has the topic."""

    replication_factor: int | None = None
    """Replicas of each partition; the smallest number where they differ."""

    config_keys: Annotated[tuple[str, ...], Field(max_length=200)] = ()
    """The keys of the configuration that this object has set: those that it takes back when the spec drops them."""

    applied: dict[str, str] | None = None
    """The values of the spec that the topic has been given, by their keys as in the drift list; long ones by their hash.
    What differs in a key that still has this value was changed elsewhere, and in any other by the spec. The key of a
    change that has begun is missing until the change is done."""

    undeclared_config: UndeclaredConfig | None = None
    """The configuration that is set on the topic and that the spec does not name; missing while it is not known."""

    counts: PartitionCounts | None = None
    """Partitions, and how many need attention."""

    partitions: Annotated[tuple[PartitionStatus, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """Each partition's replicas, in-sync replicas and leader; at most 500, those that need attention first."""

    drift: Annotated[tuple[Difference, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """What was changed elsewhere; the first 500."""

    corrections: DriftCorrections | None = None
    """How often the topic was put right after changes made elsewhere: after three times in a row it waits ever longer, up
    to five minutes; missing until the first time."""

    plan: Plan | None = None
    """What the next apply would change; missing when that is nothing."""


class KafkaTopic(Resource[KafkaTopicSpec, KafkaTopicStatus]):
    """A topic of a Kafka cluster."""

    definition: ClassVar = Definition(
        kind="KafkaTopic",
        plural="kafkatopics",
        short_name="kt",
        columns=(
            CLUSTER,
            Column(name="Topic", json_path=".status.topicName", description="Name in the cluster."),
            Column(
                name="Partitions",
                json_path=".status.counts.partitions",
                type="integer",
                description="Partitions in the cluster.",
            ),
            Column(name="RF", json_path=".status.replicationFactor", type="integer", description="Replication factor."),
            Column(
                name="Online",
                json_path=".status.counts.online",
                type="integer",
                description="Partitions with a leader.",
            ),
            Column(
                name="UnderReplicated",
                json_path=".status.counts.underReplicated",
                type="integer",
                description="Partitions with replicas that are not in sync.",
            ),
            condition_column(ConditionType.DRIFTED, name="Drift"),
            Column(
                name="Undeclared",
                json_path=".status.undeclaredConfig.total",
                type="integer",
                description="Configuration keys that the spec does not name.",
                wide=True,
            ),
            READY,
            REASON,
            MESSAGE,
            AGE,
        ),
        rules=(
            Rule(
                f"{_TOPIC_NAME.format('self')} == {_TOPIC_NAME.format('oldSelf')}",
                "topicName cannot change: Kafka cannot rename a topic",
                ".spec.topicName",
            ),
            Rule(
                f"has(self.spec.topicName) || size(self.metadata.name) <= {MAX_TOPIC_NAME}",
                f"a topic name has at most {MAX_TOPIC_NAME} characters: give a shorter topicName",
                ".spec.topicName",
            ),
        ),
    )

    kind: str = "KafkaTopic"
    status: KafkaTopicStatus = Field(default_factory=KafkaTopicStatus)

    @property
    def topic_name(self) -> str:
        """Name of the topic in the cluster."""
        return self.spec.topic_name or self.metadata.name
