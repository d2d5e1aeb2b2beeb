"""A cluster as its controller's clients, tools and brokers see it, under any controller."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import UUID

from kio.schema.alter_partition.v3.request import AlterPartitionRequest, BrokerState, TopicData
from kio.schema.alter_partition.v3.request import PartitionData as AskedPartition
from kio.schema.alter_partition.v3.response import PartitionData as AlterPartitionResult
from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.list_partition_reassignments.v0.request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i32, i64
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.messages import ErrorCode
from controller_core.zk.codecs.topics import decode_topic_id
from devcluster.building.java import KAFKA_VERSION
from devcluster.clients import tools
from devcluster.clients.identity import NOBODY, Identity
from devcluster.clients.load import AckedProducer, read_back
from devcluster.clients.requests import ConnectionClosed, ask_in_its_version, send_request
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.running.patience import SILENCE_S
from devcluster.running.processes import wait_until
from devcluster.waiting.health_gate import HealthGate
from devcluster.waiting.vocabulary import wait_until_gone, wait_until_led, wait_until_moved, wait_until_served

LOG_DIRECTORIES = ("log", "log-2")
"""The names of every broker's log directories."""
PREFERRED, UNCLEAN = 0, 1

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The state of one partition in ZooKeeper."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int
    controller_epoch: int
    partition_epoch: int
    recovering: bool = False

    @property
    def leadership(self) -> tuple[int, list[int]]:
        return self.leader, sorted(self.isr)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceCluster:
    """Three unmodified brokers and their controller."""

    kafka: KafkaCluster
    znodes: ClusterZnodes
    own_controller: ControllerProcess | None
    """Our controller; None if Kafka's own is the controller."""
    identity: Identity = NOBODY
    """The identity of clients, at every node."""
    user: str = "ANONYMOUS"
    """The user name of the clients at the nodes."""
    identity_file: Path | None = None
    """The credentials of the clients, for tools; None without authentication."""
    release: str = KAFKA_VERSION
    """The release of the brokers."""

    @property
    def health_gate(self) -> HealthGate:
        return HealthGate(kafka=self.kafka, znodes=self.znodes, controller=self.own_controller, identity=self.identity)

    # Addresses and ids

    @property
    def is_kafkas_own(self) -> bool:
        return self.own_controller is None

    @property
    def controller_address(self) -> tuple[str, int]:
        """The address for requests to the controller: that of the broker that is it, or of our process."""
        if self.own_controller is not None:
            return "127.0.0.1", self.own_controller.port
        controller = self.znodes.controller()
        assert controller is not None, "there is no controller"
        return self.address(controller)

    @property
    def bootstrap(self) -> str:
        """The address of the controller, for clients that bootstrap there."""
        host, port = self.controller_address
        return f"{host}:{port}"

    @property
    def controller_ids(self) -> set[int]:
        """The ids that the controller has in a healthy cluster."""
        return {self.own_controller.controller_id} if self.own_controller else set(self.kafka.brokers)

    @property
    def order(self) -> tuple[int, int, int]:
        """The three brokers. The first one is never stopped: if Kafka's own controller is active, it is on that one."""
        controller = self.znodes.controller()
        first, second, third = sorted(self.kafka.brokers, key=lambda broker: (broker != controller, broker))
        return first, second, third

    def address(self, broker: int) -> tuple[str, int]:
        return "127.0.0.1", self.kafka.broker(broker).port

    def broker_epoch(self, broker: int) -> int:
        """Return the czxid of the broker's registration."""
        return int(self.znodes.client.get(f"/brokers/ids/{broker}")[1].czxid)

    def controller_epoch(self) -> int:
        return int(self.znodes.client.get("/controller_epoch")[0])

    # Waiting

    def wait(self, condition: Callable[[], bool], what: str, *, silence_s: float = SILENCE_S) -> None:
        wait_until(condition, what, silence_s=silence_s)

    def wait_until_served(self, topic: str, partitions: int = 1) -> None:
        wait_until_served(self.znodes, topic, range(partitions), wait=self.wait)

    def wait_until_led(self, topic: str, leader: int, partition: int = 0) -> None:
        wait_until_led(self.znodes, topic, leader, partition=partition, wait=self.wait)

    def wait_until_moved(self, topic: str, target: list[int], partition: int = 0) -> None:
        wait_until_moved(self.znodes, topic, target, partition, wait=self.wait)

    def wait_for_a_term_after(self, epoch: int) -> None:
        """Wait until a controller has a later term and has completed its failover.

        Taking the role away sooner may leave Kafka's brokers without a controller for good: a broker that hears of the
        znode's creation and deletion at once finds it missing, and does not compete (`ControllerChange`, 3.9).
        """
        self.wait(lambda: self.controller_epoch() > epoch and self.is_led(), "a controller has a new term")

    def is_led(self) -> bool:
        """Return True if a valid controller has the role, and answers a request that needs a begun term."""
        if self.znodes.controller() not in self.controller_ids:
            return False
        try:
            answer = self.ask_controller(ListPartitionReassignmentsRequest(topics=()))
        except (ConnectionClosed, OSError):
            return False
        return answer.error_code is ErrorCode.none

    def wait_until_gone(self, *paths: str) -> None:
        wait_until_gone(self.znodes, *paths, wait=self.wait)

    def wait_until_unlisted(self, topic: str, *brokers: int) -> None:
        """Wait until these brokers show clients no partition of the topic."""
        self.wait(
            lambda: not any(self.metadata_of(broker, topic).partitions for broker in brokers),
            f"{brokers} show no {topic}",
        )

    def wait_until_everybody_knows(self, topic: str, partition: int = 0) -> None:
        """Wait until every live broker's metadata agrees with ZooKeeper about the partition."""

        def agree() -> bool:
            seen = self.read_state(topic, partition)
            wanted = (seen.leader, list(seen.isr), seen.leader_epoch, self.znodes.read_assignment(topic, partition))
            return all(self._find_known(broker, topic, partition) == wanted for broker in self.znodes.live_brokers())

        self.wait(agree, f"every broker knows the state of {topic}-{partition}")

    # ZooKeeper

    def exists(self, path: str) -> bool:
        return self.znodes.client.exists(path) is not None

    def read_state(self, topic: str, partition: int = 0) -> Seen:
        """Return the state of a partition that has one."""
        path = f"/brokers/topics/{topic}/partitions/{partition}/state"
        content = self.znodes.state(topic, partition)
        return Seen(
            leader=content["leader"],
            isr=tuple(content["isr"]),
            leader_epoch=content["leader_epoch"],
            controller_epoch=content["controller_epoch"],
            partition_epoch=self.znodes.client.get(path)[1].version,
            recovering=content.get("leader_recovery_state", 0) == 1,
        )

    def topic_id(self, topic: str) -> UUID:
        path = f"/brokers/topics/{topic}"
        topic_id = decode_topic_id(path, self.znodes.read(path)["topic_id"])
        assert topic_id is not None
        return topic_id

    def serve_topic(self, topic: str, replicas: list[list[int]], config: dict[str, str] | None = None) -> None:
        """Create a topic in ZooKeeper and wait until every replica is in sync."""
        self.znodes.create_topic(topic, replicas, config)
        self.wait_until_served(topic, len(replicas))

    def begin_a_new_term(self) -> None:
        """Take the role away from the controller, as an expired session does, and wait for the next one."""
        before = self.controller_epoch()
        self.znodes.client.delete("/controller")
        self.wait_for_a_term_after(before)

    # Clients

    def properties(self, bootstrap: str) -> dict[str, str]:
        """Return the properties of a client of ours."""
        return {"bootstrap.servers": bootstrap, **self.identity.properties}

    def librdkafka(self, bootstrap: str) -> dict[str, Any]:
        """Return the settings of a client of librdkafka."""
        return {"bootstrap.servers": bootstrap, **self.identity.librdkafka}

    def run_tool(
        self, tool: str, *arguments: str, bootstrap: str | None = None, timeout_s: float = 120
    ) -> CompletedProcess[str]:
        """Run one of Kafka's own tools to its end, by default with the controller as bootstrap server."""
        servers = ("--bootstrap-server", bootstrap or self.bootstrap)
        option = "--admin.config" if tool == tools.LEADER_ELECTION else "--command-config"
        told = (option, str(self.identity_file)) if self.identity_file else ()
        return tools.run_tool(tool, *servers, *told, *arguments, timeout_s=timeout_s)

    def load(self, topic: str) -> AckedProducer:
        """Return a producer that does not stop."""
        return AckedProducer(self.kafka.bootstrap_servers, topic, identity=self.identity)

    def read_back(self, topic: str) -> set[str]:
        """Return all values of a topic."""
        return read_back(self.kafka.bootstrap_servers, topic, identity=self.identity)

    # Requests

    def ask_controller(self, request: RequestPayload, response_type: type[ResponsePayload] | None = None) -> Any:
        """Return the controller's answer to a client of the cluster, in the very version of the request."""
        return send_request(self.controller_address, request, response_type=response_type, identity=self.identity)

    def ask_at(
        self, address: tuple[str, int], request: RequestPayload, response_type: type[ResponsePayload] | None = None
    ) -> Any:
        """Return a node's answer to a client of the cluster, asked in a version that the node supports."""
        return ask_in_its_version(address, request, response_type=response_type, identity=self.identity)

    def ask_broker(
        self, broker: int, request: RequestPayload, response_type: type[ResponsePayload] | None = None
    ) -> Any:
        return self.ask_at(self.address(broker), request, response_type)

    def metadata(self, broker: int, *topics: str) -> MetadataResponse:
        """Return a broker's metadata of the cluster and of some topics."""
        return self.metadata_at(self.address(broker), *topics)

    def metadata_at(self, address: tuple[str, int], *topics: str) -> MetadataResponse:
        """Return the metadata of the cluster and of some topics from the node at an address."""
        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(topic_id=None, name=WireTopicName(topic)) for topic in topics),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        response = self.ask_at(address, request)
        assert isinstance(response, MetadataResponse)
        return response

    def metadata_of(self, broker: int, topic: str) -> MetadataResponseTopic:
        return self.metadata(broker, topic).topics[0]

    def metadata_of_partition(self, broker: int, topic: str, partition: int = 0) -> MetadataResponsePartition | None:
        """Return a broker's metadata of a partition; None if it does not know the partition."""
        found = [p for p in self.metadata_of(broker, topic).partitions if p.partition_index == partition]
        return found[0] if found else None

    def _find_known(self, broker: int, topic: str, partition: int) -> tuple[int, list[int], int, list[int]] | None:
        told = self.metadata_of_partition(broker, topic, partition)
        if told is None:
            return None
        return told.leader_id, [*told.isr_nodes], told.leader_epoch, [*told.replica_nodes]

    def alter_isr(
        self, topic: str, isr: list[int], *, partition: int = 0, sender: int | None = None, **claimed: int
    ) -> AlterPartitionResult:
        """Request another ISR from the controller in the leader's name; `claimed` overrides the leader's knowledge."""
        response = self.ask_controller(self.alter_partition(topic, isr, partition=partition, sender=sender, **claimed))
        assert response.error_code is ErrorCode.none, response
        result = response.topics[0].partitions[0]
        assert isinstance(result, AlterPartitionResult)
        return result

    def alter_partition(
        self,
        topic: str,
        isr: list[int],
        *,
        partition: int = 0,
        sender: int | None = None,
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
        recovery_state: int = 0,
    ) -> AlterPartitionRequest:
        """Return the request that the leader, or `sender`, would send now; every `None` is read from ZooKeeper."""
        seen = self.read_state(topic, partition)
        broker = seen.leader if sender is None else sender
        state = AskedPartition(
            partition_index=i32(partition),
            leader_epoch=i32(seen.leader_epoch if leader_epoch is None else leader_epoch),
            new_isr_with_epochs=tuple(BrokerState(broker_id=WireBrokerId(member)) for member in isr),
            leader_recovery_state=i8(recovery_state),
            partition_epoch=i32(seen.partition_epoch if partition_epoch is None else partition_epoch),
        )
        return AlterPartitionRequest(
            broker_id=WireBrokerId(broker),
            broker_epoch=i64(self.broker_epoch(broker)),
            topics=(TopicData(topic_id=self.topic_id(topic), partitions=(state,)),),
        )

    def leave_in_isr(self, topic: str, isr: list[int], partition: int = 0) -> None:
        """Shrink an ISR in the leader's name; the leader itself does not hear of it before its next epoch."""
        result = self.alter_isr(topic, isr, partition=partition)
        assert result.error_code is ErrorCode.none, result

    def elect(self, kind: int, *partitions: Partition) -> dict[Partition, ErrorCode]:
        """Send ElectLeaders, `PREFERRED` or `UNCLEAN`, for these partitions, or for all if none are named."""
        topics = tuple(
            TopicPartitions(topic=WireTopicName(topic), partitions=(i32(partition),)) for topic, partition in partitions
        )
        response = self.ask_controller(
            ElectLeadersRequest(election_type=i8(kind), topic_partitions=topics if partitions else None)
        )
        assert response.error_code is ErrorCode.none, response
        return {
            (topic.topic, result.partition_id): result.error_code
            for topic in response.replica_election_results
            for result in topic.partition_result
        }

    def reassign(self, *targets: tuple[str, int, list[int] | None]) -> list[ErrorCode]:
        """Send AlterPartitionReassignments; return the error of each entry in order. None cancels a running one."""
        response = self.ask_controller(
            AlterPartitionReassignmentsRequest(
                topics=tuple(
                    ReassignableTopic(
                        name=WireTopicName(topic),
                        partitions=(
                            ReassignablePartition(
                                partition_index=i32(partition),
                                replicas=None if target is None else tuple(WireBrokerId(broker) for broker in target),
                            ),
                        ),
                    )
                    for topic, partition, target in targets
                )
            )
        )
        assert response.error_code is ErrorCode.none, response
        errors = {
            (topic.name, result.partition_index): result.error_code
            for topic in response.responses
            for result in topic.partitions
        }
        return [errors[topic, partition] for topic, partition, _ in targets]

    def list_reassignments(self, *partitions: Partition) -> dict[Partition, tuple[list[int], list[int], list[int]]]:
        """Return replicas, added and removed replicas of the running reassignments: of these partitions, or of all."""
        topics = tuple(
            ListPartitionReassignmentsTopics(name=WireTopicName(topic), partition_indexes=(i32(partition),))
            for topic, partition in partitions
        )
        response = self.ask_controller(ListPartitionReassignmentsRequest(topics=topics if partitions else None))
        assert response.error_code is ErrorCode.none, response
        return {
            (topic.name, found.partition_index): (
                [*found.replicas],
                [*found.adding_replicas],
                [*found.removing_replicas],
            )
            for topic in response.topics
            for found in topic.partitions
        }

    # Brokers

    @contextmanager
    def pause_broker(self, broker: int) -> Iterator[None]:
        """Pause a broker, for less than its session timeout of half a minute."""
        self.kafka.broker(broker).pause()
        try:
            yield
        finally:
            self.kafka.broker(broker).resume()

    def log_directories(self, broker: int) -> list[Path]:
        return [self.kafka.broker(broker).log_folder.with_name(name) for name in LOG_DIRECTORIES]

    def brokers_with_a_log(self, topic: str, partition: int = 0) -> set[int]:
        return {broker for broker in self.kafka.brokers if self.directory_of(broker, topic, partition)}

    def directory_of(self, broker: int, topic: str, partition: int = 0) -> Path | None:
        """Return the log directory in which a broker has a partition."""
        found = [folder for folder in self.log_directories(broker) if (folder / f"{topic}-{partition}").exists()]
        return found[0] if found else None

    def wait_until_only_replicas_have_logs(self, topic: str, partition: int = 0) -> None:
        self.wait(
            lambda: self.brokers_with_a_log(topic, partition) == set(self.znodes.read_assignment(topic, partition)),
            f"{topic}-{partition} is only where it belongs",
        )

    def broker_log(self, broker: int) -> str:
        """Return the whole log of a broker."""
        return self.kafka.broker(broker).process.log_path.read_text(errors="replace")


def replace_partition(request: AlterPartitionRequest, partition: int) -> AlterPartitionRequest:
    """Return the same request for another partition of its topic."""
    topic = request.topics[0]
    return replace(
        request, topics=(replace(topic, partitions=(replace(topic.partitions[0], partition_index=i32(partition)),)),)
    )


def replace_topic(request: AlterPartitionRequest, topic_id: UUID) -> AlterPartitionRequest:
    """Return the same request for another topic."""
    return replace(request, topics=(replace(request.topics[0], topic_id=topic_id),))
