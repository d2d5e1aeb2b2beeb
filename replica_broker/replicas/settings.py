"""What can be set about replicas: the seed's three lags by their names, and the times and sizes of Kafka's
followers."""

from dataclasses import dataclass
from typing import Literal

from controller_core.model.ids import BrokerId

TruncateTo = Literal["leader epoch", "high watermark"]
IsrWrites = Literal["AlterPartition", "ZooKeeper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    """The defaults are Kafka's, where Kafka has the setting."""

    broker_id: BrokerId
    max_time_lag_ms: int = 30_000
    """MAX_TIME_LAG: who has not been caught up for so long leaves the ISR; `replica.lag.time.max.ms`."""
    max_bytes_lag: int | None = None
    """MAX_BYTES_LAG: who is further behind leaves the ISR. None: nobody leaves for that, as in Kafka since 0.9,
    because a burst of messages would throw out all followers at once."""
    min_bytes_lag: int | None = None
    """MIN_BYTES_LAG: who is no further behind the last of the ISR may join it, where it has all that is committed.
    None: that alone is enough, as in Kafka; a follower of a busy partition would hardly ever be 0 bytes behind its
    leader."""
    truncate_to: TruncateTo = "leader epoch"
    """Where a follower cuts its log before it follows: by leader epochs (KIP-101), or as the seed writes it, which
    loses committed messages where the high watermark of a follower was behind."""
    isr_writes: IsrWrites = "AlterPartition"
    """Whether the controller writes the ISR when asked (KIP-497), or the leader does so itself, as the seed writes
    it."""
    fetch_wait_max_ms: int = 500
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 10 * 1024 * 1024
    fetch_partition_max_bytes: int = 1024 * 1024
    fetch_backoff_ms: int = 1_000
    fetchers_per_leader: int = 1
    high_watermark_checkpoint_interval_ms: int = 5_000
    retention_check_interval_ms: int = 300_000
    flush_interval_ms: int | None = 60_000
    """How often what was appended is flushed, beside everything else, so that not all of it is read after a crash.
    None: only when the broker ends."""
    isr_retry_backoff_ms: int = 50
    """Before the controller is asked again for an ISR that may have been written."""
    isr_notification_interval_ms: int = 2_500
    """How long the leader gathers changes that it wrote itself, before it tells the controller of them."""
