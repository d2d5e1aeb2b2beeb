"""One partition that follows a leader in one epoch: its next step, and its pause before it."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from controller_core.model.ids import NO_EPOCH, LeaderEpoch
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.requests import Asked
from replica_broker.replicas.settings import ReplicaSettings

FIRST_PAUSE_MS: Final = 20
MOST_DOUBLINGS: Final = 16


class Phase(Enum):
    """The next step of a partition."""

    CUT = "truncate what the leader does not have"
    FETCH = "fetch"
    FIND_RANGE = "find the range of the leader's log"


@dataclass(slots=True, eq=False)
class Following:
    """The state of following for one partition."""

    partition: Partition
    leader_epoch: LeaderEpoch
    phase: Phase
    paused_until_ms: float = float("-inf")
    pauses: int = 0
    """The number of pauses since the last successful answer."""

    @property
    def is_current(self) -> bool:
        """True if the partition still follows in that epoch."""
        return (
            self.partition.leader_epoch == self.leader_epoch
            and not self.partition.is_leader
            and not self.partition.is_offline
        )

    def pause(self, now_ms: float, longest_ms: int) -> None:
        """Pause, at first shortly, because the leader may learn its epoch a moment later than the follower."""
        self.paused_until_ms = now_ms + min(FIRST_PAUSE_MS * 2**self.pauses, longest_ms)
        self.pauses = min(self.pauses + 1, MOST_DOUBLINGS)

    def make_request(self, settings: ReplicaSettings) -> Asked:
        """Return the fetch of the log's next messages."""
        log = self.partition.log
        latest = log.latest_epoch if settings.truncate_to == "leader epoch" else None
        return Asked(
            offset=log.log_end_offset,
            max_bytes=settings.fetch_partition_max_bytes,
            current_leader_epoch=self.leader_epoch,
            last_fetched_epoch=NO_EPOCH if latest is None else latest,
            log_start_offset=log.log_start_offset,
            topic_id=self.partition.topic_id,
        )
