"""Conditions of a resource: what its `status.conditions` can say, and the closed set of reasons that they give.

They follow the Kubernetes API conventions and kstatus, so that `kubectl wait`, Flux and Argo CD read them right:
`Ready` is there from first sight on, and `Reconciling` and `Stalled` are there only while they are true. What runs once
ends with `Complete` or `Failed`, as a Job does: one of them, for good. `Degraded` says how a Kafka cluster is doing, and
leaves `Ready` alone: no spec asks for brokers.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from controller_operator.resources.schema import Observed, Timestamp, keyed_by


class ConditionType(StrEnum):
    """What a condition is about."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    PAUSED = "Paused"
    DRIFTED = "Drifted"
    CONFLICT = "Conflict"
    DEGRADED = "Degraded"
    COMPLETE = "Complete"
    FAILED = "Failed"


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a condition is as it is: one word for programs, with its meaning for people."""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> "Reason":
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member

    RECONCILED = "Reconciled", "The cluster is as the spec says."
    PROGRESSING = "Progressing", "Work towards the spec has begun and goes on by itself."
    PAUSED = "Paused", "The annotation kontroller.dev/pause stops all work on this object."
    COMPLETED = "Completed", "All that was asked for is done."
    SCHEDULED = "Scheduled", "The next run is due at status.nextRunTime."
    SUSPENDED = "Suspended", "spec.suspend says that nothing new is to begin."
    AWAITING_APPROVAL = (
        "AwaitingApproval",
        "spec.approval is Required, and spec.approvedPlan is not the plan of the moment.",
    )
    OUTSIDE_WINDOW = (
        "OutsideWindow",
        "No window of spec.schedule is open, so nothing more begins before status.nextWindowTime.",
    )
    INVALID_SCHEDULE = "InvalidSchedule", "spec.schedule or a time zone is none, or names a time that never comes."
    CANCELLED = "Cancelled", "The work was stopped before its end and what had begun was rolled back."
    SUPERSEDED = (
        "Superseded",
        "Other moves have taken the place of this one before it was seen how it ended: see the status of each partition.",
    )
    PARTITIONS_FAILED = "PartitionsFailed", "Some partitions could not be dealt with: see the status of each."

    CLUSTER_NOT_FOUND = "ClusterNotFound", "There is no KafkaCluster that spec.clusterRef names."
    NAMESPACE_NOT_ALLOWED = (
        "NamespaceNotAllowed",
        "The spec.allowedNamespaces of the KafkaCluster, or of an older one for the same Kafka cluster, does not let"
        " this namespace use it.",
    )
    TOPIC_PREFIX_REQUIRED = (
        "TopicPrefixRequired",
        "The KafkaCluster lets this namespace only have topics whose names begin with a prefix, and nothing that is about"
        " other topics or the whole cluster.",
    )
    ZOOKEEPER_UNAVAILABLE = "ZooKeeperUnavailable", "ZooKeeper does not answer; retried."
    CHROOT_NOT_FOUND = (
        "ChrootNotFound",
        "ZooKeeper has no such chroot as spec.zookeeper.connect ends with: correct it, or start the cluster's brokers.",
    )
    NOT_SUPPORTED = (
        "NotSupported",
        "The cluster, as the KafkaCluster says it is reached, does not offer what is asked for.",
    )
    BROKERS_UNAVAILABLE = "BrokersUnavailable", "No broker that is needed answers; retried."
    NOT_ADMITTED = (
        "NotAdmitted",
        "The brokers do not take the operator for whom it says it is, are not whom they should be, or do not tell it what"
        " it has to know; retried.",
    )
    NO_CONTROLLER = "NoController", "No controller holds the cluster, so nothing acts on requests; retried."
    CLUSTER_NOT_IDENTIFIED = (
        "ClusterNotIdentified",
        "The Kafka cluster has no id yet by which it is told from others: its first broker writes /cluster/id; retried.",
    )
    CLUSTER_CHANGED = (
        "ClusterChanged",
        "Another Kafka cluster answers than the one that the object was carried out in (status.clusterId). Nothing is"
        " created, changed or deleted in it until a person accepts it.",
    )
    BROKERS_UNSUPPORTED = (
        "BrokersUnsupported",
        "Some brokers are of a release or a mode of Kafka that the controller cannot lead; it goes on without them.",
    )
    PARTITIONS_OFFLINE = "PartitionsOffline", "Some partitions have no leader."
    BROKERS_MISSING = (
        "BrokersMissing",
        "Some brokers are not registered although replicas are assigned to them, or have gone in the last ten minutes.",
    )
    PARTITIONS_UNDER_REPLICATED = "PartitionsUnderReplicated", "Some partitions have replicas that are not in sync."
    LOG_DIRECTORY_FAILED = "LogDirectoryFailed", "A log directory of a broker has failed: see the broker's log."
    COPY_STALLED = "CopyStalled", "Nothing was copied for five minutes to a broker that is to get a replica."
    COPY_FALLS_BEHIND = (
        "CopyFallsBehind",
        "Replicas are copied no faster than producers write, so the move does not end: raise its limit, if it has one.",
    )
    DISK_NEARLY_FULL = (
        "DiskNearlyFull",
        "A disk with a log directory is fuller than spec.diskNearlyFullPercent allows. A broker whose disk is full stops.",
    )
    HEALTHY = "Healthy", "No broker is missing, every partition has a leader, and all replicas are in sync."
    OTHER_CLUSTER_DECIDES = (
        "OtherClusterDecides",
        "Another KafkaCluster is for the same Kafka cluster, and its spec.allowedNamespaces also holds for this one.",
    )
    WAITING_FOR_DEPENDENTS = (
        "WaitingForDependents",
        "The KafkaCluster is being deleted, and objects that refer to it are still there.",
    )

    RESOURCE_CONFLICT = "ResourceConflict", "An older resource claims the same topic, partition or feature; it wins."
    NOT_ADOPTED = "NotAdopted", "The topic exists already and spec.adoptionPolicy does not take it over as it is."
    DRIFTED = "Drifted", "The topic was changed elsewhere, and spec.driftPolicy does not put it right."
    DRIFT_CONTESTED = (
        "DriftContested",
        "It is changed elsewhere each time that it is put right, so that is done with growing pauses; retried.",
    )
    IN_SYNC = "InSync", "The topic is as the spec says, or driftPolicy is Ignore."
    INVALID_SPEC = "InvalidSpec", "The spec has a field or a value that this version of the operator does not know."
    INVALID_CONFIG = (
        "InvalidConfig",
        "A topic configuration has an unknown key, an impossible value, a key that belongs to moves of replicas, or keys"
        " that contradict each other or the number of replicas.",
    )
    UNKNOWN_TOPIC = "UnknownTopic", "The cluster has no such topic."
    UNKNOWN_PARTITION = "UnknownPartition", "The topic has no such partition."
    UNKNOWN_BROKER = "UnknownBroker", "A replica is put on a broker that is not registered."
    BROKER_TO_BE_REMOVED = (
        "BrokerToBeRemoved",
        "The spec puts replicas on a broker that spec.brokersToRemove of the KafkaCluster names; none is moved there.",
    )
    PINNED_BY_TOPIC = (
        "PinnedByTopic",
        "A KafkaTopic with driftPolicy Enforce says other replicas and would move them back, so nothing moves.",
    )
    NOT_ENOUGH_BROKERS = (
        "NotEnoughBrokers",
        "The replication factor is above the number of live brokers that take new replicas.",
    )
    DUPLICATE_REPLICAS = "DuplicateReplicas", "A broker is named twice among a partition's replicas."
    REPLICATION_FACTOR_MISMATCH = (
        "ReplicationFactorMismatch",
        "The partitions of one topic would have different numbers of replicas.",
    )
    TOO_LARGE = (
        "TooLarge",
        "What is asked for is larger than one write that ZooKeeper takes (its jute.maxbuffer), so nothing was sent.",
    )
    PARTITIONS_CANNOT_DECREASE = (
        "PartitionsCannotDecrease",
        "The topic has more partitions than the spec asks for; Kafka cannot take partitions away.",
    )
    TOPIC_BEING_DELETED = "TopicBeingDeleted", "The topic is being deleted; retried when it is gone."
    TOPIC_DELETED = "TopicDeleted", "The topic that this object stood for was deleted elsewhere."
    TOPIC_DELETED_DURING_MOVE = "TopicDeletedDuringMove", "The topic was deleted while its replicas moved."
    FEATURE_UNSUPPORTED = (
        "FeatureUnsupported",
        "A live broker does not support the level that the spec asks for: see the status of each feature.",
    )
    DOWNGRADE_NOT_ALLOWED = (
        "DowngradeNotAllowed",
        "A feature is finalized above the level of the spec, and spec.allowDowngrade does not let it be lowered.",
    )
    FEATURES_UNREADABLE = "FeaturesUnreadable", "The cluster's finalized features make no sense; a person repairs them."
    REQUEST_REFUSED = "RequestRefused", "The controller refused the request; the message is its own."
    DRY_RUN = "DryRun", "The spec says to show what would be changed, and to change nothing."
    DELETION_FORBIDDEN = "DeletionForbidden", "The cluster does not allow topics to be deleted."
    WAITING_FOR_OTHER_REASSIGNMENT = (
        "WaitingForOtherReassignment",
        "A partition is being reassigned already; this one begins when that one has ended.",
    )


def _reasons() -> str:
    listed = " ".join(f"{reason}: {reason.meaning}" for reason in Reason)
    return f"Why, as one word of a closed set. {listed}"


class Condition(Observed):
    """One thing that is said about the object, and since when."""

    type: ConditionType
    """What is said: Ready (the object is as its spec says), Reconciling (work goes on), Stalled (only a person can
    help), Paused, Drifted (changed elsewhere), Conflict (an older resource wins), Degraded (brokers or replicas of the
    Kafka cluster are missing, or disks fail or are nearly full); and where the one run of an object is over, Complete (it
    did all that was asked for) or Failed (it did not, and never will)."""

    status: ConditionStatus
    """Whether it holds."""

    observed_generation: int = Field(ge=0)
    """The generation of the spec that this was said about."""

    last_transition_time: Timestamp
    """When the status last changed."""

    reason: Annotated[
        Reason, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[A-Z][A-Za-z]*$"})
    ] = Field(description=_reasons())

    message: str = Field(max_length=32_768)
    """The same for people: what is wrong and what to change, or what goes on."""


def _known(conditions: Any) -> Any:
    """Without the conditions that another version of the operator wrote and this one has no word for."""
    if not isinstance(conditions, list):
        return conditions
    return [each for each in conditions if not isinstance(each, dict) or _is_known(each)]


def _is_known(condition: dict[str, Any]) -> bool:
    return condition.get("type") in set(ConditionType) and condition.get("reason") in set(Reason)


Conditions = Annotated[
    tuple[Condition, ...],
    Field(max_length=16, json_schema_extra=keyed_by("type")),
    BeforeValidator(_known),
]
