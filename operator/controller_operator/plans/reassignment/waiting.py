"""What has to end before a move can be asked for, and for whom it waits: Kafka takes one reassignment request at a time."""

from collections.abc import Iterable, Mapping

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.wording import listed
from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.plans.outcome import Verdict
from controller_operator.plans.reassignment.turns import is_moving_elsewhere
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import PartitionReassignment

Targets = Mapping[TopicPartition, tuple[BrokerId, ...]]
Others = tuple[PartitionReassignment, ...]
"""The objects for the same Kafka cluster whose moves are under way, as far as they are known."""


def wait(wanted: Targets, view: ClusterView, others: Others) -> Verdict | None:
    """Why the partitions cannot be asked for now, and for whom they wait."""
    if view.controller is None:
        return Verdict.working(Reason.NO_CONTROLLER, "no controller holds the cluster, so nothing would begin")
    if view.reassignment is not None:
        requested = view.reassignment.partitions
        message = (
            f"a reassignment of {len(requested)} partitions runs, {_whose(requested, others)}; this one begins when it"
        )
        return Verdict.working(Reason.WAITING_FOR_OTHER_REASSIGNMENT, f"{message} has ended")
    moving = [tp for tp, replicas in wanted.items() if is_moving_elsewhere(tp, replicas, view)]
    if moving:
        message = f"{listed(moving)} moves elsewhere at present, {_whose(moving, others)}"
        return Verdict.working(Reason.WAITING_FOR_OTHER_REASSIGNMENT, message)
    return None


def _whose(partitions: Iterable[TopicPartition], others: Others) -> str:
    asked = {*partitions}
    names = sorted(
        f"{each.metadata.namespace}/{each.metadata.name}"
        for each in others
        if any((target.topic, target.partition) in asked for target in each.targets)
    )
    return f"for {listed(names)}" if names else "which no PartitionReassignment has asked for"
