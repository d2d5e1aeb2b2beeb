"""The settings of replicas: the seed's three lags, and the times and sizes of Kafka's followers."""

from dataclasses import dataclass
from typing import Literal

from controller_core.model.ids import BrokerId

TruncateTo = Literal["leader epoch", "high watermark"]
IsrWrites = Literal["AlterPartition", "ZooKeeper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    """The settings of the replicas of one broker. The defaults are Kafka's if Kafka has the setting."""

    broker_id: BrokerId
    max_time_lag_ms: int = 30_000
    """MAX_TIME_LAG: a follower that is not caught up for so long leaves the ISR; `replica.lag.time.max.ms`."""
    max_bytes_lag: int | None = None
    """MAX_BYTES_LAG: a follower that is further behind leaves the ISR.

    None, as in Kafka since 0.9: no limit, because a burst of messages would remove all followers at once.
    """
    min_bytes_lag: int | None = None
    """MIN_BYTES_LAG: a follower with all committed messages that is no further behind the last of the ISR may join it.

    None, as in Kafka: no limit, because a follower of a busy partition is hardly ever 0 bytes behind its leader.
    """
    truncate_to: TruncateTo = "leader epoch"
    """The point at which a follower truncates: by leader epochs (KIP-101), or at its high watermark as in the seed.

    The seed's way loses committed messages if the follower's high watermark was behind.
    """
    isr_writes: IsrWrites = "AlterPartition"
    """The writer of the ISR: the controller on request (KIP-497), or the leader itself as in the seed."""
    fetch_wait_max_ms: int = 500
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 10 * 1024 * 1024
    fetch_partition_max_bytes: int = 1024 * 1024
    fetch_backoff_ms: int = 1_000
    fetchers_per_leader: int = 1
    high_watermark_checkpoint_interval_ms: int = 5_000
    retention_check_interval_ms: int = 300_000
    flush_interval_ms: int | None = 60_000
    """Milliseconds between background flushes of all logs, which shorten the scan after a crash.

    None: only when the broker ends.
    """
    isr_retry_backoff_ms: int = 50
    """Milliseconds before the controller is asked again for an ISR whose write is uncertain."""
    isr_notification_interval_ms: int = 2_500
    """Milliseconds for which the leader collects its own ISR changes before it notifies the controller."""
