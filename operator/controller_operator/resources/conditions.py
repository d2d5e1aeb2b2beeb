"""Conditions of a resource: the possible entries of its `status.conditions`, and the closed set of their reasons.

They follow the Kubernetes API conventions and kstatus, so that `kubectl wait`, Flux and Argo CD understand them:
`Ready` is present from the first reconciliation of the object, and `Reconciling` and `Stalled` only while they are
true. An object that runs once ends with `Complete` or `Failed`, like a Job: exactly one of them, for good. `Degraded`
reports the health of a Kafka cluster and does not affect `Ready`, because no spec asks for brokers. Neither does
`SettingsDiffer`.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from controller_operator.resources.schema import Observed, Timestamp, key_by


class ConditionType(StrEnum):
    """The subject of a condition."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    PAUSED = "Paused"
    DRIFTED = "Drifted"
    CONFLICT = "Conflict"
    DEGRADED = "Degraded"
    SETTINGS_DIFFER = "SettingsDiffer"
    COMPLETE = "Complete"
    FAILED = "Failed"


class ConditionStatus(StrEnum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """The reason of a condition: one word for programs, with its meaning for people."""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> "Reason":
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member

    RECONCILED = "Reconciled", "The cluster is as the spec says."
    PROGRESSING = "Progressing", "Work towards the spec continues without help."
    PAUSED = "Paused", "The annotation kontroller.dev/pause stops all work on this object."
    COMPLETED = "Completed", "Everything that was asked for is done."
    SCHEDULED = "Scheduled", "The next run is due at status.nextRunTime."
    SUSPENDED = "Suspended", "spec.suspend is true, so nothing new begins."
    AWAITING_APPROVAL = (
        "AwaitingApproval",
        "spec.approval is Required, and spec.approvedPlan is not the current plan.",
    )
    OUTSIDE_WINDOW = (
        "OutsideWindow",
        "No window of the spec is open before status.nextWindowTime.",
    )
    INVALID_SCHEDULE = (
        "InvalidSchedule",
        "A schedule or a time zone of the spec is invalid, or names a time that never comes.",
    )
    CANCELLED = "Cancelled", "The work was stopped before its end, and unfinished work was rolled back."
    SUPERSEDED = (
        "Superseded",
        "Other moves replaced this one before the operator saw its end.",
    )
    PARTITIONS_FAILED = "PartitionsFailed", "Some partitions failed."

    CLUSTER_NOT_FOUND = "ClusterNotFound", "The KafkaCluster that spec.clusterRef names does not exist."
    NAMESPACE_NOT_ALLOWED = (
        "NamespaceNotAllowed",
        "spec.allowedNamespaces of the KafkaCluster, or of an older one for the same Kafka cluster, lacks the namespace.",
    )
    TOPIC_PREFIX_REQUIRED = (
        "TopicPrefixRequired",
        "The KafkaCluster allows this namespace only topics with a prefix, and no object about the whole cluster.",
    )
    ZOOKEEPER_UNAVAILABLE = "ZooKeeperUnavailable", "ZooKeeper does not answer; retried."
    CHROOT_NOT_FOUND = (
        "ChrootNotFound",
        "ZooKeeper does not have the chroot at the end of spec.zookeeper.connect.",
    )
    NOT_SUPPORTED = (
        "NotSupported",
        "The cluster does not offer this in the way that the KafkaCluster reaches it.",
    )
    BROKERS_UNAVAILABLE = "BrokersUnavailable", "None of the required brokers answers; retried."
    NOT_ADMITTED = (
        "NotAdmitted",
        "The brokers refuse the operator, are not the expected brokers, or the operator's properties file for the cluster"
        " is unusable; retried.",
    )
    NO_CONTROLLER = "NoController", "The cluster has no controller; retried."
    CLUSTER_NOT_IDENTIFIED = (
        "ClusterNotIdentified",
        "The Kafka cluster has no id (/cluster/id) yet; retried.",
    )
    CLUSTER_CHANGED = (
        "ClusterChanged",
        "The Kafka cluster that answers is not the one in status.clusterId. Nothing is changed in it until a person"
        " accepts it.",
    )
    CONTROLLER_ID_TAKEN = (
        "ControllerIdTaken",
        "A broker is registered under the controller's id, so the controller ignores it; it works without that broker.",
    )
    BROKERS_UNSUPPORTED = (
        "BrokersUnsupported",
        "The controller cannot lead some brokers because of their release or mode of Kafka; it works without them.",
    )
    PARTITIONS_OFFLINE = "PartitionsOffline", "Some partitions have no leader."
    BROKERS_MISSING = (
        "BrokersMissing",
        "Brokers have replicas but are not registered, or have gone in the last ten minutes.",
    )
    PARTITIONS_UNDER_REPLICATED = "PartitionsUnderReplicated", "Some partitions have replicas that are not in sync."
    LOG_DIRECTORY_FAILED = "LogDirectoryFailed", "A log directory of a broker has failed."
    COPY_STALLED = "CopyStalled", "A broker that is to get a replica has copied nothing for five minutes."
    COPY_FALLS_BEHIND = (
        "CopyFallsBehind",
        "Replicas are copied no faster than producers write, so the move cannot end.",
    )
    DISK_NEARLY_FULL = (
        "DiskNearlyFull",
        "A disk is fuller than spec.diskNearlyFullPercent. A broker stops when its disk is full.",
    )
    HEALTHY = "Healthy", "No broker is missing, every partition has a leader, and all replicas are in sync."
    SETTINGS_DIFFER = (
        "SettingsDiffer",
        "Brokers have different settings in their files, or others than the controller.",
    )
    SETTINGS_AGREE = "SettingsAgree", "Brokers have the same settings in their files, and so has the controller."
    OTHER_CLUSTER_DECIDES = (
        "OtherClusterDecides",
        "Another KafkaCluster for the same Kafka cluster decides with its spec.allowedNamespaces.",
    )
    WAITING_FOR_DEPENDENTS = (
        "WaitingForDependents",
        "The KafkaCluster is being deleted, but some objects still refer to it.",
    )

    RESOURCE_CONFLICT = "ResourceConflict", "An older resource claims the same topic, partition or feature; it wins."
    NOT_ADOPTED = "NotAdopted", "The topic exists already, and spec.adoptionPolicy forbids taking it over as it is."
    DRIFTED = "Drifted", "The topic was changed elsewhere, and spec.driftPolicy does not correct it."
    DRIFT_CONTESTED = (
        "DriftContested",
        "Somebody reverts each correction; retried, later each time.",
    )
    IN_SYNC = "InSync", "The topic is as the spec says, or driftPolicy is Ignore."
    INVALID_SPEC = "InvalidSpec", "The spec has a field or a value that this version of the operator does not know."
    INVALID_CONFIG = (
        "InvalidConfig",
        "A topic configuration has an unknown or reserved key, an invalid value, or contradicts itself or the replicas.",
    )
    POLICY_VIOLATION = "PolicyViolation", "A rule for topics refuses the change, so nothing is changed."
    BUDGET_EXCEEDED = (
        "BudgetExceeded",
        "The change exceeds the budget that the KafkaCluster gives the namespace, so nothing is changed.",
    )
    UNKNOWN_TOPIC = "UnknownTopic", "The cluster does not have the topic."
    UNKNOWN_PARTITION = "UnknownPartition", "The topic does not have the partition."
    UNKNOWN_BROKER = "UnknownBroker", "A replica is assigned to a broker that is not registered."
    UNKNOWN_LOG_DIRECTORY = (
        "UnknownLogDirectory",
        "A replica is assigned to a log directory that its broker does not have.",
    )
    BROKER_TO_BE_REMOVED = (
        "BrokerToBeRemoved",
        "The spec assigns replicas to a broker in spec.brokersToRemove of the KafkaCluster.",
    )
    PINNED_BY_TOPIC = (
        "PinnedByTopic",
        "A KafkaTopic with driftPolicy Enforce would undo the move, so nothing moves.",
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
        "The request exceeds ZooKeeper's limit for one write (jute.maxbuffer); nothing was sent.",
    )
    PARTITIONS_CANNOT_DECREASE = (
        "PartitionsCannotDecrease",
        "The topic has more partitions than the spec asks for, and Kafka cannot remove partitions.",
    )
    TOPIC_BEING_DELETED = "TopicBeingDeleted", "The topic is being deleted; retried when it is gone."
    TOPIC_DELETED = "TopicDeleted", "The topic of this object was deleted elsewhere."
    TOPIC_DELETED_DURING_MOVE = "TopicDeletedDuringMove", "The topic was deleted while its replicas moved."
    FEATURE_UNSUPPORTED = (
        "FeatureUnsupported",
        "A live broker does not support the level of the spec.",
    )
    DOWNGRADE_NOT_ALLOWED = (
        "DowngradeNotAllowed",
        "A feature is finalized above the level of the spec, and spec.allowDowngrade forbids lowering it.",
    )
    FEATURES_UNREADABLE = (
        "FeaturesUnreadable",
        "The cluster's finalized features are unreadable.",
    )
    PLAN_IMPOSSIBLE = (
        "PlanImpossible",
        "The planner can make no plan for the spec in the current cluster; retried when the spec or the brokers"
        " change, and every ten minutes.",
    )
    PLAN_OUTDATED = (
        "PlanOutdated",
        "A partition has other replicas than those for which its move was planned (expectedReplicas), so nothing moves.",
    )
    TOO_MANY_BROKERS_GONE = (
        "TooManyBrokersGone",
        "More brokers are gone than spec.heal allows, or a whole rack, so nothing is healed.",
    )
    REQUEST_REFUSED = "RequestRefused", "The controller refused the request."
    DRY_RUN = "DryRun", "spec.dryRun is true, so nothing is changed."
    DELETION_FORBIDDEN = "DeletionForbidden", "The cluster does not allow topics to be deleted."
    WAITING_FOR_OTHER_REASSIGNMENT = (
        "WaitingForOtherReassignment",
        "A partition is being reassigned already; this move begins afterwards.",
    )


def _reasons() -> str:
    listed = " ".join(f"{reason}: {reason.meaning}" for reason in Reason)
    return f"One word of a closed set. {listed}"


class Condition(Observed):
    """An observation about the object, and the time of its last change."""

    type: ConditionType
    """Type of the condition: Ready (the object is as its spec says), Reconciling (work continues), Stalled (only a
    person can help), Paused, Drifted (changed elsewhere), Conflict (an older resource wins), Degraded (brokers,
    replicas or disks need attention), SettingsDiffer (between brokers, or brokers and controller). After the one run of
    an object: Complete or Failed."""

    status: ConditionStatus
    """True, False or Unknown."""

    observed_generation: int = Field(ge=0)
    """The generation of the spec that the condition is about."""

    last_transition_time: Timestamp
    """Time of the last change of status."""

    reason: Annotated[
        Reason, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[A-Z][A-Za-z]*$"})
    ] = Field(description=_reasons())

    message: str = Field(max_length=32_768)
    """The problem and its solution, or the work in progress."""


def _drop_unknown(conditions: Any) -> Any:
    """Drop the conditions that another version of the operator wrote and this version does not know."""
    if not isinstance(conditions, list):
        return conditions
    return [each for each in conditions if not isinstance(each, dict) or _is_known(each)]


def _is_known(condition: dict[str, Any]) -> bool:
    return condition.get("type") in set(ConditionType) and condition.get("reason") in set(Reason)


Conditions = Annotated[
    tuple[Condition, ...],
    Field(max_length=16, json_schema_extra=key_by("type")),
    BeforeValidator(_drop_unknown),
]
