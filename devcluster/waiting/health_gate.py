"""A gate between tests that share a cluster: each begins with a healthy one, and is responsible for the state it
leaves.

A test may stop and kill servers. The gate starts them again, before a test and after it. If that does not heal the
cluster, the test that caused it fails: a stopped server, a reassignment that does not end, a throttle on a broker, an
offline replica, or a node with stale metadata.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kio.schema.metadata.v12 import MetadataRequest

from controller_core.client.errors import Unsupported
from devcluster.clients.identity import NOBODY, Identity
from devcluster.clients.requests import ConnectionClosed, ask_in_its_version
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import Broker, KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.running.processes import ConditionTimeoutError, wait_until

_ANSWER_S: Final = 10
_ALL_TOPICS: Final = MetadataRequest(
    topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
)


class LeftBehind(AssertionError):
    """The cluster is not in the state that the next test needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthGate:
    """The gate of one cluster. `controller` is ours; None if one of the brokers is the controller."""

    kafka: KafkaCluster
    znodes: ClusterZnodes
    controller: ControllerProcess | None = None
    identity: Identity = NOBODY

    def open(self) -> None:
        """Start servers that do not run, and wait until the cluster is healthy. Raises `LeftBehind` if that takes too
        long.
        """
        self.kafka.start()
        if self.controller is not None and not self.controller.process.is_running:
            self.controller.restart_whole()
        try:
            wait_until(lambda: not any(self._troubles()), "the cluster is healthy")
        except ConditionTimeoutError as error:
            raise LeftBehind("; ".join([*self._troubles(), str(error)])) from error

    def close(self) -> None:
        """Do the same after a test. Also raises `LeftBehind` if the test left a server stopped."""
        paused = [server for server in self._servers() if server.process.is_running and server.process.is_stopped]
        for server in paused:
            server.resume()
        self.open()
        if paused:
            raise LeftBehind(f"left standing still: {', '.join(server.process.name for server in paused)}")

    def _servers(self) -> list[Broker | ControllerProcess]:
        return [*self.kafka.brokers.values(), *([self.controller] if self.controller is not None else [])]

    def _ports(self) -> dict[int, tuple[str, int]]:
        """Return the address of each node, by its id."""
        found = {each.broker_id: (each.place.address, each.port) for each in self.kafka.brokers.values()}
        if self.controller is not None:
            found[self.controller.controller_id] = (self.controller.place.address, self.controller.port)
        return found

    def _troubles(self) -> Iterator[str]:
        nodes, holder = self._ports(), self.znodes.controller()
        wanted = {self.controller.controller_id} if self.controller is not None else set(self.kafka.brokers)
        if holder not in wanted:
            yield f"the controller is {holder}"
        if moving := self.znodes.reassignments():
            yield f"reassignments are under way: {sorted(moving)}"
        if throttled := self.znodes.list_throttled_brokers():
            yield f"replication is throttled on the brokers: {', '.join(throttled)}"
        for node, address in nodes.items():
            try:
                told = ask_in_its_version(address, _ALL_TOPICS, identity=self.identity, timeout_s=_ANSWER_S)
            except (ConnectionClosed, OSError, Unsupported) as error:
                yield f"node {node} does not answer: {error!r}"
                continue
            known = {int(each.node_id): int(each.port) for each in told.brokers}
            if (known, told.controller_id) != ({each: port for each, (_, port) in nodes.items()}, holder):
                yield f"node {node} knows the nodes {sorted(known)} and the controller {told.controller_id}"
            if offline := sorted(_offline(told)):
                yield f"node {node} knows of offline replicas: {', '.join(offline)}"


def _offline(told: Any) -> Iterator[str]:
    """Return the partitions of a MetadataResponse, of any version, that have offline replicas."""
    for topic in told.topics:
        for partition in topic.partitions:
            if partition.offline_replicas:
                yield f"{topic.name}-{partition.partition_index}"
