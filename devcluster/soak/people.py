"""The users of the soak: their requests through znodes or the controller, and the state that they expect at the end."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, assert_never

from kazoo.exceptions import KazooException

from devcluster.clients.znodes import ClusterZnodes
from devcluster.running.processes import ConditionTimeoutError, wait_until
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
from devcluster.soak.requests import ControllerClient, Refused
from devcluster.soak.servers import Impossible

_DELETION_DEADLINE_S: Final = 20.0


@dataclass(slots=True)
class People:
    """Users who make one request after another, except those who wait until a topic is deleted."""

    znodes: ClusterZnodes
    controller: ControllerClient
    expected: dict[str, int] = field(default_factory=dict)
    """The topics that must be there at the end, and their numbers of partitions."""
    unexpected: set[str] = field(default_factory=set)
    """The topics that must be gone at the end."""
    _asking: Lock = field(default_factory=Lock)
    _one: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=1))
    _patient: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=4))

    def submit(self, operation: TopicOperation) -> Future[None]:
        thread = self._patient if isinstance(operation, RecreateTopic) else self._one
        return thread.submit(self.ask, operation)

    def close(self) -> None:
        """Wait until nothing that was submitted is left."""
        self._one.shutdown(cancel_futures=True)
        self._patient.shutdown(cancel_futures=True)

    def ask(self, operation: TopicOperation) -> None:
        """Make the request. Raises `Impossible`, also if ZooKeeper does not answer: the request may then be made or
        not.
        """
        try:
            if isinstance(operation, RecreateTopic):
                self._recreate(operation)
            else:
                with self._asking:
                    self._ask(operation)
        except KazooException as error:
            raise Impossible(f"ZooKeeper says {type(error).__name__}") from error

    def _ask(self, operation: SingleRequest) -> None:
        match operation:
            case CreateTopic():
                self._create(operation)
            case DeleteTopic():
                self._delete(operation)
            case AddPartitions():
                self._add_partitions(operation)
            case ChangeConfig():
                self._require_topic(operation.topic)
                self.znodes.change_config(operation.topic, operation.config)
            case Reassign() | ReplaceReassignment() if operation.by_request:
                self.controller.reassign(self._present(operation.targets))
            case Reassign():
                self._require(not self.znodes.has_reassignments(), "another reassignment is under way")
                self.znodes.reassign(self._present(operation.targets))
            case ReplaceReassignment():
                self._reassign_elsewhere(operation.targets)
            case CancelReassignment() if operation.by_request:
                self.controller.reassign(dict.fromkeys(operation.partitions))
            case CancelReassignment():
                self._reassign_elsewhere({partition: self._origin(partition) for partition in operation.partitions})
            case ElectPreferred() if operation.by_request:
                self.controller.elect_preferred(operation.partitions)
            case ElectPreferred():
                self._require(not self.znodes.has_election(), "another election is under way")
                self.znodes.elect_preferred(operation.partitions)
            case _:
                assert_never(operation)

    def _create(self, operation: CreateTopic | RecreateTopic) -> None:
        topic, replicas = operation.topic, operation.replicas
        self._require(not self._is_marked(topic), f"{topic} is still being deleted")
        self._require(not self._exists(topic), f"{topic} is there already")
        with self._change(topic):
            if operation.by_request:
                self.controller.create_topic(topic, replicas)
            else:
                self.znodes.create_topic(topic, replicas)
        self.expected[topic] = len(replicas)

    def _delete(self, operation: DeleteTopic | RecreateTopic) -> None:
        self._require_topic(operation.topic)
        with self._change(operation.topic):
            if operation.by_request:
                self.controller.delete_topic(operation.topic)
            else:
                self.znodes.mark_for_deletion(operation.topic)
        self.unexpected.add(operation.topic)

    def _recreate(self, operation: RecreateTopic) -> None:
        with self._asking:
            self._delete(operation)
        try:
            wait_until(
                lambda: not self._exists(operation.topic) and not self._is_marked(operation.topic),
                f"{operation.topic} is deleted",
                longest_s=_DELETION_DEADLINE_S,
            )
        except ConditionTimeoutError as error:
            raise Impossible(str(error)) from error
        with self._asking:
            self._create(operation)

    def _add_partitions(self, operation: AddPartitions) -> None:
        topic, replicas = operation.topic, operation.replicas
        self._require_topic(topic)
        first = len(self.znodes.partitions(topic))
        with self._change(topic):
            if operation.by_request:
                self.controller.add_partitions(topic, first + len(replicas), replicas)
            else:
                self.znodes.add_partitions(topic, dict(enumerate(replicas, start=first)))
        self.expected[topic] = first + len(replicas)

    def _reassign_elsewhere(self, targets: Mapping[Partition, Replicas]) -> None:
        """Change the targets of partitions that are still being reassigned; other reassignments stay."""
        asked = self.znodes.reassignments()
        changed = {partition: target for partition, target in targets.items() if partition in asked}
        self._require(bool(changed), "the reassignment is finished")
        self.znodes.rewrite_reassignment({**asked, **changed})

    def _origin(self, partition: Partition) -> Replicas:
        topic, number = partition
        return self.znodes.origin(topic, number)

    def _present(self, targets: Mapping[Partition, Replicas]) -> dict[Partition, Replicas]:
        """Return the targets of existing partitions: an earlier operation may have been impossible."""
        counts = {topic: len(self.znodes.partitions(topic)) for topic in {topic for topic, _ in targets}}
        present = {(topic, number): target for (topic, number), target in targets.items() if number < counts[topic]}
        self._require(bool(present), "none of the partitions is there")
        return present

    def _require_topic(self, topic: str) -> None:
        self._require(self._exists(topic), f"{topic} is not there")
        self._require(not self._is_marked(topic), f"{topic} is being deleted")

    def _require(self, is_so: bool, otherwise: str) -> None:
        if not is_so:
            raise Impossible(otherwise)

    @contextmanager
    def _change(self, topic: str) -> Iterator[None]:
        """Expect nothing of the topic until the change is known to be made; after a refusal, expect the former state."""
        count, is_unexpected = self.expected.pop(topic, None), topic in self.unexpected
        self.unexpected.discard(topic)
        try:
            yield
        except Refused:
            if count is not None:
                self.expected[topic] = count
            if is_unexpected:
                self.unexpected.add(topic)
            raise

    def _exists(self, topic: str) -> bool:
        return self.znodes.client.exists(f"/brokers/topics/{topic}") is not None

    def _is_marked(self, topic: str) -> bool:
        return self.znodes.client.exists(f"/admin/delete_topics/{topic}") is not None
