"""What a person does about each condition and each reason. What they mean is said where they are defined."""

from collections.abc import Mapping
from typing import Final

from controller_operator.resources.conditions import ConditionType, Reason

CONDITIONS: Final[Mapping[ConditionType, tuple[str, str]]] = {
    ConditionType.READY: (
        "The object is as its spec says. Unknown while the cluster cannot be seen. There from first sight on.",
        "True: nothing. Else its reason says why.",
    ),
    ConditionType.RECONCILING: (
        "Work goes on by itself, or waits for what time can bring. There only while it is true.",
        "Wait. If it lasts, look at the reason.",
    ),
    ConditionType.STALLED: (
        "Only a person can help. There only while it is true.",
        "What the message says; the reason below says more.",
    ),
    ConditionType.PAUSED: (
        "The annotation kontroller.dev/pause or spec.suspend stops the work, approval is due, or no window is open. There"
        " only meanwhile.",
        "Take the annotation, or spec.suspend, away when the work may go on; approve the plan; wait for the window.",
    ),
    ConditionType.DRIFTED: (
        "Of a KafkaTopic: True if the topic was changed elsewhere and is not put right. Unknown while it cannot be compared"
        " with the spec: it was deleted, is not taken over, is out of sight, or the object is paused.",
        "Read `status.drift`; change the spec, the topic, or `driftPolicy`.",
    ),
    ConditionType.CONFLICT: (
        "An older resource claims the same, and wins. There only while it is true.",
        "Do what the message says: it names the winner. Of a KafkaTopic it says what deleting either object does.",
    ),
    ConditionType.DEGRADED: (
        "Of a KafkaCluster: True if brokers are missing, partitions have no leader or too few replicas in sync, a log"
        " directory has failed, or a disk is 90 % full. Unknown while the cluster cannot be seen. `Ready` does not"
        " follow it.",
        "`kubectl kontroller status` names the missing brokers; the reason says what to do.",
    ),
    ConditionType.COMPLETE: (
        "The one run of the object is over, and did all that was asked for. Stays for good.",
        "Nothing. Scripts wait for it: `kubectl wait --for=condition=Complete`.",
    ),
    ConditionType.FAILED: (
        "The one run of the object is over, and did not do all that was asked for, or was cancelled. Stays for good.",
        "Look at the partitions in the status, mend the cause, and create a new object.",
    ),
}

_NOTHING: Final = "Nothing."
_CLUSTER_AWAY: Final = "See [ZooKeeper is down](operations.md#zookeeper-is-down). Goes on by itself."
_STUCK_MOVE: Final = "See [a reassignment does not end](operations.md#a-reassignment-does-not-end)."

REMEDIES: Final[Mapping[Reason, str]] = {
    Reason.RECONCILED: _NOTHING,
    Reason.PROGRESSING: "Wait. The message says what goes on.",
    Reason.PAUSED: "`kubectl kontroller resume KIND/NAME`, or take the annotation away, when the work may go on.",
    Reason.COMPLETED: _NOTHING,
    Reason.SCHEDULED: _NOTHING,
    Reason.SUSPENDED: "Take `spec.suspend` out when the work may go on.",
    Reason.AWAITING_APPROVAL: "Read the plan and approve it: `kubectl kontroller approve kpr/NAME` shows it and asks.",
    Reason.OUTSIDE_WINDOW: "Wait; to begin at once, take `spec.schedule` out or give it another window.",
    Reason.INVALID_SCHEDULE: "Correct `spec.schedule` or the time zone, as the message says.",
    Reason.CANCELLED: "Nothing; create a new object to begin again.",
    Reason.SUPERSEDED: (
        "See in the messages of `status.partitions` where the replicas are now. To move them again, create a new object."
    ),
    Reason.PARTITIONS_FAILED: "Read the messages in `status.partitions`, mend the cause, create a new object.",
    Reason.CLUSTER_NOT_FOUND: "Create the KafkaCluster; a wrong reference is corrected in a new object. Goes on by itself.",
    Reason.NAMESPACE_NOT_ALLOWED: "Have the owner of the KafkaCluster add the namespace to `spec.allowedNamespaces`.",
    Reason.TOPIC_PREFIX_REQUIRED: "Name only topics with the prefix, or have the owner of the KafkaCluster change it.",
    Reason.ZOOKEEPER_UNAVAILABLE: _CLUSTER_AWAY,
    Reason.CHROOT_NOT_FOUND: "Correct the end of `spec.zookeeper.connect`, or start the brokers, which make the chroot.",
    Reason.NOT_SUPPORTED: "Do what the message says; [versions.md](versions.md#without-zookeeper) says what is served.",
    Reason.BROKERS_UNAVAILABLE: "Start the brokers, or give addresses that the operator reaches (`spec.bootstrapServers`).",
    Reason.NOT_ADMITTED: "Correct the operator's file of `--properties`, or give its user the right that the message "
    "names ([versions.md](versions.md#without-zookeeper)).",
    Reason.NO_CONTROLLER: "Start a controller; without ZooKeeper, more than half of them. See "
    "[KontrollerNoController](operations.md#kontrollernocontroller).",
    Reason.CLUSTER_NOT_IDENTIFIED: "Start a broker. Goes on by itself.",
    Reason.CLUSTER_CHANGED: "Correct the address in the KafkaCluster, or accept the other cluster with the command that "
    "the message names: [another Kafka cluster answers](operations.md#another-kafka-cluster-answers).",
    Reason.BROKERS_UNSUPPORTED: "Start them as a [supported release](versions.md), or take them out of the cluster.",
    Reason.PARTITIONS_OFFLINE: "See [a partition is offline](operations.md#a-partition-is-offline).",
    Reason.BROKERS_MISSING: "See [KontrollerClusterDegraded](operations.md#kontrollerclusterdegraded).",
    Reason.PARTITIONS_UNDER_REPLICATED: (
        "Wait if a broker has just started. Otherwise see"
        " [KontrollerUnderReplicatedPartitions](operations.md#kontrollerunderreplicatedpartitions)."
    ),
    Reason.LOG_DIRECTORY_FAILED: "Repair or replace the disk, and restart the broker: see "
    "[a disk is full](operations.md#a-disk-is-full).",
    Reason.DISK_NEARLY_FULL: "Make room, or make the disk larger: see [a disk is full](operations.md#a-disk-is-full).",
    Reason.COPY_STALLED: _STUCK_MOVE,
    Reason.COPY_FALLS_BEHIND: _STUCK_MOVE,
    Reason.HEALTHY: _NOTHING,
    Reason.OTHER_CLUSTER_DECIDES: "Nothing, if that is wanted. Otherwise change the one that the message names, or "
    "delete one of the two.",
    Reason.WAITING_FOR_DEPENDENTS: "Delete the objects that the message names, or set the annotation that it names.",
    Reason.RESOURCE_CONFLICT: "Delete one of the two objects; the message names the one that wins. A topic stays with its"
    " data: [two objects for one topic](gitops.md#two-objects-for-one-topic).",
    Reason.NOT_ADOPTED: "Make the spec equal to the topic (`kontroller import`), or set `adoptionPolicy: Always`.",
    Reason.DRIFTED: "Change the spec to what is right, or change the topic back, or set `driftPolicy: Enforce`.",
    Reason.DRIFT_CONTESTED: "Find who changes it back, and stop one of the two. A topic: or set `driftPolicy: Report`.",
    Reason.IN_SYNC: _NOTHING,
    Reason.INVALID_SPEC: "Correct the field that the message names, or run the version of the operator that knows it.",
    Reason.INVALID_CONFIG: "Change what the message names, as it says.",
    Reason.UNKNOWN_TOPIC: "Create the topic, or correct the name in a new object.",
    Reason.UNKNOWN_PARTITION: "Correct the number in a new object, or give the topic more partitions.",
    Reason.UNKNOWN_BROKER: "Start the broker, or name another one.",
    Reason.BROKER_TO_BE_REMOVED: "Name other brokers, or take it out of `spec.brokersToRemove` of the KafkaCluster.",
    Reason.PINNED_BY_TOPIC: "Change the field of the KafkaTopics that the message names, and with it move the replicas. To "
    "remove a broker, name it in `spec.brokersToRemove` of the KafkaCluster.",
    Reason.NOT_ENOUGH_BROKERS: "Start brokers, end the cordons that the message names, shorten `spec.brokersToRemove`, or "
    "lower the replication factor.",
    Reason.DUPLICATE_REPLICAS: "Name each broker once.",
    Reason.REPLICATION_FACTOR_MISMATCH: "Give every partition of the topic the same number of replicas.",
    Reason.TOO_LARGE: "Ask for less in one object, or raise `jute.maxbuffer` of all processes.",
    Reason.PARTITIONS_CANNOT_DECREASE: "Raise `spec.partitions` to what the topic has, or make a new topic.",
    Reason.TOPIC_BEING_DELETED: "Wait, or start the broker that the message names; see "
    "[a topic stays in deletion](operations.md#a-topic-stays-in-deletion).",
    Reason.TOPIC_DELETED: "Delete the object, or set `driftPolicy: Enforce`, which creates the topic again, empty.",
    Reason.TOPIC_DELETED_DURING_MOVE: "Delete the object.",
    Reason.FEATURE_UNSUPPORTED: "Upgrade the brokers that `status.features` names, or ask for a lower level.",
    Reason.DOWNGRADE_NOT_ALLOWED: "Raise the level of the spec, or set `allowDowngrade: true` where that is safe.",
    Reason.FEATURES_UNREADABLE: "Look at the znode `/feature`: a newer Kafka wrote it, or it is damaged.",
    Reason.REQUEST_REFUSED: "Do what the message says, which is the controller's own.",
    Reason.DRY_RUN: "Read the status; take `dryRun` out to have it done.",
    Reason.DELETION_FORBIDDEN: "Set `delete.topic.enable` of controller and brokers, or `deletionPolicy: Retain`.",
    Reason.WAITING_FOR_OTHER_REASSIGNMENT: "Wait, or cancel the other one.",
}


class NoAdvice(Exception):
    """A condition or a reason that nobody says what to do about; the message says where it is missing."""


def advice_on_condition(condition: ConditionType) -> tuple[str, str]:
    """What the condition means, and what to do about it. Raises `NoAdvice`."""
    if condition not in CONDITIONS:
        raise NoAdvice(f"say in {__name__} what the condition {condition} means, and what to do about it")
    return CONDITIONS[condition]


def remedy(reason: Reason) -> str:
    """What to do about a reason. Raises `NoAdvice`."""
    if reason not in REMEDIES:
        raise NoAdvice(f"say in {__name__} what a person does about {reason}")
    return REMEDIES[reason]
