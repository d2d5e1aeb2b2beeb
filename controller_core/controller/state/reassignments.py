"""The running reassignments, and the answers that the last steps of each wait for."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from controller_core.controller.state.entries import Entries
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.metadata import ReplicaAssignment
from controller_core.zk.session import ZkVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningReassignment:
    """A reassignment in progress: its assignment, and what its last steps wait for."""

    full: ReplicaAssignment
    """AR as ZooKeeper has it during the reassignment: RAR + OAR, with what is added and removed."""
    awaiting_deletion: frozenset[BrokerId] | None = None
    """The brokers that have not yet answered if they deleted their replica; None before step 9."""
    deleted: frozenset[BrokerId] = frozenset()
    """The brokers that have answered that they deleted their replica."""

    @property
    def target(self) -> tuple[BrokerId, ...]:
        return self.full.target

    @property
    def is_complete(self) -> bool:
        """True if all brokers have answered, and AR can become RAR."""
        return self.awaiting_deletion is not None and not self.awaiting_deletion


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRequest:
    """A request for one partition in its own znode."""

    target: tuple[BrokerId, ...]
    version: ZkVersion


class RunningReassignments(Entries[TopicPartition, RunningReassignment]):
    """Partition -> its running reassignment, for readers. `Reassignments` changes them."""

    def __init__(self) -> None:
        super().__init__()
        self._completable: set[TopicPartition] = set()
        self._completable_since_ms: float | None = None
        self._asked_singly: dict[TopicPartition, SingleRequest] = {}

    @property
    def asked_singly(self) -> Mapping[TopicPartition, SingleRequest]:
        """The requests as last read, except those that were removed since."""
        return self._asked_singly

    @property
    def completable(self) -> Set[TopicPartition]:
        """The reassignments that wait for no answers."""
        return self._completable

    @property
    def completable_since_ms(self) -> float | None:
        """The time since when some of them wait to be ended together with others."""
        return self._completable_since_ms


class Reassignments(RunningReassignments):
    """The running reassignments, and their changes."""

    def begin(self, partition: TopicPartition, full: ReplicaAssignment) -> None:
        """Begin a reassignment, or replace the target of a running one."""
        self._entries[partition] = RunningReassignment(full=full)

    def await_deletion(self, partition: TopicPartition, brokers: Iterable[BrokerId]) -> None:
        """Record the end of step 9: the brokers have to answer that they deleted their replicas."""
        self._entries[partition] = replace(self._entries[partition], awaiting_deletion=frozenset(brokers))

    def await_returned(self, brokers: Iterable[BrokerId]) -> dict[TopicPartition, frozenset[BrokerId]]:
        """Wait for returned brokers that still have replicas of reassignments in their last steps.

        Return these replicas.
        """
        returned = frozenset(brokers)
        owing = {
            partition: returned.intersection(run.full.removing) - run.deleted
            for partition, run in self._entries.items()
            if run.awaiting_deletion is not None
        }
        owing = {partition: brokers for partition, brokers in owing.items() if brokers}
        for partition, brokers in owing.items():
            self.await_deletion(partition, brokers.union(self._entries[partition].awaiting_deletion or ()))
        return owing

    def mark_deleted(self, partition: TopicPartition, broker: BrokerId) -> None:
        """Record that a broker deleted its replica, if the reassignment is in its last steps."""
        run = self._entries[partition]
        if run.awaiting_deletion is not None:
            self._entries[partition] = RunningReassignment(
                full=run.full, awaiting_deletion=run.awaiting_deletion - {broker}, deleted=run.deleted | {broker}
            )

    def stop_awaiting(self, partition: TopicPartition, brokers: Set[BrokerId]) -> None:
        """Stop waiting for the answers of the brokers."""
        run = self._entries[partition]
        if run.awaiting_deletion is not None and not run.awaiting_deletion.isdisjoint(brokers):
            self._entries[partition] = replace(run, awaiting_deletion=run.awaiting_deletion - brokers)

    def end(self, partition: TopicPartition) -> RunningReassignment:
        """End the reassignment, complete or not. Return its last state."""
        self._completable.discard(partition)
        if not self._completable:
            self._completable_since_ms = None
        return self._entries.pop(partition)

    # Requests in znodes of their own

    def set_asked_singly(self, requests: Mapping[TopicPartition, SingleRequest]) -> None:
        """Set the present requests."""
        self._asked_singly = dict(requests)

    def take_asked_singly(
        self, served: Mapping[TopicPartition, tuple[BrokerId, ...]]
    ) -> dict[TopicPartition, ZkVersion]:
        """Take out the requests for these targets, which are to be removed. Return their versions."""
        asked = self._asked_singly
        taken = [p for p in served if p in asked and asked[p].target == served[p]] if asked else []
        return {partition: asked.pop(partition).version for partition in taken}

    # Complete reassignments that wait to be ended together

    def mark_completable(self, partitions: Iterable[TopicPartition]) -> None:
        """Mark those of the partitions whose reassignments are complete."""
        running = self._entries
        self._completable.update(p for p in partitions if (run := running.get(p)) is not None and run.is_complete)

    def begin_waiting(self, now_ms: float) -> None:
        """Start the wait of the complete reassignments for others."""
        self._completable_since_ms = now_ms

    def take_completable(self) -> list[TopicPartition]:
        """Take out the complete reassignments, sorted. None of them waits any longer."""
        taken = sorted(self._completable)
        self._completable, self._completable_since_ms = set(), None
        return taken
