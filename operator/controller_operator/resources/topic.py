"""KafkaTopic: a topic's partitions, replicas and configuration, and the treatment of changes made elsewhere."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from controller_operator.resources.approval import Approval, PlanHash, require_for_good
from controller_operator.resources.common import (
    CLUSTER,
    STANDING,
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
    number_column,
    text_column,
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
    """The conditions for taking over a topic that exists already."""

    IF_EQUAL = "IfEqual"
    ALWAYS = "Always"
    NEVER = "Never"


class UndeclaredConfigPolicy(StrEnum):
    """The treatment of configuration that somebody else set and the spec does not name."""

    KEEP = "Keep"
    REMOVE = "Remove"


class DriftPolicy(StrEnum):
    """The treatment of changes that were made elsewhere."""

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
    """Return a configuration value as Kafka knows it: text. Leave anything but a scalar for the model to refuse."""
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
"""A structural schema gives each value one type, or none. A value that the API server accepts although it is no scalar
(null, an empty list or object) is an `InvalidSpec`."""


_EITHER = "give either replicationFactor or replicaAssignment"
_PARTITIONS_SAID = "give partitions, or a replicaAssignment, which sets their number"
_ONE_ENTRY_EACH = "replicaAssignment has one entry for each of the partitions"


class TopicMoves(Model):
    """Settings for replica moves, which PartitionReassignments carry out that the topic owns."""

    throttle: ReassignmentThrottle | None = None
    """A throttle while they move; default: none. A running move gets a change at once. Until then, what somebody sets on
    its PartitionReassignment stays."""

    max_concurrent_partitions: int | None = Field(default=None, ge=1, le=MAX_STATUS_ENTRIES)
    """Maximum number of partitions that move at a time; default: all at once. A change is for moves that begin after
    it."""


def count_replicas(factor: int | None, assignment: Sequence[Sequence[int]] | None) -> int:
    """Return the number of replicas of each partition, from the factor or else from the assignment."""
    return factor or len((assignment or ((),))[0])


class KafkaTopicSpec(Spec):
    """The desired state of the topic."""

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
            require_for_good("a topic"),
        )
    )

    cluster_ref: OwnCluster
    """The cluster of the topic. Cannot change."""

    topic_name: Topic | None = None
    """Name of the topic; default: the object's own name. Cannot change."""

    partitions: int | None = Field(default=None, ge=1, le=100_000)
    """Number of partitions. It may grow (records with a key then go to other partitions). Optional with
    replicaAssignment."""

    replication_factor: int | None = Field(default=None, ge=1, le=MAX_REPLICAS)
    """Number of replicas of each partition; the operator chooses the brokers. Give either this or replicaAssignment."""

    replica_assignment: ReplicaAssignment | None = None
    """The brokers of each partition, the preferred leader first: [[1, 2, 3], [2, 3, 1]]. A broker that
    becomes the first one is elected as leader. Replicas never move to brokers in spec.brokersToRemove of the
    KafkaCluster. Give either this or replicationFactor."""

    reassignment: TopicMoves | None = None
    """Settings for moves of replicas. If the spec asks for other replicas during a move, its unfinished part is rolled
    back, and the next move begins from there."""

    config: dict[str, ConfigValue] | None = Field(default=None, max_length=200)
    """Topic configuration, such as retention.ms: 604800000. A key that is removed here returns to the default.
    min.insync.replicas cannot exceed the number of replicas. For throttled replicas use reassignment.throttle."""

    undeclared_config_policy: UndeclaredConfigPolicy = UndeclaredConfigPolicy.KEEP
    """Configuration that is set on the topic but not named in config: Keep leaves it and shows it in the status; Remove
    treats it as a difference from the spec. The lists of throttled replicas always stay."""

    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    """When this object is deleted: Retain leaves the topic and its data; Delete deletes both, unless another KafkaTopic
    claims the topic and so takes it over."""

    approval: Approval | None = None
    """Automatic (the default), or Required: a person approves each move of replicas, at the PartitionReassignment that
    this topic owns, and by approvedPlan the deletion of the topic and configuration that can delete data:
    unclean.leader.election.enable: true, also for a new topic, lower retention.ms or retention.bytes, another
    cleanup.policy, remote.log.delete.on.disable: true, or a return of these to the default. Required cannot be
    revoked."""

    approved_plan: PlanHash | None = None
    """The deletion or change of configuration that may be carried out: status.planHash. It is used once. The chart's
    approvalPolicy limits who may set it."""

    adoption_policy: AdoptionPolicy = AdoptionPolicy.IF_EQUAL
    """A topic that exists already: IfEqual takes it over only if it equals the spec; Always changes it to the spec;
    Never leaves it alone. A topic that a deleted KafkaTopic hands over is always taken."""

    drift_policy: DriftPolicy = DriftPolicy.ENFORCE
    """Changes that were made elsewhere: Enforce reverts them; Report shows them in the status; Ignore leaves them
    silently. With Report and Ignore, only changes of the spec are applied."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        """Apply the schema's rules to objects that were stored before the rules existed."""
        if (self.replication_factor is None) == (self.replica_assignment is None):
            raise ValueError(_EITHER)
        if self.partitions is None and self.replica_assignment is None:
            raise ValueError(_PARTITIONS_SAID)
        if self.replica_assignment is not None and self.partitions not in (None, len(self.replica_assignment)):
            raise ValueError(_ONE_ENTRY_EACH)
        return self

    @property
    def partition_count(self) -> int:
        """The number of partitions, from the field that gives it."""
        return self.partitions or len(self.replica_assignment or ())

    @property
    def replica_count(self) -> int:
        """The number of replicas of each partition, from the field that gives it."""
        return count_replicas(self.replication_factor, self.replica_assignment)


class Difference(Observed):
    """One difference between the topic and the spec."""

    key: str
    """The field that differs: partitions, replicationFactor, replicaAssignment[N], or config.KEY."""

    desired: str | None = None
    """The value of the spec; missing if the spec has none."""

    live: str | None = None
    """The value in the cluster; missing if the cluster has none."""


class UndeclaredKey(Observed):
    """A key of the topic's configuration that the spec does not name."""

    key: str
    """The key, up to 250 characters."""

    value: str
    """Its value, up to 250 characters."""


class UndeclaredConfig(Observed):
    """The configuration that somebody else set on the topic. Its lists of throttled replicas do not count."""

    total: int
    """Number of keys."""

    keys: Annotated[tuple[UndeclaredKey, ...], Field(max_length=MAX_UNDECLARED_KEYS)] = ()
    """The first 50 keys."""


class PlanAction(StrEnum):
    """A step towards the spec."""

    CREATE_TOPIC = "CreateTopic"
    ADD_PARTITIONS = "AddPartitions"
    SET_CONFIG = "SetConfig"
    UNSET_CONFIG = "UnsetConfig"
    REASSIGN_REPLICAS = "ReassignReplicas"
    DELETE_TOPIC = "DeleteTopic"


class PlannedChange(Observed):
    """One step that the next apply would take."""

    action: PlanAction
    """The kind of step."""

    key: str
    """The field, as in the drift list; for CreateTopic the topic's name."""

    live: str | None = None
    """The value in the cluster."""

    desired: str | None = None
    """The value afterwards; for CreateTopic partitions and replicas."""


class Plan(Observed):
    """The changes of the next apply."""

    total: int
    """Number of steps."""

    changes: Annotated[tuple[PlannedChange, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """The steps; the first 500."""


class TopicOwner(Observed):
    """The older object that owns the topic."""

    name: str
    """Its name, as namespace/name."""

    topic_id: str | None = None
    """Id of its topic, if it has one."""


class TopicReassignment(Observed):
    """A PartitionReassignment that moves replicas of the topic."""

    name: str
    """Its name."""

    bytes_per_second: int | None = None
    """Throttle that it got from this object, in bytes per second; absent: none."""


class KafkaTopicStatus(Status):
    """The observed state of the topic."""

    topic_name: str | None = None
    """Name of the topic in the cluster."""

    topic_id: str | None = None
    """Id of the topic. It changes when the topic is deleted and created again."""

    owner: TopicOwner | None = None
    """The older object that owns the topic, if this one does not. When it is deleted, this object takes over the topic
    with its data."""

    replication_factor: int | None = None
    """Replicas of each partition; the smallest number if they differ."""

    config_keys: Annotated[tuple[str, ...], Field(max_length=200)] = ()
    """The configuration keys that this object has set, and resets when the spec drops them."""

    applied: dict[str, str] | None = None
    """The values of the spec that were applied, by their keys as in the drift list; long values by their hash. A topic
    that differs from these was changed elsewhere. A key is missing while its change is in progress."""

    undeclared_config: UndeclaredConfig | None = None
    """Configuration that is set on the topic but not named in the spec."""

    counts: PartitionCounts | None = None
    """Counts of partitions."""

    partitions: Annotated[tuple[PartitionStatus, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """Each partition; at most 500, those that need attention first."""

    reassignment: TopicReassignment | None = None
    """The PartitionReassignment that moves replicas, until it ends."""

    plan_hash: str | None = None
    """The hash to approve, while a deletion or a change of configuration waits for approval."""

    used_plan: str | None = None
    """The last approved change of configuration that has ended. Its approval cannot be used again."""

    drift: Annotated[tuple[Difference, ...], Field(max_length=MAX_STATUS_ENTRIES)] = ()
    """Changes made elsewhere; the first 500."""

    corrections: DriftCorrections | None = None
    """Corrections of changes made elsewhere. After three in a row the operator waits longer before each one, up to five
    minutes."""

    plan: Plan | None = None
    """The next changes, if there are any."""

    @property
    def is_requested(self) -> bool:
        """True if the topic was requested, or is about to be requested, and was not seen since."""
        return self.topic_id is not None and self.counts is None


class KafkaTopic(Resource[KafkaTopicSpec, KafkaTopicStatus]):
    """A topic of a Kafka cluster."""

    definition: ClassVar = Definition(
        kind="KafkaTopic",
        plural="kafkatopics",
        short_name="kt",
        columns=(
            CLUSTER,
            text_column("Topic", "topicName", "Name of the topic in the cluster."),
            number_column("Partitions", "counts.partitions", "Number of partitions in the cluster."),
            number_column("RF", "replicationFactor", "Replication factor."),
            number_column("Online", "counts.online", "Partitions with a leader."),
            number_column(
                "UnderReplicated", "counts.underReplicated", "Partitions with replicas that are not in sync."
            ),
            condition_column(ConditionType.DRIFTED, name="Drift"),
            number_column(
                "Undeclared", "undeclaredConfig.total", "Configuration keys that the spec does not name.", wide=True
            ),
            *STANDING,
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
