"""The operations of the soak: requests of users, and faults of servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Replicas = tuple[int, ...]
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A request of users, by a znode or by a request to the controller."""

    by_request: bool = False

    @property
    def _how(self) -> str:
        return " by request" if self.by_request else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic(_Asked):
    topic: str
    replicas: tuple[Replicas, ...]
    """The replicas of the partitions 0, 1, ..."""

    def __str__(self) -> str:
        return f"create topic {self.topic} {_format_replicas(self.replicas)}{self._how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic(_Asked):
    topic: str

    def __str__(self) -> str:
        return f"delete topic {self.topic}{self._how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecreateTopic(_Asked):
    """Delete a topic, and create it again as soon as it is gone."""

    topic: str
    replicas: tuple[Replicas, ...]

    def __str__(self) -> str:
        return f"delete topic {self.topic} and create it again {_format_replicas(self.replicas)}{self._how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions(_Asked):
    topic: str
    replicas: tuple[Replicas, ...]
    """The replicas of the partitions after the existing ones."""

    def __str__(self) -> str:
        return f"add partitions to {self.topic} {_format_replicas(self.replicas)}{self._how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeConfig:
    topic: str
    config: Mapping[str, str] = field(hash=False)

    def __str__(self) -> str:
        return f"configure {self.topic} {' '.join(f'{key}={value}' for key, value in self.config.items())}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassign(_Asked):
    targets: Mapping[Partition, Replicas] = field(hash=False)

    def __str__(self) -> str:
        return f"reassign {_targets(self.targets)}{self._how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceReassignment(_Asked):
    """Set other targets for partitions whose reassignment may still be running."""

    targets: Mapping[Partition, Replicas] = field(hash=False)

    def __str__(self) -> str:
        return f"reassign elsewhere {_targets(self.targets)}{self._how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReassignment(_Asked):
    """Move partitions whose reassignment may still be running back to their origin."""

    partitions: tuple[Partition, ...]

    def __str__(self) -> str:
        return f"cancel the reassignment of {_partitions(self.partitions)}{self._how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectPreferred(_Asked):
    partitions: tuple[Partition, ...]

    def __str__(self) -> str:
        return f"preferred election of {len(self.partitions)} partitions{self._how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServerOperation:
    server: str
    """A name such as `broker-3` or `controller-1`."""


class StopServer(_ServerOperation):
    """SIGTERM: a broker does a controlled shutdown, a controller resigns."""

    def __str__(self) -> str:
        return f"stop {self.server}"


class KillServer(_ServerOperation):
    def __str__(self) -> str:
        return f"kill {self.server}"


class StartServer(_ServerOperation):
    def __str__(self) -> str:
        return f"start {self.server}"


class PauseServer(_ServerOperation):
    """SIGSTOP: if it lasts, the server's session expires without the server noticing."""

    def __str__(self) -> str:
        return f"pause {self.server}"


class ResumeServer(_ServerOperation):
    def __str__(self) -> str:
        return f"resume {self.server}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashZooKeeper:
    """Kill ZooKeeper and start it again after a while; its data stays."""

    down_s: float

    def __str__(self) -> str:
        return f"kill ZooKeeper, start it {self.down_s:.1f} s later"


SingleRequest = (
    CreateTopic
    | DeleteTopic
    | AddPartitions
    | ChangeConfig
    | Reassign
    | ReplaceReassignment
    | CancelReassignment
    | ElectPreferred
)
TopicOperation = SingleRequest | RecreateTopic
ServerOperation = StopServer | KillServer | StartServer | PauseServer | ResumeServer
Operation = TopicOperation | ServerOperation | CrashZooKeeper


def partitions_of(operation: Operation) -> set[Partition]:
    """Return the partitions that must exist for an operation; partition 0 if it needs the topic."""
    match operation:
        case DeleteTopic() | RecreateTopic() | AddPartitions() | ChangeConfig():
            return {(operation.topic, 0)}
        case Reassign() | ReplaceReassignment():
            return set(operation.targets)
        case CancelReassignment() | ElectPreferred():
            return set(operation.partitions)
        case _:
            return set()


def kind_of(operation: Operation) -> str:
    """Return the kind under which an operation is counted, such as `kill broker`."""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(operation).__name__).strip()
    if isinstance(operation, _ServerOperation):
        return words.replace("server", operation.server.partition("-")[0])
    if isinstance(operation, _Asked):
        return f"{words} by request" if operation.by_request else words
    return words.replace("zoo keeper", "ZooKeeper")


def _format_replicas(replicas: tuple[Replicas, ...]) -> str:
    return " ".join(f"{{{','.join(map(str, brokers))}}}" for brokers in replicas)


def _targets(targets: Mapping[Partition, Replicas]) -> str:
    return ", ".join(
        f"{topic}-{number} to {_format_replicas((target,))}" for (topic, number), target in targets.items()
    )


def _partitions(partitions: tuple[Partition, ...]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in partitions)
