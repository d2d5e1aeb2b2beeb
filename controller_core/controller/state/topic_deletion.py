"""The deletion of a topic: the answers that it waits for, and the refusals."""

from collections.abc import Iterable, Set

from controller_core.model.ids import PartitionReplica


class TopicDeletion:
    """The replicas of a topic that their brokers have not deleted yet."""

    __slots__ = ("_awaiting_deletion", "_refused", "_started")

    def __init__(self, replicas: Iterable[PartitionReplica] = ()) -> None:
        self._awaiting_deletion = set(replicas)
        self._refused: set[PartitionReplica] = set()
        self._started = False

    @property
    def awaiting_deletion(self) -> Set[PartitionReplica]:
        """The replicas whose brokers have not answered yet that they deleted them."""
        return self._awaiting_deletion

    @property
    def refused(self) -> Set[PartitionReplica]:
        """The replicas that their brokers could not delete. The brokers are sent them again when they restart."""
        return self._refused

    @property
    def started(self) -> bool:
        """True if the brokers have been sent the deletion. A new controller still has to send it."""
        return self._started

    def start(self, replicas: Iterable[PartitionReplica]) -> None:
        """Record that the brokers are sent the deletion of these replicas."""
        self._started = True
        self._awaiting_deletion = set(replicas)

    def mark_deleted(self, replicas: Set[PartitionReplica]) -> None:
        """Record replicas that brokers deleted."""
        self._awaiting_deletion -= replicas

    def mark_refused(self, replica: PartitionReplica) -> None:
        """Record a replica that its broker cannot delete."""
        self._refused.add(replica)

    def mark_sent_again(self, replica: PartitionReplica) -> None:
        """Record that a restarted broker is sent the deletion of its replica again."""
        self._refused.discard(replica)
