"""Replicas that serve clients only after `r.partition.leader = r` of the seed.

A new leader serves its followers at once, because it waits for them. It serves clients after it has written the ISR;
until then they get NOT_LEADER_OR_FOLLOWER and retry.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.wire.messages import ErrorCode
from replica_broker.log.log import Appended
from replica_broker.replicas.errors import NotLeader
from replica_broker.replicas.replicas import Replicas
from replica_broker.replicas.requests import CONSUMER, Fetch, Fetched, ListedOffset


class OpenedReplicas(Replicas):
    """Replicas with a set `opened` of the partitions that clients may use."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.opened: set[TopicPartition] = set()

    def append(
        self, topic_partition: TopicPartition, records: bytes, *, acks: int, timeout_ms: int
    ) -> Callable[[], Awaitable[Appended]]:
        """Append for a producer. See `Replicas.append`."""
        self._require_open(topic_partition)
        return super().append(topic_partition, records, acks=acks, timeout_ms=timeout_ms)

    async def fetch(self, asked: Fetch) -> dict[TopicPartition, Fetched]:
        """Return messages. See `Replicas.fetch`."""
        answers = await super().fetch(asked)
        if asked.is_from_follower:
            return answers
        refusal = Fetched(error_code=ErrorCode.not_leader_or_follower)
        return {each: refusal if self._is_closed(each) else answer for each, answer in answers.items()}

    def list_offset(
        self,
        topic_partition: TopicPartition,
        timestamp_ms: int,
        *,
        current_leader_epoch: LeaderEpoch,
        replica_id: BrokerId = CONSUMER,
    ) -> ListedOffset:
        """Return an offset. See `Replicas.list_offset`."""
        if replica_id == CONSUMER:
            self._require_open(topic_partition)
        return super().list_offset(
            topic_partition, timestamp_ms, current_leader_epoch=current_leader_epoch, replica_id=replica_id
        )

    def _is_closed(self, topic_partition: TopicPartition) -> bool:
        partition = self.hosted.get(topic_partition)
        return partition is not None and partition.is_leader and topic_partition not in self.opened

    def _require_open(self, topic_partition: TopicPartition) -> None:
        if self._is_closed(topic_partition):
            raise NotLeader(topic_partition, "this broker will lead it, but still waits for its followers")
