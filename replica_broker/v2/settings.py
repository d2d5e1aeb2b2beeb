"""What can be set about design v2: the seed's times by their names, and the bounds that it does not give."""

from dataclasses import dataclass
from typing import Literal

BecomingLeaderHighWatermark = Literal["checkpoint", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class V2Settings:
    """The seed names the times and gives no values."""

    preferred_replica_time_ms: int = 1_000
    """PreferredReplicaTime: how long the others leave the race to the first of the AR."""
    keep_in_sync_time_ms: int = 5_000
    """KeepInSyncTime: how long a new leader waits for the live replicas of the AR."""
    state_change_queue_bound: int = 1_000
    """From how many requests on a broker's queue is full."""
    becoming_leader_high_watermark: BecomingLeaderHighWatermark = "checkpoint"
    """What a new leader takes as committed. `r.hw = r.leo` of the seed is "end", with a TODO that asks for the
    checkpointed one: at the end of the log are messages that no other replica may have, and consumers see them."""
    commit_interval_ms: int = 100
    """How often the commit task looks whether a reassignment is at its end."""
