"""The structured log of every state change: partition or replica, old and new state, cause, and epochs.

People read it after an incident, like Kafka's `state-change.log`. It has every committed change, and no mere attempt.
The changes of an event are gathered and written at its end, after the requests to brokers. Partitions with the same
change share a line, because a broker's death means a hundred thousand changes.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import structlog

from controller_core.controller.sending.broker_requests import ControllerIdentity
from controller_core.model.ids import PartitionReplica, TopicPartition
from controller_core.model.metadata import LeaderAndIsr, ReplicaAssignment
from controller_core.model.transitions import IllegalTransition, PartitionStatus, ReplicaStatus

log = structlog.get_logger("state_change")

MOST_IN_A_LINE: Final = 100
"""The maximum of partitions in a line. Log collectors cut lines that are too long."""

LINES_IN_A_TURN: Final = 50
"""The number of lines to write before the event loop gets its turn: a few milliseconds."""

_Alike: TypeAlias = tuple[str, Any, Any, Any]
"""The common part of the partitions in a line: the kind of change, the old state, the new state, and one more thing."""


@dataclass(slots=True, kw_only=True)
class StateChangeLog:
    """Gathers the state changes of one term until `write`. `cause` is the event that is being handled."""

    identity: ControllerIdentity
    cause: str = "startup"
    _gathered: defaultdict[_Alike, list[TopicPartition]] = field(default_factory=lambda: defaultdict(list))

    def log_partitions(
        self, partitions: Iterable[TopicPartition], before: PartitionStatus, after: PartitionStatus
    ) -> None:
        self._gathered["partition", before, after, None] += partitions

    def log_replica(self, replica: PartitionReplica, before: ReplicaStatus, after: ReplicaStatus) -> None:
        if before is not after:
            self._gathered["replica", before, after, replica.broker].append(replica.topic_partition)

    def log_leadership(
        self, partition: TopicPartition, before: LeaderAndIsr | None, after: LeaderAndIsr, *, unclean: bool = False
    ) -> None:
        self._gathered["leadership", before, after, unclean].append(partition)

    def log_assignment(
        self, partition: TopicPartition, before: ReplicaAssignment | None, after: ReplicaAssignment
    ) -> None:
        self._gathered["assignment", before, after, None].append(partition)

    def log_refused(
        self,
        illegal: IllegalTransition[TopicPartition, PartitionStatus]
        | IllegalTransition[PartitionReplica, ReplicaStatus],
    ) -> None:
        log.error(
            "illegal transition refused",
            subject=str(illegal.subject),
            current=illegal.current.value,
            wanted=illegal.wanted.value,
            controller_epoch=self.identity.epoch,
            cause=self.cause,
        )

    def log_not_elected(self, partition: TopicPartition, reason: str) -> None:
        self._gathered["no leader elected", None, reason, None].append(partition)

    @contextmanager
    def record_nested(self, cause: str) -> Iterator[None]:
        """Log changes under another cause and write them at the end. Earlier gathered changes are kept."""
        outer = self.cause, self._gathered
        self.cause, self._gathered = cause, defaultdict(list)
        try:
            yield
        finally:
            self.write()
            self.cause, self._gathered = outer

    def write(self) -> None:
        """Write what was gathered since the last time."""
        for _ in self._lines():
            pass

    async def write_gently(self, pause: Callable[[], Awaitable[None]]) -> None:
        """Like `write`, but give the event loop a turn after some lines, and then call `pause`."""
        lines = self._lines()
        try:
            for number, _ in enumerate(lines):
                if number % LINES_IN_A_TURN == LINES_IN_A_TURN - 1:
                    await asyncio.sleep(0)
                    await pause()
        # Cancellation, or an error in `pause`, must not lose the other lines.
        finally:
            for _ in lines:
                pass

    def _lines(self) -> Iterator[None]:
        gathered, self._gathered = self._gathered, defaultdict(list)
        for alike, partitions in gathered.items():
            write = log.warning if alike[0] == "no leader elected" or alike[3] is True else log.info
            for start in range(0, len(partitions), MOST_IN_A_LINE):
                named = list(map(str, partitions[start : start + MOST_IN_A_LINE]))
                fields = dict(_describe(*alike))
                write(alike[0], partitions=named, **fields, controller_epoch=self.identity.epoch, cause=self.cause)
                yield


def _describe(kind: str, before: Any, after: Any, more: Any) -> Iterator[tuple[str, object]]:
    """Yield the fields of a line from what its partitions have in common."""
    match kind:
        case "leadership":
            yield from (("before", _leadership(before)), ("after", _leadership(after)))
            yield "leader_epoch", after.leader_epoch
            if more:
                yield "unclean", True
        case "assignment":
            yield from (("before", list(before.replicas) if before else None), ("after", list(after.replicas)))
            yield from (("adding", list(after.adding)), ("removing", list(after.removing)))
        case "no leader elected":
            yield "reason", after
        case _:
            yield from (("before", before.value), ("after", after.value))
            if more is not None:
                yield "broker", more


def _leadership(state: LeaderAndIsr | None) -> str | None:
    return f"{state.leader}/{list(state.isr)}" if state else None
