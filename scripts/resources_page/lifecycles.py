"""The lifecycle of each kind as a diagram: the states that its phase or its conditions show."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

BEGIN: Final = "[*]"
END: Final = "[*]"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an object from one state to another, and its cause."""

    before: str
    after: str
    because: str


LIFECYCLES: Final[Mapping[str, tuple[Change, ...]]] = {
    "KafkaCluster": (
        Change(BEGIN, "Unknown", "created"),
        Change("Unknown", "Ready", "the cluster is read, a controller is there, all partitions have leaders"),
        Change("Ready", "Reconciling", "no controller, or partitions without a leader"),
        Change("Reconciling", "Ready", "they are back"),
        Change("Ready", "Degraded", "a broker is missing, or replicas are not in sync (still Ready)"),
        Change("Degraded", "Ready", "all brokers and replicas are back"),
        Change("Ready", "Unknown", "the cluster does not answer"),
        Change("Unknown", "Stalled", "another Kafka cluster answers"),
        Change("Stalled", "Unknown", "the address corrected, or the other cluster accepted"),
        Change("Ready", END, "deleted; Kafka keeps everything"),
    ),
    "KafkaTopic": (
        Change(BEGIN, "Unknown", "created"),
        Change("Unknown", "Reconciling", "the topic is created, or taken over"),
        Change("Unknown", "Ready", "the topic exists, and is as the spec says"),
        Change("Reconciling", "Ready", "all partitions have leaders and are as the spec says"),
        Change("Ready", "Reconciling", "the spec changes, or Enforce corrects a drift"),
        Change("Ready", "Drifted", "changed elsewhere, with driftPolicy Report (still Ready)"),
        Change("Drifted", "Ready", "spec or topic changed"),
        Change("Reconciling", "Stalled", "refused, not adopted, or in conflict"),
        Change("Ready", "Stalled", "replicaAssignment names a broker that is to be removed"),
        Change("Stalled", "Reconciling", "the spec changes, or the older object of the topic is deleted"),
        Change("Ready", "Deleting", "deleted, with deletionPolicy Delete; with approval Required, approved"),
        Change("Deleting", END, "the topic is gone, or ten minutes are over"),
        Change("Ready", END, "deleted, with deletionPolicy Retain: the topic stays"),
    ),
    "PartitionReassignment": (
        Change(BEGIN, "Pending", "created"),
        Change("Pending", "Running", "topics, brokers and controller are there, no other move is in the way"),
        Change("Running", "Completed", "all partitions have their replicas"),
        Change("Pending", "Completed", "all partitions have their replicas already"),
        Change("Pending", "AwaitingApproval", "approval is Required, and the current plan is not approved"),
        Change("AwaitingApproval", "Pending", "the plan is approved, and another move is in the way"),
        Change("AwaitingApproval", "Running", "the plan is approved"),
        Change("AwaitingApproval", "Suspended", "the plan is approved, and no window is open"),
        Change("AwaitingApproval", END, "deleted"),
        Change("Pending", "Suspended", "suspend is true, or no window is open"),
        Change("Running", "Suspended", "suspend is true, or no window is open and some wait; running moves continue"),
        Change("Suspended", "Pending", "suspend is false again, a window is open, and nothing has begun"),
        Change("Suspended", "Running", "suspend is false again, and a window is open"),
        Change("Suspended", "Completed", "all partitions had begun, and have their replicas"),
        Change("Suspended", "Failed", "all partitions had begun, and some did not reach their replicas"),
        Change("Suspended", "Cancelled", "deleted, and unfinished moves were rolled back"),
        Change("Running", "Failed", "some partitions did not reach their replicas"),
        Change("Running", "Cancelled", "deleted, and unfinished moves were rolled back"),
        Change("Pending", END, "deleted"),
        Change("Completed", END, "deleted, or ttlSecondsAfterFinished is over"),
        Change("Failed", END, "deleted, or ttlSecondsAfterFinished is over"),
        Change("Cancelled", END, "the finalizer is removed"),
    ),
    "PreferredElection": (
        Change(BEGIN, "Pending", "created"),
        Change("Pending", "Running", "topics and controller are there, no other election is in the way"),
        Change("Running", "Completed", "every partition has its result"),
        Change("Pending", "Completed", "nothing needs an election"),
        Change(
            "Pending", "AwaitingApproval", "an unclean election needs approval, and the current plan is not approved"
        ),
        Change("AwaitingApproval", "Running", "the plan is approved"),
        Change("AwaitingApproval", "Completed", "all partitions have leaders again"),
        Change("AwaitingApproval", END, "deleted"),
        Change("Running", "Failed", "some elections failed, or preferred brokers are not alive or not in sync"),
        Change(BEGIN, "Scheduled", "created, with a schedule"),
        Change("Scheduled", "Running", "a run is due, and the imbalance reaches the threshold"),
        Change("Running", "Scheduled", "the run is over"),
        Change("Scheduled", "Suspended", "suspend is true"),
        Change("Suspended", "Scheduled", "suspend is false again"),
        Change("Scheduled", END, "deleted"),
        Change("Pending", END, "deleted"),
        Change("Completed", END, "deleted, or ttlSecondsAfterFinished is over"),
        Change("Failed", END, "deleted, or ttlSecondsAfterFinished is over"),
    ),
    "RebalancePlan": (
        Change(BEGIN, "Pending", "created"),
        Change("Pending", "Running", "the plan is made, and its first batch begins"),
        Change("Pending", "AwaitingApproval", "the plan is made, and approval is Required"),
        Change("Pending", "Suspended", "the plan is made and suspend is true, or no window is open"),
        Change("Pending", "Completed", "nothing is left to move, or the limits are used up"),
        Change("AwaitingApproval", "Running", "the plan is approved"),
        Change("AwaitingApproval", "Pending", "its partitions or brokers have changed"),
        Change("AwaitingApproval", "Suspended", "suspend is true, or the plan is approved and no window is open"),
        Change("AwaitingApproval", END, "deleted"),
        Change("Suspended", "Running", "suspend is false again, and a window is open"),
        Change("Suspended", "AwaitingApproval", "suspend is false again, and the plan is not approved"),
        Change("Suspended", "Pending", "its partitions or brokers have changed, or a window opens without a plan"),
        Change("Running", "Pending", "a batch is done, and another plan follows"),
        Change("Running", "Suspended", "a batch is done, and suspend is true or no window is open"),
        Change("Running", "Completed", "the last batch is done"),
        Change("Running", "Failed", "a batch moved no partition"),
        Change("Running", "Cancelled", "somebody deleted the PartitionReassignment of the batch"),
        Change("Running", END, "deleted; what is unfinished is rolled back"),
        Change(BEGIN, "Scheduled", "created, with a schedule or the mode heal"),
        Change("Scheduled", "Pending", "a run is due, or a broker has been gone for long or is new"),
        Change("Pending", "Scheduled", "nothing is left to move, or the broker is back; the plan never ends"),
        Change("Running", "Scheduled", "the run is over; the plan never ends"),
        Change("AwaitingApproval", "Pending", "the next run is due before the plan is approved"),
        Change("Scheduled", "Suspended", "suspend is true"),
        Change("Suspended", "Scheduled", "suspend is false again between two runs"),
        Change("Scheduled", END, "deleted"),
        Change("Completed", END, "deleted, or ttlSecondsAfterFinished is over"),
        Change("Failed", END, "deleted, or ttlSecondsAfterFinished is over"),
        Change("Cancelled", END, "deleted, or ttlSecondsAfterFinished is over"),
    ),
    "FeatureSet": (
        Change(BEGIN, "Unknown", "created"),
        Change("Unknown", "DryRun", "dryRun: true"),
        Change("DryRun", "Reconciling", "dryRun is removed"),
        Change("Unknown", "Reconciling", "the controller is asked (UpdateFeatures)"),
        Change("Reconciling", "Ready", "all levels are finalized"),
        Change("Reconciling", "Stalled", "a broker is too old, or a downgrade is not allowed"),
        Change("Stalled", "Reconciling", "the spec or the broker changes"),
        Change("Ready", "Reconciling", "the spec changes, or a level was changed elsewhere"),
        Change("Ready", END, "deleted; with deletionPolicy Delete the levels are deleted first"),
    ),
}


class NoLifecycle(Exception):
    """A kind, or one of its phases, is missing in the diagrams. The message says which one."""


def diagram(kind: str, phases: tuple[str, ...] = ()) -> str:
    """Return the lifecycle as a mermaid diagram. Raises `NoLifecycle` if a phase of the schema is missing in it."""
    changes = LIFECYCLES.get(kind)
    if changes is None:
        raise NoLifecycle(f"add the lifecycle of {kind} to {__name__}")
    missing = set(phases) - {state for change in changes for state in (change.before, change.after)}
    if missing:
        raise NoLifecycle(f"add the changes of {kind} to and from the phase {', '.join(sorted(missing))} to {__name__}")
    lines = "".join(f"    {change.before} --> {change.after}: {_text(change.because)}\n" for change in changes)
    return f"```mermaid\nstateDiagram-v2\n{lines}```\n"


def _text(words: str) -> str:
    """Return a label. A colon ends a label in mermaid, and a semicolon ends the statement."""
    return words.replace(": ", " ").replace(";", ",")
