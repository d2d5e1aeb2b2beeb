"""The list of removed replicas in memory. `znodes.removed_replicas` writes it."""

from dataclasses import dataclass, replace

from controller_core.controller.state.entries import Entries
from controller_core.model.ids import NO_EPOCH, LeaderEpoch, PartitionReplica, TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedReplica:
    """A replica that is no longer assigned, and whose broker has not answered yet that it deleted the log."""

    topic_id: TopicId | None
    """The id of the topic to which the log belongs."""
    leader_epoch: LeaderEpoch = NO_EPOCH
    """The leader epoch at the removal. An answer to a request under an older epoch is about a former removal."""
    is_refused: bool = False
    """True if the broker answered that it cannot delete the log. It is sent the request again when it restarts."""


class RemovedReplicas(Entries[PartitionReplica, RemovedReplica]):
    """The replicas whose logs may still be on their brokers."""

    def enter(self, replica: PartitionReplica, topic_id: TopicId | None, leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        """Add a removed replica."""
        self._entries[replica] = RemovedReplica(topic_id=topic_id, leader_epoch=leader_epoch)

    def strike(self, replica: PartitionReplica) -> None:
        """Remove an entry, if there is one: its log is gone or needed again, or nobody waits for it any longer."""
        self._entries.pop(replica, None)

    def mark_refused(self, replica: PartitionReplica, *, is_refused: bool) -> None:
        """Record that its broker cannot delete it, or is to be asked again."""
        entry = self._entries[replica]
        if entry.is_refused is not is_refused:
            self._entries[replica] = replace(entry, is_refused=is_refused)
