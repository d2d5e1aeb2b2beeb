"""The list of removed replicas as it is known: see `znodes.removed_replicas`, which writes it."""

from dataclasses import dataclass, replace

from controller_core.controller.state.entries import Entries
from controller_core.model.ids import NO_EPOCH, LeaderEpoch, PartitionReplica, TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedReplica:
    """A replica that is assigned no more, and whose broker has not yet answered that it deleted the log."""

    topic_id: TopicId | None
    """Of the topic that the log is of."""
    leader_epoch: LeaderEpoch = NO_EPOCH
    """When it was removed: an answer to what the broker was sent under an older one is about a former removal."""
    is_refused: bool = False
    """Whether the broker answered that it cannot delete it; it is sent the request again when it starts anew."""


class RemovedReplicas(Entries[PartitionReplica, RemovedReplica]):
    """The replicas whose logs may still be on their brokers."""

    def enter(self, replica: PartitionReplica, topic_id: TopicId | None, leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        """A replica was removed."""
        self._entries[replica] = RemovedReplica(topic_id=topic_id, leader_epoch=leader_epoch)

    def strike(self, replica: PartitionReplica) -> None:
        """Its log is gone, or is needed again, or nobody waits any longer; there may be no entry of it."""
        self._entries.pop(replica, None)

    def mark_refused(self, replica: PartitionReplica, *, is_refused: bool) -> None:
        """Its broker cannot delete it; or is to be asked again."""
        entry = self._entries[replica]
        if entry.is_refused is not is_refused:
            self._entries[replica] = replace(entry, is_refused=is_refused)
