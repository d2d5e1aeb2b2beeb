"""What people ask of the cluster in the soak, by way of ZooKeeper, and what they expect to find in the end."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, assert_never

from kazoo.exceptions import KazooException

from devcluster.processes import ConditionTimeoutError, wait_until
from devcluster.soak.operations import (
    AddPartitions,
    CancelReassignment,
    ChangeConfig,
    CreateTopic,
    DeleteTopic,
    ElectPreferred,
    Partition,
    Reassign,
    RecreateTopic,
    ReplaceReassignment,
    Replicas,
    SingleRequest,
    TopicOperation,
)
from devcluster.soak.servers import Impossible
from devcluster.znodes import ClusterZnodes

_DELETION_DEADLINE_S: Final = 20.0


@dataclass(slots=True)
class People:
    """They ask one thing after another, but for those who wait until a topic is deleted."""

    znodes: ClusterZnodes
    expected: dict[str, int] = field(default_factory=dict)
    """The topics that must be there in the end, and how many partitions they must have."""
    unexpected: set[str] = field(default_factory=set)
    """The topics that must be gone in the end."""
    _asking: Lock = field(default_factory=Lock)
    _one: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=1))
    _patient: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=4))

    def submit(self, operation: TopicOperation) -> Future[None]:
        thread = self._patient if isinstance(operation, RecreateTopic) else self._one
        return thread.submit(self.ask, operation)

    def close(self) -> None:
        """Returns when nothing that was submitted is left."""
        self._one.shutdown(cancel_futures=True)
        self._patient.shutdown(cancel_futures=True)

    def ask(self, operation: TopicOperation) -> None:
        """Raises `Impossible`, also where ZooKeeper does not answer: then it is not known whether it was asked for."""
        try:
            if isinstance(operation, RecreateTopic):
                self._recreate(operation)
            else:
                with self._asking:
                    self._ask(operation)
        except KazooException as error:
            if isinstance(operation, CreateTopic | DeleteTopic | RecreateTopic | AddPartitions):
                self._expect_nothing_of(operation.topic)
            raise Impossible(f"ZooKeeper says {type(error).__name__}") from error

    def _ask(self, operation: SingleRequest) -> None:
        match operation:
            case CreateTopic():
                self._create(operation.topic, operation.replicas)
            case DeleteTopic():
                self._delete(operation.topic)
            case AddPartitions():
                self._add_partitions(operation)
            case ChangeConfig():
                self._require_topic(operation.topic)
                self.znodes.change_config(operation.topic, operation.config)
            case Reassign():
                self._require(not self.znodes.has_reassignments(), "another reassignment is under way")
                self._require_partitions(list(operation.targets))
                self.znodes.reassign(operation.targets)
            case ReplaceReassignment():
                self._reassign_elsewhere(operation.targets)
            case CancelReassignment():
                self._reassign_elsewhere({partition: self._origin(partition) for partition in operation.partitions})
            case ElectPreferred():
                self._require(not self.znodes.has_election(), "another election is under way")
                self.znodes.elect_preferred(operation.partitions)
            case _:
                assert_never(operation)

    def _create(self, topic: str, replicas: Sequence[Replicas]) -> None:
        self._require(not self._is_marked(topic), f"{topic} is still being deleted")
        self._require(not self._exists(topic), f"{topic} is there already")
        self._expect_nothing_of(topic)
        self.znodes.create_topic(topic, replicas)
        self.expected[topic] = len(replicas)

    def _delete(self, topic: str) -> None:
        self._require_topic(topic)
        self._expect_nothing_of(topic)
        self.znodes.mark_for_deletion(topic)
        self.unexpected.add(topic)

    def _recreate(self, operation: RecreateTopic) -> None:
        with self._asking:
            self._delete(operation.topic)
        try:
            wait_until(
                lambda: not self._exists(operation.topic) and not self._is_marked(operation.topic),
                f"{operation.topic} is deleted",
                deadline_s=_DELETION_DEADLINE_S,
            )
        except ConditionTimeoutError as error:
            raise Impossible(str(error)) from error
        with self._asking:
            self._create(operation.topic, operation.replicas)

    def _add_partitions(self, operation: AddPartitions) -> None:
        self._require_topic(operation.topic)
        first = len(self.znodes.partitions(operation.topic))
        self._expect_nothing_of(operation.topic)
        self.znodes.add_partitions(operation.topic, dict(enumerate(operation.replicas, start=first)))
        self.expected[operation.topic] = first + len(operation.replicas)

    def _reassign_elsewhere(self, targets: Mapping[Partition, Replicas]) -> None:
        """As far as it is still under way; whatever else is asked for stays."""
        asked = self.znodes.reassignments()
        changed = {partition: target for partition, target in targets.items() if partition in asked}
        self._require(bool(changed), "the reassignment is finished")
        self.znodes.rewrite_reassignment({**asked, **changed})

    def _origin(self, partition: Partition) -> Replicas:
        topic, number = partition
        return self.znodes.origin(topic, number)

    def _require_partitions(self, partitions: Sequence[Partition]) -> None:
        for topic in {topic for topic, _ in partitions}:
            self._require_topic(topic)
            last = max(number for name, number in partitions if name == topic)
            self._require(last < len(self.znodes.partitions(topic)), f"{topic}-{last} is not there")

    def _require_topic(self, topic: str) -> None:
        self._require(self._exists(topic), f"{topic} is not there")
        self._require(not self._is_marked(topic), f"{topic} is being deleted")

    def _require(self, is_so: bool, otherwise: str) -> None:
        if not is_so:
            raise Impossible(otherwise)

    def _expect_nothing_of(self, topic: str) -> None:
        self.expected.pop(topic, None)
        self.unexpected.discard(topic)

    def _exists(self, topic: str) -> bool:
        return self.znodes.client.exists(f"/brokers/topics/{topic}") is not None

    def _is_marked(self, topic: str) -> bool:
        return self.znodes.client.exists(f"/admin/delete_topics/{topic}") is not None
