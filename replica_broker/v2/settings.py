"""The settings of design v2: the seed's times, and limits that it does not name."""

from dataclasses import dataclass
from typing import Literal

BecomingLeaderHighWatermark = Literal["checkpoint", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class V2Settings:
    """The settings of design v2. The seed names the times without values."""

    preferred_replica_time_ms: int = 1_000
    """PreferredReplicaTime: milliseconds that the others leave an election to the first replica of the AR."""
    keep_in_sync_time_ms: int = 5_000
    """KeepInSyncTime: milliseconds that a new leader waits for the live replicas of the AR."""
    state_change_queue_bound: int = 1_000
    """The number of requests at which a broker's queue is full."""
    becoming_leader_high_watermark: BecomingLeaderHighWatermark = "checkpoint"
    """The high watermark of a new leader. The seed's `r.hw = r.leo` is "end", with a TODO for the checkpointed one.

    The end of the log may have messages that no other replica has, and consumers would see them.
    """
    commit_interval_ms: int = 100
    """Milliseconds between the commit task's checks of reassignments."""
