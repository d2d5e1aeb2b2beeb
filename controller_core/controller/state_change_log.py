"""The structured log of every state change: which partition or replica, from what, to what, why, under which epochs.

It is what a person reads after an incident, the counterpart of Kafka's `state-change.log`; one line for each committed
change, and none for what was only tried.
"""

from dataclasses import dataclass

import structlog

from controller_core.model.ids import ControllerEpoch, PartitionReplica, TopicPartition
from controller_core.model.metadata import LeaderAndIsr, ReplicaAssignment
from controller_core.model.transitions import IllegalTransition, PartitionStatus, ReplicaStatus

log = structlog.get_logger("state_change")


@dataclass(slots=True, kw_only=True)
class StateChangeLog:
    """Writes the state changes of one term; `cause` is the event that is being handled."""

    controller_epoch: ControllerEpoch
    cause: str = "startup"

    def partition(self, partition: TopicPartition, before: PartitionStatus, after: PartitionStatus) -> None:
        if before is not after:
            self._write("partition", partition, before.value, after.value)

    def replica(self, replica: PartitionReplica, before: ReplicaStatus, after: ReplicaStatus) -> None:
        if before is not after:
            self._write("replica", replica.topic_partition, before.value, after.value, broker=replica.broker)

    def leadership(
        self, partition: TopicPartition, before: LeaderAndIsr | None, after: LeaderAndIsr, *, unclean: bool = False
    ) -> None:
        write = log.warning if unclean else log.info
        write(
            "leadership",
            partition=str(partition),
            before=_leadership(before),
            after=_leadership(after),
            leader_epoch=after.leader_epoch,
            controller_epoch=self.controller_epoch,
            cause=self.cause,
            **({"unclean": True} if unclean else {}),
        )

    def assignment(self, partition: TopicPartition, before: ReplicaAssignment | None, after: ReplicaAssignment) -> None:
        self._write(
            "assignment", partition, list(before.replicas) if before else None, list(after.replicas),
            adding=list(after.adding), removing=list(after.removing),
        )  # fmt: skip

    def refused(
        self,
        illegal: IllegalTransition[TopicPartition, PartitionStatus]
        | IllegalTransition[PartitionReplica, ReplicaStatus],
    ) -> None:
        log.error(
            "illegal transition refused",
            subject=str(illegal.subject),
            current=illegal.current.value,
            wanted=illegal.wanted.value,
            controller_epoch=self.controller_epoch,
            cause=self.cause,
        )

    def not_elected(self, partition: TopicPartition, reason: str) -> None:
        log.warning(
            "no leader elected",
            partition=str(partition),
            reason=reason,
            controller_epoch=self.controller_epoch,
            cause=self.cause,
        )

    def _write(self, event: str, partition: TopicPartition, before: object, after: object, **more: object) -> None:
        log.info(
            event,
            partition=str(partition),
            before=before,
            after=after,
            controller_epoch=self.controller_epoch,
            cause=self.cause,
            **more,
        )


def _leadership(state: LeaderAndIsr | None) -> str | None:
    return f"{state.leader}/{list(state.isr)}" if state else None
