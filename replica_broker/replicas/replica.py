"""The replicas of a partition: the one on this broker, and the leader's view of the others.

The seed has one class for both (`Replica{broker_id, partition, log, hw, leo, isLeader}`). They share little: only the
local one has a log, and only the others need the time when they were last caught up.

As in Kafka, that time comes from fetches. A fetch at the log's end means that the follower is caught up now. A fetch
that reaches the end at the time of its previous fetch means that it was caught up then. So a follower that fetches
steadily stays in sync under load, although it never reaches the current end.
"""

from dataclasses import dataclass

from controller_core.model.ids import BrokerId
from replica_broker.log.log import Log
from replica_broker.replicas.requests import UNKNOWN_OFFSET

NEVER_MS = float("-inf")


@dataclass(slots=True, kw_only=True)
class Replica:
    """The replica on this broker."""

    broker_id: BrokerId
    log: Log
    high_watermark: int
    """`hw`: all messages below it are committed.

    After a start it is the checkpointed one, or the log's end if that is lower.
    """
    is_leader: bool = False

    @property
    def end_offset(self) -> int:
        """`leo`: the offset of the next message."""
        return self.log.log_end_offset

    def cut_high_watermark(self) -> None:
        """Lower the high watermark to the end of a truncated log."""
        self.high_watermark = max(min(self.high_watermark, self.end_offset), self.log.log_start_offset)


@dataclass(slots=True, kw_only=True)
class Follower:
    """The leader's view of a replica on another broker. Times are monotonic."""

    end_offset: int = UNKNOWN_OFFSET
    last_caught_up_ms: float = NEVER_MS
    last_fetch_ms: float = NEVER_MS
    leader_end_at_last_fetch: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET

    def record_fetch(
        self, offset: int, leader_end: int, now_ms: float, *, log_start_offset: int = UNKNOWN_OFFSET
    ) -> None:
        """Record a fetch at an offset: the follower has all messages before it, from its log start on."""
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        # It has reached the end of its previous fetch, so it was caught up at that time.
        elif offset >= self.leader_end_at_last_fetch != UNKNOWN_OFFSET:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset = offset
        self.leader_end_at_last_fetch = leader_end
        self.last_fetch_ms = now_ms
        self.log_start_offset = log_start_offset

    def begin_again(self, now_ms: float, *, is_in_sync: bool, is_new_leader: bool) -> None:
        """Begin a leader epoch. ISR members have the full time lag to prove that they follow; the others have none."""
        self.last_caught_up_ms = now_ms if is_in_sync else NEVER_MS
        if is_new_leader:
            self.end_offset = UNKNOWN_OFFSET
            self.last_fetch_ms = NEVER_MS
            self.leader_end_at_last_fetch = UNKNOWN_OFFSET
            self.log_start_offset = UNKNOWN_OFFSET

    def is_caught_up(self, leader_end: int, now_ms: float, max_time_lag_ms: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.last_caught_up_ms <= max_time_lag_ms
