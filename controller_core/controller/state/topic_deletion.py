"""A topic on its way out: whose answers are awaited, and who has refused."""

from collections.abc import Iterable, Set

from controller_core.model.ids import PartitionReplica


class TopicDeletion:
    """The replicas of a topic that have not yet been deleted by their brokers."""

    __slots__ = ("_awaiting_deletion", "_refused", "_started")

    def __init__(self, replicas: Iterable[PartitionReplica] = ()) -> None:
        self._awaiting_deletion = set(replicas)
        self._refused: set[PartitionReplica] = set()
        self._started = False

    @property
    def awaiting_deletion(self) -> Set[PartitionReplica]:
        """The replicas of which no broker has answered yet that it deleted them."""
        return self._awaiting_deletion

    @property
    def refused(self) -> Set[PartitionReplica]:
        """Those that their brokers could not delete; the brokers are sent them again when they start anew."""
        return self._refused

    @property
    def started(self) -> bool:
        """Whether the brokers have been sent it; a new controller has yet to do so."""
        return self._started

    def start(self, replicas: Iterable[PartitionReplica]) -> None:
        """The brokers are sent the deletion of these replicas."""
        self._started = True
        self._awaiting_deletion = set(replicas)

    def mark_deleted(self, replicas: Set[PartitionReplica]) -> None:
        """Brokers answered that they deleted replicas."""
        self._awaiting_deletion -= replicas

    def mark_refused(self, replica: PartitionReplica) -> None:
        """A broker answered that it cannot delete its replica."""
        self._refused.add(replica)

    def mark_sent_again(self, replica: PartitionReplica) -> None:
        """A broker that started anew is sent the deletion of its replica once more."""
        self._refused.discard(replica)
