"""The leader's high watermark, and the ISR size that it needs to move."""

from controller_core.controller.loop.clock import Clock
from replica_broker.replicas.isr import Lags, next_high_watermark
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.seams import TopicConfigs
from replica_broker.replicas.settings import ReplicaSettings


class Committing:
    """Advances the high watermarks of the partitions that this broker leads."""

    def __init__(self, settings: ReplicaSettings, configs: TopicConfigs, clock: Clock) -> None:
        self.lags = Lags(
            max_time_lag_ms=settings.max_time_lag_ms,
            max_bytes_lag=settings.max_bytes_lag,
            min_bytes_lag=settings.min_bytes_lag,
        )
        self._configs = configs
        self._clock = clock

    def min_insync_replicas(self, partition: Partition) -> int:
        """Return `min.insync.replicas`, but at most the number of replicas, as Kafka does since 3.7."""
        configured = self._configs.min_insync_replicas(partition.topic_partition.topic)
        return min(configured, max(1, len(partition.assigned_replicas)))

    def advance(self, partition: Partition) -> None:
        """Set `leader.hw = min of leo of every replica in ISR`, never backwards, and wake its waiters."""
        if not partition.is_leader or partition.is_offline:
            return
        before = partition.replica.high_watermark
        partition.replica.high_watermark = next_high_watermark(
            partition.view(self._clock.monotonic_ms()),
            self.lags,
            min_insync_replicas=self.min_insync_replicas(partition),
        )
        if partition.replica.high_watermark != before:
            partition.notify()
