"""How an object of each kind lives, as diagrams: the states that its phase or its conditions show, and what leads on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

BEGIN: Final = "[*]"
END: Final = "[*]"


@dataclass(frozen=True, slots=True)
class Change:
    """An object that is in one state comes to another one; `because` says when."""

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
        Change("Unknown", "Ready", "the topic is there, and as the spec says"),
        Change("Reconciling", "Ready", "all partitions have leaders and are as the spec says"),
        Change("Ready", "Reconciling", "the spec changes, or Enforce corrects a drift"),
        Change("Ready", "Drifted", "changed elsewhere, with driftPolicy Report (still Ready)"),
        Change("Drifted", "Ready", "spec or topic changed"),
        Change("Reconciling", "Stalled", "refused, not adopted, or in conflict"),
        Change("Ready", "Stalled", "replicaAssignment names a broker that is to be removed"),
        Change("Stalled", "Reconciling", "the spec changes, or the older object of the topic is deleted"),
        Change("Ready", "Deleting", "deleted, with deletionPolicy Delete"),
        Change("Deleting", END, "the topic is gone, or ten minutes are over"),
        Change("Ready", END, "deleted, with deletionPolicy Retain: the topic stays"),
    ),
    "PartitionReassignment": (
        Change(BEGIN, "Pending", "created"),
        Change("Pending", "Running", "topics, brokers and controller are there, no other move is in the way"),
        Change("Running", "Completed", "all partitions have their replicas"),
        Change("Pending", "Completed", "all partitions have their replicas already"),
        Change("Pending", "AwaitingApproval", "approval is Required, and the plan is not approved, or not any more"),
        Change("AwaitingApproval", "Pending", "approvedPlan is the plan, and another move is in the way"),
        Change("AwaitingApproval", "Running", "approvedPlan is the plan"),
        Change("AwaitingApproval", "Suspended", "approvedPlan is the plan, and no window is open"),
        Change("AwaitingApproval", END, "deleted"),
        Change("Pending", "Suspended", "suspend is true, or no window is open"),
        Change("Running", "Suspended", "suspend is true, or no window is open and some wait; what moves goes on"),
        Change("Suspended", "Pending", "suspend is false again, a window is open, and nothing has begun"),
        Change("Suspended", "Running", "suspend is false again, and a window is open"),
        Change("Suspended", "Completed", "all partitions had begun, and have their replicas"),
        Change("Suspended", "Failed", "all partitions had begun, and some did not reach their replicas"),
        Change("Suspended", "Cancelled", "deleted, and what still moved went back"),
        Change("Running", "Failed", "some partitions did not reach their replicas"),
        Change("Running", "Cancelled", "deleted, and what still moved went back"),
        Change("Pending", END, "deleted"),
        Change("Completed", END, "deleted, or ttlSecondsAfterFinished is over"),
        Change("Failed", END, "deleted, or ttlSecondsAfterFinished is over"),
        Change("Cancelled", END, "let go"),
    ),
    "PreferredElection": (
        Change(BEGIN, "Pending", "created"),
        Change("Pending", "Running", "topics and controller are there, no other election is in the way"),
        Change("Running", "Completed", "every partition has its result"),
        Change("Pending", "Completed", "nothing needs an election"),
        Change("Running", "Failed", "some elections failed, or preferred brokers are not alive or not in sync"),
        Change(BEGIN, "Scheduled", "created, with a schedule"),
        Change("Scheduled", "Running", "a run is due, and enough partitions are led by another"),
        Change("Running", "Scheduled", "the run is over, with a schedule"),
        Change("Scheduled", "Suspended", "suspend is true"),
        Change("Suspended", "Scheduled", "suspend is false again"),
        Change("Scheduled", END, "deleted"),
        Change("Pending", END, "deleted"),
        Change("Completed", END, "deleted, or ttlSecondsAfterFinished is over"),
        Change("Failed", END, "deleted, or ttlSecondsAfterFinished is over"),
    ),
    "FeatureSet": (
        Change(BEGIN, "Unknown", "created"),
        Change("Unknown", "DryRun", "dryRun: true"),
        Change("DryRun", "Reconciling", "dryRun is taken out"),
        Change("Unknown", "Reconciling", "the controller is asked (UpdateFeatures)"),
        Change("Reconciling", "Ready", "all levels are finalized"),
        Change("Reconciling", "Stalled", "a broker is too old, or a downgrade is not allowed"),
        Change("Stalled", "Reconciling", "the spec or the broker changes"),
        Change("Ready", "Reconciling", "the spec changes, or a level was changed elsewhere"),
        Change("Ready", END, "deleted; with deletionPolicy Delete the levels go first"),
    ),
}


class NoLifecycle(Exception):
    """A kind, or one of its phases, that no diagram has; the message says where it is missing."""


def diagram(kind: str, phases: tuple[str, ...] = ()) -> str:
    """The lifecycle as a mermaid diagram. Raises `NoLifecycle` where a phase of the schema is missing in it."""
    changes = LIFECYCLES.get(kind)
    if changes is None:
        raise NoLifecycle(f"say in {__name__} how a {kind} lives")
    missing = set(phases) - {state for change in changes for state in (change.before, change.after)}
    if missing:
        raise NoLifecycle(f"say in {__name__} what leads a {kind} to the phase {', '.join(sorted(missing))}, and on")
    lines = "".join(f"    {change.before} --> {change.after}: {_text(change.because)}\n" for change in changes)
    return f"```mermaid\nstateDiagram-v2\n{lines}```\n"


def _text(words: str) -> str:
    """A label: mermaid takes a colon for its end, and a semicolon for that of the statement."""
    return words.replace(": ", " ").replace(";", ",")
