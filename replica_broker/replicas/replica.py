"""The replicas of a partition: the one on this broker, and what a leader knows of the others.

The seed has one class for both (`Replica{broker_id, partition, log, hw, leo, isLeader}`). They share little: only the
own one has a log, and only of the others must be known when they were caught up last.

When a follower was caught up is known by its fetches alone, as in Kafka. A fetch at the end of the log says that it is
caught up now. A fetch that reaches what was the end when it fetched before says that it was caught up then: so a
follower that fetches steadily stays in sync while messages keep coming, and never sees the end itself.
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
    """`hw`: all below it is committed. After a start it is the one that was checkpointed, or the log's end."""
    is_leader: bool = False

    @property
    def end_offset(self) -> int:
        """`leo`: the offset of the next message."""
        return self.log.log_end_offset

    def cut_high_watermark(self) -> None:
        """After the log was cut: nothing is committed that is not there."""
        self.high_watermark = max(min(self.high_watermark, self.end_offset), self.log.log_start_offset)


@dataclass(slots=True, kw_only=True)
class Follower:
    """What the leader knows of a replica elsewhere. Times are monotonic."""

    end_offset: int = UNKNOWN_OFFSET
    last_caught_up_ms: float = NEVER_MS
    last_fetch_ms: float = NEVER_MS
    leader_end_at_last_fetch: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET

    def record_fetch(
        self, offset: int, leader_end: int, now_ms: float, *, log_start_offset: int = UNKNOWN_OFFSET
    ) -> None:
        """The follower asks for what begins at an offset: it has all before it, from its log's start on."""
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.leader_end_at_last_fetch != UNKNOWN_OFFSET:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset = offset
        self.leader_end_at_last_fetch = leader_end
        self.last_fetch_ms = now_ms
        self.log_start_offset = log_start_offset

    def begin_again(self, now_ms: float, *, is_in_sync: bool, is_new_leader: bool) -> None:
        """A leader epoch begins: who is in the ISR has the whole time to show that it follows, everybody else none."""
        self.last_caught_up_ms = now_ms if is_in_sync else NEVER_MS
        if is_new_leader:
            self.end_offset = UNKNOWN_OFFSET
            self.last_fetch_ms = NEVER_MS
            self.leader_end_at_last_fetch = UNKNOWN_OFFSET
            self.log_start_offset = UNKNOWN_OFFSET

    def is_caught_up(self, leader_end: int, now_ms: float, max_time_lag_ms: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.last_caught_up_ms <= max_time_lag_ms
