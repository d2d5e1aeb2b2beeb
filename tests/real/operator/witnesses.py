"""The state of a cluster, seen independently of the operator: in the znodes, or at the brokers without ZooKeeper.

Both witnesses have the same methods, so that a test need not know the kind of its cluster.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, NamedTuple, Protocol

from kio.schema.api_versions.v4 import ApiVersionsRequest
from kio.schema.create_topics.v7 import CreateTopicsRequest
from kio.schema.create_topics.v7.request import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from kio.schema.delete_topics.v6 import DeleteTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicState
from kio.schema.describe_configs.v4 import DescribeConfigsRequest
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.describe_quorum.v0 import DescribeQuorumRequest
from kio.schema.describe_quorum.v0.request import PartitionData, TopicData
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsRequest
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta
from kio.static.protocol import RequestPayload

from controller_core.model.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from controller_core.wire.requests.metadata import ALL_TOPICS
from devcluster.clients.requests import send_request
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.zookeeper import open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import HasTopics

_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=30))
_TOPIC, _BROKER = i8(2), i8(4)
_OF_THE_TOPIC: Final = 1
_QUORUM: Final = DescribeQuorumRequest(
    topics=(
        TopicData(topic_name=WireTopicName("__cluster_metadata"), partitions=(PartitionData(partition_index=i32(0)),)),
    )
)


class Throttles(NamedTuple):
    """The throttles of a topic's replicas."""

    rates: dict[int, tuple[int | None, int | None]]
    """The rates of each broker as leader and as follower; only brokers that have one."""
    lists: tuple[list[str], list[str]]
    """The throttled replicas as leaders and as followers, in Kafka's format."""
    is_remembered: bool
    """True if a throttle of Kontroller is left."""


_RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
_LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)


class Witness(HasTopics, Protocol):
    """Sees a cluster, and changes it as another tool would."""

    def controller(self) -> int | None: ...
    def partitions(self, topic: str) -> dict[int, list[int]]: ...
    def leader(self, topic: str, partition: int) -> int: ...
    def topic_id(self, topic: str) -> str | None: ...
    def config(self, topic: str) -> dict[str, str]: ...
    def has_reassignments(self) -> bool: ...
    def set_config(self, topic: str, config: Mapping[str, str]) -> None: ...
    def delete_topic(self, topic: str) -> None: ...
    def throttles(self, topic: str) -> Throttles: ...


class Znodes(ClusterZnodes):
    """The witness of a cluster with ZooKeeper: its znodes."""

    def topic_id(self, topic: str) -> str | None:
        """Return the id as Kafka's tools show it; None if there is no such topic."""
        found = self.read(f"/brokers/topics/{topic}")
        return None if found is None else str(found["topic_id"])

    def config(self, topic: str) -> dict[str, str]:
        """Return the configuration of a topic."""
        return dict((self.read(f"/config/topics/{topic}") or {"config": {}})["config"])

    def set_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Replace the configuration of a topic."""
        self.client.set(f"/config/topics/{topic}", json.dumps({"version": 1, "config": dict(config)}).encode())

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and return when it is gone."""
        self.mark_for_deletion(topic)
        wait_until(lambda: self.read(f"/brokers/topics/{topic}") is None, "the topic is deleted")
        wait_until(lambda: self.client.exists(f"/admin/delete_topics/{topic}") is None, "its mark is gone")

    def throttles(self, topic: str) -> Throttles:
        """Return the throttles in the configurations."""
        brokers = {broker: (self.read(f"/config/brokers/{broker}") or {"config": {}})["config"] for broker in (1, 2, 3)}
        is_remembered = bool(self.client.get_children("/kontroller/throttles"))
        return _throttles(brokers, self.config(topic), is_remembered=is_remembered)


class Brokers:
    """The witness of a cluster without ZooKeeper: a running broker, once it has caught up with the controllers."""

    def __init__(self, kafka: KRaftCluster) -> None:
        self._kafka = kafka

    def controller(self) -> int | None:
        leader = int(self._quorum().leader_id)
        return leader if leader >= 0 else None

    def partitions(self, topic: str) -> dict[int, list[int]]:
        return {int(each.partition_index): list(map(int, each.replica_nodes)) for each in self._partitions(topic)}

    def read_assignment(self, topic: str, partition: int) -> list[int]:
        return self.partitions(topic).get(partition, [])

    def leader(self, topic: str, partition: int) -> int:
        found = (int(each.leader_id) for each in self._partitions(topic) if each.partition_index == partition)
        return next(found, -1)

    def isr(self, topic: str, partition: int) -> list[int]:
        found = (each.isr_nodes for each in self._partitions(topic) if each.partition_index == partition)
        return sorted(map(int, next(found, ())))

    def is_served(self, topic: str, partitions: Sequence[int]) -> bool:
        found = {int(each.partition_index): each for each in self._partitions(topic)}
        return all(
            number in found
            and found[number].leader_id >= 0
            and sorted(found[number].isr_nodes) == sorted(found[number].replica_nodes)
            for number in partitions
        )

    def topic_id(self, topic: str) -> str | None:
        found = self._topic(topic)
        return None if found is None else base64.urlsafe_b64encode(found.topic_id.bytes).decode().rstrip("=")

    def config(self, topic: str) -> dict[str, str]:
        resource = DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=None)
        self._wait_for_controllers()
        (found,) = self._ask(DescribeConfigsRequest(resources=(resource,))).results
        return {each.name: each.value for each in found.configs if each.config_source == _OF_THE_TOPIC}

    def has_reassignments(self) -> bool:
        return bool(self._ask(ListPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=None)).topics)

    def create_topic(
        self, topic: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        asked = CreatableTopic(
            name=WireTopicName(topic),
            num_partitions=i32(-1),
            replication_factor=i16(-1),
            assignments=tuple(
                CreatableReplicaAssignment(partition_index=i32(number), broker_ids=tuple(map(WireBrokerId, brokers)))
                for number, brokers in enumerate(replicas)
            ),
            configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in (config or {}).items()),
        )
        (answer,) = self._ask(CreateTopicsRequest(topics=(asked,), timeout=_TIMEOUT)).topics
        assert answer.error_code is ErrorCode.none, answer

    def set_config(self, topic: str, config: Mapping[str, str]) -> None:
        changes: dict[str, str | None] = {**dict.fromkeys(self.config(topic)), **config}
        _alter_configs(self._find_running_port(), _TOPIC, topic, changes)

    def delete_topic(self, topic: str) -> None:
        named = DeleteTopicState(name=WireTopicName(topic), topic_id=None)
        (answer,) = self._ask(DeleteTopicsRequest(topics=(named,), timeout=_TIMEOUT)).responses
        assert answer.error_code is ErrorCode.none, answer

    def throttles(self, topic: str) -> Throttles:
        """Return each broker's own rates, and the rest from one of them. Here only Kontroller sets default rates."""
        lists = self.config(topic)
        for broker in self._kafka.brokers.values():
            self._wait_for_controllers(broker.port)
        brokers = {
            number: {name: said.value for name, said in self._broker_config(broker.port, str(number)).items()}
            for number, broker in self._kafka.brokers.items()
        }
        names = self._broker_config(self._find_running_port(), "")
        return _throttles(brokers, lists, is_remembered=bool(names.keys() & set(_RATES)))

    def _broker_config(self, port: int, name: str) -> dict[str, Any]:
        resource = DescribeConfigsResource(resource_type=_BROKER, resource_name=name, configuration_keys=None)
        (found,) = send_request(("127.0.0.1", port), DescribeConfigsRequest(resources=(resource,))).results
        return {each.name: each for each in found.configs}

    def _partitions(self, topic: str) -> Sequence[Any]:
        found = self._topic(topic)
        return () if found is None else found.partitions

    def _topic(self, topic: str) -> Any:
        self._wait_for_controllers()
        return next((each for each in self._ask(ALL_TOPICS).topics if each.name == topic), None)

    def _quorum(self) -> Any:
        return self._ask(_QUORUM).topics[0].partitions[0]

    def _wait_for_controllers(self, port: int | None = None) -> None:
        """Wait until a broker knows what the controllers have decided: that at the port, or the one that is asked."""
        decided = self._quorum().high_watermark
        address = ("127.0.0.1", port or self._find_running_port())
        asking = ApiVersionsRequest(client_software_name="witness", client_software_version="1")
        wait_until(
            lambda: bool(send_request(address, asking).finalized_features_epoch >= decided - 1),
            "the broker has come so far",
        )

    def _ask(self, request: RequestPayload) -> Any:
        return send_request(("127.0.0.1", self._find_running_port()), request)

    def _find_running_port(self) -> int:
        return next(broker.port for broker in self._kafka.brokers.values() if broker.process.is_running)


def _throttles(brokers: Mapping[int, Mapping[str, str]], lists: Mapping[str, str], *, is_remembered: bool) -> Throttles:
    rates = {number: _read_rates(config) for number, config in brokers.items() if set(_RATES) & set(config)}
    leaders, followers = (
        sorted(f"{int(partition)}:{broker}" for partition, broker in (each.split(":") for each in items if each))
        for items in (lists.get(name, "").split(",") for name in _LISTS)
    )
    return Throttles(rates, (leaders, followers), is_remembered)


def _read_rates(config: Mapping[str, str]) -> tuple[int | None, int | None]:
    leader, follower = (int(config[name]) if name in config else None for name in _RATES)
    return leader, follower


def limit_without_zookeeper(kafka: KRaftCluster, topic: str, bytes_per_second: int | None) -> None:
    """Throttle the copy of a topic's partition 0 from broker 1 to broker 3, as Kafka's tools do; None removes the
    throttle.

    Each broker accepts only its own throttle.
    """
    is_over = bytes_per_second is None
    for number, broker in kafka.brokers.items():
        set_rates = dict.fromkeys(_RATES, None if is_over else str(bytes_per_second))
        _alter_configs(broker.port, _BROKER, str(number), set_rates)
    lists = {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:3"}
    _alter_configs(kafka.broker(1).port, _TOPIC, topic, dict.fromkeys(lists) if is_over else lists)


def _alter_configs(port: int, kind: i8, name: str, changes: Mapping[str, str | None]) -> None:
    asked = tuple(
        AlterableConfig(name=key, config_operation=i8(1 if value is None else 0), value=value)
        for key, value in changes.items()
    )
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=asked)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (answer,) = send_request(("127.0.0.1", port), request).responses
    assert answer.error_code is ErrorCode.none, answer


@contextmanager
def witness_of(kafka: KafkaCluster | KRaftCluster) -> Iterator[Witness]:
    """Return the witness of a cluster."""
    if isinstance(kafka, KRaftCluster):
        yield Brokers(kafka)
        return
    with open_client(kafka.zookeeper_connect) as client:
        yield Znodes(client)


def where(kafka: KafkaCluster | KRaftCluster) -> dict[str, Any]:
    """Return the address of a cluster for the spec of a KafkaCluster."""
    if isinstance(kafka, KRaftCluster):
        return {"bootstrapServers": kafka.bootstrap_servers}
    return {"zookeeper": {"connect": kafka.zookeeper_connect}}
