"""The common conditions that tests wait for. Each wait gives up as `wait_until` does.

A condition that is used once or twice needs no function: tests write it as `wait_until(lambda: ...)`. Clusters in
memory pass their own `wait`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from controller_core.journal.reader import Record, read
from devcluster.clients.load import AckedProducer
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import Broker
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.running.processes import ManagedProcess, wait_until

Wait = Callable[[Callable[[], bool], str], None]


class HasIsr(Protocol):
    """A cluster that shows the ISR of a partition, sorted."""

    def isr(self, topic: str, partition: int, /) -> list[int]: ...


class HasTopics(HasIsr, Protocol):
    """A cluster in which topics can be created and seen."""

    def create_topic(
        self, topic: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None: ...
    def is_served(self, topic: str, partitions: Sequence[int]) -> bool: ...
    def read_assignment(self, topic: str, partition: int) -> list[int]: ...


def serve_topic(
    cluster: HasTopics,
    topic: str,
    replicas: Sequence[Sequence[int]],
    config: Mapping[str, str] | None = None,
    *,
    brokers: Mapping[int, Broker] | None = None,
) -> None:
    """Create a topic and wait until it is served."""
    cluster.create_topic(topic, replicas, config)
    wait_until_served(cluster, topic, range(len(replicas)), brokers=brokers)


def wait_until_served(
    cluster: HasTopics,
    topic: str,
    partitions: Collection[int] = (0,),
    *,
    brokers: Mapping[int, Broker] | None = None,
    wait: Wait = wait_until,
) -> None:
    """Wait until every partition has a leader, and all its replicas are in sync.

    With `brokers`, also wait for each replica's log folder, because a new ISR is written before there are logs.
    """

    def is_served() -> bool:
        return cluster.is_served(topic, [*partitions]) and all(
            brokers is None or (brokers[broker].log_folder / f"{topic}-{partition}").exists()
            for partition in partitions
            for broker in cluster.read_assignment(topic, partition)
        )

    wait(is_served, f"every replica of {topic} is in sync")


def wait_until_led(
    znodes: ClusterZnodes, topic: str, *leaders: int, partition: int = 0, wait: Wait = wait_until
) -> None:
    """Wait until one of these brokers leads the partition; -1: until there is no leader."""
    wait(lambda: znodes.leader(topic, partition) in leaders, f"{_one_of(leaders)} leads {topic}-{partition}")


def wait_until_in_sync(cluster: HasIsr, topic: str, *members: int, partition: int = 0) -> None:
    """Wait until exactly these brokers are in the ISR of the partition."""
    wanted = sorted(members)
    wait_until(lambda: cluster.isr(topic, partition) == wanted, f"the ISR of {topic}-{partition} is {wanted}")


def wait_until_reassigning(znodes: ClusterZnodes, topic: str, partition: int = 0) -> None:
    """Wait until a reassignment of the partition has begun."""
    wait_until(lambda: znodes.is_reassigning(topic, partition), f"the reassignment of {topic}-{partition} has begun")


def wait_until_moved(
    znodes: ClusterZnodes, topic: str, target: Sequence[int], partition: int = 0, *, wait: Wait = wait_until
) -> None:
    """Wait until the partition is assigned to the target, and no reassignment is in progress."""
    wait(
        lambda: (
            not znodes.is_reassigning(topic, partition)
            and not znodes.has_reassignments()
            and znodes.read_assignment(topic, partition) == [*target]
        ),
        f"{topic}-{partition} is moved to {target}",
    )


def wait_until_gone(znodes: ClusterZnodes, *paths: str, wait: Wait = wait_until) -> None:
    """Wait until there are no such znodes."""
    for path in paths:
        wait(lambda path=path: znodes.client.exists(path) is None, f"{path} is gone")  # type: ignore[misc]  # a lambda with a default


def wait_until_empty(znodes: ClusterZnodes, path: str) -> None:
    """Wait until the znode has no children."""
    wait_until(lambda: not znodes.client.get_children(path), f"nothing is left in {path}")


def wait_until_controlled_by(znodes: ClusterZnodes, *controllers: int) -> None:
    """Wait until one of these has the role of the controller."""
    wait_until(lambda: znodes.controller() in controllers, f"{_one_of(controllers)} is the controller")


def wait_until_hot(znodes: ClusterZnodes, controller: int) -> None:
    """Wait until a controller of ours is a hot standby: it has read everything, and nothing hinders it."""

    def is_hot() -> bool:
        said = znodes.read(f"/kontroller/processes/{controller}") or {}
        return bool(said.get("hot")) and said.get("hindrance") is None

    wait_until(is_hot, f"controller {controller} stands by hot")


def wait_until_unregistered(znodes: ClusterZnodes, broker: int) -> None:
    """Wait until the broker's session has ended."""
    wait_until(lambda: broker not in znodes.live_brokers(), f"broker {broker} is not registered any more")


def wait_until_logged(process: ManagedProcess, text: str, *, since: int = 0) -> None:
    """Wait until the log of the process, over all its starts, has the text after this number of characters."""
    wait_until(lambda: text in process.log_path.read_text(errors="replace")[since:], f"{process.name} logs {text!r}")


def wait_until_ended(process: ManagedProcess) -> int | None:
    """Wait until the process has exited, and return its exit code."""
    wait_until(lambda: not process.is_running, f"{process.name} has ended")
    return process.exit_code


def wait_until_metric(controller: ControllerProcess, name: str, value: float) -> None:
    """Wait until a metric has this value. A controller that does not answer yet is asked again."""

    def has_value() -> bool:
        with suppress(OSError):
            return controller.metric(name) == value
        return False

    wait_until(has_value, f"{name} is {value:g}")


def wait_until_acknowledged(producer: AckedProducer, more_than: int = 0) -> None:
    """Wait until more than this number of further messages is acknowledged."""
    goal = producer.acknowledged_count + more_than
    wait_until(lambda: producer.acknowledged_count > goal, f"more than {more_than} further messages are acknowledged")


def wait_until_recorded(journal: Path, kind: str, cause: str, times: int = 1) -> None:
    """Wait until the journal has this number of changes of a kind with this cause."""

    def is_recorded() -> bool:
        lines = [entry.line for entry in read(journal) if isinstance(entry, Record)]
        return [(line.kind, line.cause) for line in lines if not line.snapshot].count((kind, cause)) >= times

    wait_until(is_recorded, f"{kind} by {cause} is recorded")


def _one_of(numbers: Sequence[int]) -> str:
    return " or ".join(map(str, numbers))
