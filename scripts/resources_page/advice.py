"""Advice for each condition and each reason. The meanings of the reasons are in `resources.conditions`."""

from collections.abc import Mapping
from typing import Final

from controller_operator.resources.conditions import ConditionType, Reason

CONDITIONS: Final[Mapping[ConditionType, tuple[str, str]]] = {
    ConditionType.READY: (
        "The object is as its spec says. Unknown while the cluster cannot be seen.",
        "See its reason, if it is not True.",
    ),
    ConditionType.RECONCILING: (
        "Work continues without help, or waits. Present only while it is true.",
        "Wait. If it lasts, see its reason.",
    ),
    ConditionType.STALLED: (
        "Only a person can help. Present only while it is true.",
        "Follow the message.",
    ),
    ConditionType.PAUSED: (
        "The annotation kontroller.dev/pause or spec.suspend stops the work, approval is due, or no window is open."
        " Present only while that is so.",
        "Remove the annotation or spec.suspend; approve the plan; wait for the window.",
    ),
    ConditionType.DRIFTED: (
        "For a KafkaTopic: the topic was changed elsewhere and is not corrected. Unknown while it cannot be"
        " compared with the spec.",
        "Read `status.drift`; change the spec, the topic, or `driftPolicy`.",
    ),
    ConditionType.CONFLICT: (
        "An older resource claims the same topic, partition or feature, and wins. Present only while it is true.",
        "Follow the message: it names the winner, and for a KafkaTopic the effect of deleting either object.",
    ),
    ConditionType.DEGRADED: (
        "For a KafkaCluster: brokers are missing, partitions have no leader or too few replicas in sync, a log"
        " directory has failed, or a disk is 90 % full. `Ready` does not depend on it.",
        "See its reason, and `kubectl kontroller status`.",
    ),
    ConditionType.SETTINGS_DIFFER: (
        "For a KafkaCluster: settings in brokers' files differ, or differ from those of the controller, or brokers name a"
        " policy that it does not run. `Ready` does not depend on it.",
        "See [settings that differ](operations.md#settings-that-differ).",
    ),
    ConditionType.COMPLETE: (
        "The one run of the object has ended and was fully successful. Permanent.",
        "Nothing.",
    ),
    ConditionType.FAILED: (
        "The one run of the object is over and was not fully successful, or was cancelled. Permanent.",
        "Look at the partitions in the status, fix the cause, and create a new object.",
    ),
}

_NOTHING: Final = "Nothing."
_CLUSTER_AWAY: Final = "See [ZooKeeper is down](operations.md#zookeeper-is-down). Recovers without help."
_STUCK_MOVE: Final = "See [a reassignment does not end](operations.md#a-reassignment-does-not-end)."

REMEDIES: Final[Mapping[Reason, str]] = {
    Reason.RECONCILED: _NOTHING,
    Reason.PROGRESSING: "Wait; the message says for what.",
    Reason.PAUSED: "`kubectl kontroller resume KIND/NAME`.",
    Reason.COMPLETED: _NOTHING,
    Reason.SCHEDULED: _NOTHING,
    Reason.SUSPENDED: "Remove `spec.suspend`.",
    Reason.AWAITING_APPROVAL: "`kubectl kontroller approve KIND/NAME` shows the plan and asks.",
    Reason.OUTSIDE_WINDOW: "Wait; to begin at once, remove `spec.schedule` or give it another window.",
    Reason.INVALID_SCHEDULE: "Correct `spec.schedule` or the time zone, as the message says.",
    Reason.CANCELLED: "Nothing; create a new object to begin again.",
    Reason.SUPERSEDED: ("See `status.partitions`. To move them again, create a new object."),
    Reason.PARTITIONS_FAILED: "Read `status.partitions`, fix the cause, create a new object.",
    Reason.CLUSTER_NOT_FOUND: "Create the KafkaCluster. If the reference is wrong, create a new object.",
    Reason.NAMESPACE_NOT_ALLOWED: "Ask the owner of the KafkaCluster to add the namespace to `spec.allowedNamespaces`.",
    Reason.TOPIC_PREFIX_REQUIRED: "Use the prefix, or ask the owner of the KafkaCluster to change it.",
    Reason.ZOOKEEPER_UNAVAILABLE: _CLUSTER_AWAY,
    Reason.CHROOT_NOT_FOUND: "Correct the end of `spec.zookeeper.connect`, or start the brokers, which create the chroot.",
    Reason.NOT_SUPPORTED: "See [what works without ZooKeeper](versions.md#without-zookeeper).",
    Reason.BROKERS_UNAVAILABLE: "Start the brokers, or correct `spec.bootstrapServers`.",
    Reason.NOT_ADMITTED: "Correct the operator's properties file (`--properties`), or give its user the right "
    "that the message names ([versions.md](versions.md#without-zookeeper)).",
    Reason.NO_CONTROLLER: "Start a controller; without ZooKeeper, more than half of them. See "
    "[KontrollerNoController](operations.md#kontrollernocontroller).",
    Reason.CLUSTER_NOT_IDENTIFIED: "Start a broker. The object then proceeds.",
    Reason.CLUSTER_CHANGED: "Correct the address in the KafkaCluster, or accept the other cluster with the command that "
    "the message names: [another Kafka cluster answers](operations.md#another-kafka-cluster-answers).",
    Reason.CONTROLLER_ID_TAKEN: "Stop the broker, or give the controller an `--id` that no broker has.",
    Reason.BROKERS_UNSUPPORTED: "Upgrade them to a [supported release](versions.md), or remove them from the cluster.",
    Reason.PARTITIONS_OFFLINE: "See [a partition is offline](operations.md#a-partition-is-offline).",
    Reason.BROKERS_MISSING: "See [KontrollerClusterDegraded](operations.md#kontrollerclusterdegraded).",
    Reason.PARTITIONS_UNDER_REPLICATED: (
        "Wait if a broker has just started. Otherwise see"
        " [KontrollerUnderReplicatedPartitions](operations.md#kontrollerunderreplicatedpartitions)."
    ),
    Reason.LOG_DIRECTORY_FAILED: "Repair or replace the disk, and restart the broker: see "
    "[a disk is full](operations.md#a-disk-is-full).",
    Reason.DISK_NEARLY_FULL: "Free space, or enlarge the disk: see [a disk is full](operations.md#a-disk-is-full).",
    Reason.COPY_STALLED: _STUCK_MOVE,
    Reason.COPY_FALLS_BEHIND: _STUCK_MOVE,
    Reason.HEALTHY: _NOTHING,
    Reason.SETTINGS_DIFFER: "See [settings that differ](operations.md#settings-that-differ).",
    Reason.SETTINGS_AGREE: _NOTHING,
    Reason.OTHER_CLUSTER_DECIDES: "If that is not intended, change the one that the message names, or delete one.",
    Reason.WAITING_FOR_DEPENDENTS: "Delete the objects that the message names, or set the annotation that it names.",
    Reason.RESOURCE_CONFLICT: "Delete one of the two; a topic stays with its"
    " data: [two objects for one topic](gitops.md#two-objects-for-one-topic).",
    Reason.NOT_ADOPTED: "Make the spec equal to the topic (`kontroller import`), or set `adoptionPolicy: Always`.",
    Reason.DRIFTED: "Change the spec, change the topic back, or set `driftPolicy: Enforce`.",
    Reason.DRIFT_CONTESTED: "Find the other party and stop one of the two, or set `driftPolicy: Report`.",
    Reason.IN_SYNC: _NOTHING,
    Reason.INVALID_SPEC: "Correct the field that the message names, or upgrade the operator.",
    Reason.INVALID_CONFIG: "Follow the message.",
    Reason.BUDGET_EXCEEDED: "Follow the message, or raise the `budget` in spec.allowedNamespaces of the KafkaCluster.",
    Reason.POLICY_VIOLATION: "Follow the message, or change the [rules](security.md#rules-for-topics).",
    Reason.UNKNOWN_TOPIC: "Create the topic, or correct the name in a new object.",
    Reason.UNKNOWN_PARTITION: "Correct the number in a new object, or give the topic more partitions.",
    Reason.UNKNOWN_BROKER: "Start the broker, or name another one.",
    Reason.UNKNOWN_LOG_DIRECTORY: "Name one of the directories in the message in a new object, or `any`.",
    Reason.BROKER_TO_BE_REMOVED: "Name other brokers, or remove it from `spec.brokersToRemove` of the KafkaCluster.",
    Reason.PINNED_BY_TOPIC: "Change the KafkaTopics that the message names. To "
    "remove a broker, name it in `spec.brokersToRemove` of the KafkaCluster.",
    Reason.NOT_ENOUGH_BROKERS: "Start brokers, end the cordons that the message names, shorten `spec.brokersToRemove`, or "
    "lower the replication factor.",
    Reason.DUPLICATE_REPLICAS: "Name each broker once.",
    Reason.REPLICATION_FACTOR_MISMATCH: "Give every partition of the topic the same number of replicas.",
    Reason.TOO_LARGE: "Ask for less in one object, or raise `jute.maxbuffer` of all processes.",
    Reason.PARTITIONS_CANNOT_DECREASE: "Raise `spec.partitions` to the topic's number, or create a new topic.",
    Reason.TOPIC_BEING_DELETED: "Wait, or start the broker that the message names; see "
    "[stuck deletions](operations.md#the-deletion-of-a-topic-is-stuck).",
    Reason.TOPIC_DELETED: "Delete the object, or set `driftPolicy: Enforce`, which creates the topic again, empty.",
    Reason.TOPIC_DELETED_DURING_MOVE: "Delete the object.",
    Reason.FEATURE_UNSUPPORTED: "Upgrade the brokers that `status.features` names, or ask for a lower level.",
    Reason.DOWNGRADE_NOT_ALLOWED: "Raise the level of the spec, or set `allowDowngrade: true` if that is safe.",
    Reason.FEATURES_UNREADABLE: "Look at the znode `/feature`: a newer Kafka wrote it, or it is damaged.",
    Reason.PLAN_IMPOSSIBLE: "The message names the constraint and what is missing: add brokers or room, or create a "
    "RebalancePlan with another scope.",
    Reason.PLAN_OUTDATED: "Make a new plan with `kontroller plan`, delete this object, and apply the new one. "
    "A RebalancePlan does this for its own batches.",
    Reason.TOO_MANY_BROKERS_GONE: "Bring brokers back. If they are lost for good, raise `heal.maxBrokers`, set "
    "`heal.wholeRacks`, or create a RebalancePlan that drains them.",
    Reason.REQUEST_REFUSED: "Follow the message, which comes from the controller.",
    Reason.DRY_RUN: "Read the status; remove `dryRun` to apply the changes.",
    Reason.DELETION_FORBIDDEN: "Set `delete.topic.enable` of controller and brokers, or `deletionPolicy: Retain`.",
    Reason.WAITING_FOR_OTHER_REASSIGNMENT: "Wait, or cancel the other one.",
}


class NoAdvice(Exception):
    """A condition or a reason has no advice. The message says where to add it."""


def advice_on_condition(condition: ConditionType) -> tuple[str, str]:
    """Return the meaning of the condition and the advice for it. Raises `NoAdvice`."""
    if condition not in CONDITIONS:
        raise NoAdvice(f"add the meaning of the condition {condition}, and advice for it, to {__name__}")
    return CONDITIONS[condition]


def remedy(reason: Reason) -> str:
    """Return the advice for a reason. Raises `NoAdvice`."""
    if reason not in REMEDIES:
        raise NoAdvice(f"add advice for the reason {reason} to {__name__}")
    return REMEDIES[reason]
