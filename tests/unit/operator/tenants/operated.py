"""An operator's production code between an API server and ZooKeepers in memory, one look at an object at a time."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kio.schema.alter_partition_reassignments.v0 import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kio.schema.alter_partition_reassignments.v0.response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import Unreachable
from controller_core.client.transport.request_client import Address, ControllerClient
from controller_core.model.ids import BrokerId, ControllerEpoch, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, Endpoint
from controller_core.model.reassignment import begin_reassignment
from controller_core.wire.messages import NO_THROTTLE
from controller_core.zk import codecs, paths
from controller_core.zk.session import ANY_VERSION, Create, SetData, WriteOp, ZkSession
from controller_operator.kubernetes.object_store import Key, ObjectStore, Raw, key_of
from controller_operator.metrics import OperatorMetrics
from controller_operator.reconciling.access import ClusterAccess
from controller_operator.reconciling.applying import Result
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.reconciling.reconciler import Reconciler
from simulation.controller_client import SimulatedControllerClient
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.operator.clusters import assign, broker, lead, raw, topic
from tests.unit.operator.simulated_api import SimulatedApiServer

DEADLINE_S = 60.0
PARENTS = ("/admin", paths.DELETE_TOPICS, "/brokers", paths.BROKER_IDS, paths.TOPICS, "/cluster", "/config",
           paths.TOPIC_CONFIGS, "/config/changes")  # fmt: skip


class Operated:
    """The operator, the objects that it looks at, and the ZooKeepers that hosts have."""

    def __init__(self, hosts: Mapping[str, SimulatedZooKeeper], *, max_request_bytes: int | None = None) -> None:
        """`hosts`: a KafkaCluster that names several of them is connected with the first one."""
        self._hosts = hosts
        self._max_request_bytes = max_request_bytes
        self._changed = asyncio.Event()
        self.sessions: list[ZkSession] = []
        self.api = SimulatedApiServer()
        self.store = ObjectStore()
        self.access = ClusterAccess(self.store, self._connect, self._client, unreachable_grace_s=3.0)
        self.access.on_change = lambda _connect, _observation: self._changed.set()
        metrics, recorder = OperatorMetrics(), EventRecorder(self.api)
        self.reconciler = Reconciler(
            self.store, self.api, self.access, recorder, metrics, lambda _keys: None,
            missing_cluster_grace_s=60.0, open_broker=lambda bootstrap, security=None: _Silent(),
        )  # fmt: skip

    async def close(self) -> None:
        await self.access.close()

    async def add(self, kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Key:
        """Apply an object, or another spec of it, by default in the namespace `shop`; return its key."""
        applied = raw(kind, spec, name=name, **{"uid": f"uid-{kind}-{metadata.get('namespace')}-{name}", **metadata})
        if kind == "KafkaCluster":
            del applied["spec"]["clusterRef"]
        known = self.api.peek(key_of(applied))
        stored = await self.api.keep({**applied, "status": known["status"]} if known else applied)
        self.store.put(stored)
        return key_of(stored)

    async def cluster(self, name: str, connect: str, allowed: Sequence[Raw] | None = None, **metadata: Any) -> Key:
        """Applies a KafkaCluster, and waits until it has been read."""
        spec = {"zookeeper": {"connect": connect}, **({} if allowed is None else {"allowedNamespaces": list(allowed)})}
        key = await self.add("KafkaCluster", name, spec, **{"namespace": "platform", **metadata})
        await self.look(key)
        return key

    async def look(self, key: Key) -> Result:
        """Looks at an object until something can be said about it."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                self._changed.clear()
                result = await self.reconciler.reconcile(key)
                if result.word != "withheld" or self.ready(key)["message"] != "seen":
                    return result
                await self._changed.wait()

    async def wait_for_change(self) -> None:
        """Waits until something new is known of a cluster."""
        async with asyncio.timeout(DEADLINE_S):
            await self._changed.wait()
            self._changed.clear()

    def status(self, key: Key) -> Raw:
        found: Raw = (self.api.peek(key) or {}).get("status", {})
        return found

    def ready(self, key: Key) -> Raw:
        return self.condition(key, "Ready") or {}

    def condition(self, key: Key, type_: str) -> Raw | None:
        return next((each for each in self.status(key).get("conditions", ()) if each["type"] == type_), None)

    def _client(self, bootstrap: Sequence[Address], **_: object) -> ControllerClient:
        """The controllers know each other's clusters by the hosts of their brokers."""
        zookeeper = next(each for each in self._hosts.values() if _host(each) == bootstrap[0].host)
        return SimulatedControllerClient(lambda: _Controller(zookeeper).answer)

    async def _connect(self, address: str) -> ZkSession:
        host = address.partition("/")[0].split(",")[0]
        session = self._hosts[host].session(max_request_bytes=self._max_request_bytes)
        self.sessions.append(session)
        return session


async def kafka_cluster(
    *topics: str,
    cluster_id: str | None = "a-cluster",
    brokers: int = 3,
    zookeeper: SimulatedZooKeeper | None = None,
    protocol: str = "PLAINTEXT",
) -> SimulatedZooKeeper:
    """The ZooKeeper of a cluster whose topics have one partition each, with replicas on the brokers 1 and 2."""
    zookeeper = zookeeper or SimulatedZooKeeper()
    session = zookeeper.session()
    await session.transact([Create(path=path) for path in PARENTS])
    known_as = write_cluster_id(cluster_id) if cluster_id else []
    registered = [
        Create(
            path=paths.broker(BrokerId(number)), data=codecs.encode_broker(_make_broker(number, cluster_id, protocol))
        )
        for number in range(1, brokers + 1)
    ]
    controller = [
        Create(path=paths.CONTROLLER, data=codecs.encode_controller(BrokerId(1), 0)),
        Create(path=paths.CONTROLLER_EPOCH, data=codecs.encode_controller_epoch(ControllerEpoch(1))),
    ]
    await session.transact([*known_as, *registered, *controller])
    for name in topics:
        await session.transact(_topic(TopicName(name)))
    return zookeeper


def write_cluster_id(cluster_id: str) -> list[WriteOp]:
    """Write the id of a cluster, as its first broker does."""
    return [Create(path=paths.CLUSTER_ID, data=b'{"version":"1","id":"%s"}' % cluster_id.encode())]


def _topic(name: TopicName) -> list[WriteOp]:
    tp, state = TopicPartition(name, PartitionId(0)), lead(2, [1, 2])
    assignment = topic((assign([1, 2]), None), name=name).assignment
    return [
        Create(path=paths.topic(name), data=codecs.encode_topic(assignment)),
        Create(path=paths.partitions(name)),
        Create(path=paths.partition(tp)),
        Create(
            path=paths.partition_state(tp),
            data=codecs.encode_partition_state(state.leader_and_isr, state.controller_epoch),
        ),
    ]


def _make_broker(number: int, cluster_id: str | None, protocol: str) -> Broker:
    endpoint = Endpoint(listener=protocol, host=f"{cluster_id}", port=9092, security_protocol=protocol)
    return replace(broker(number), endpoints=(endpoint,))


def _host(zookeeper: SimulatedZooKeeper) -> str:
    """Return the host of the cluster's brokers."""
    node = zookeeper.tree.read(paths.broker(BrokerId(1)))
    assert node is not None
    return codecs.decode_broker(BrokerId(1), node).endpoints[0].host


def _all_begun(request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    def begin(partition: i32) -> ReassignablePartitionResponse:
        return ReassignablePartitionResponse(partition_index=partition, error_code=ErrorCode.none, error_message=None)

    responses = tuple(
        ReassignableTopicResponse(
            name=topic.name, partitions=tuple(begin(each.partition_index) for each in topic.partitions)
        )
        for topic in request.topics
    )
    return AlterPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, error_message=None, responses=responses
    )


class _Silent:
    """A broker that says nothing of its logs."""

    async def ask_any(self, request: RequestPayload, response_type: type[Any]) -> Any:
        raise Unreachable(f"no {response_type.__name__} to {type(request).__name__}")


class _Controller:
    """Begins every move that it is asked for, and does nothing more."""

    def __init__(self, zookeeper: SimulatedZooKeeper) -> None:
        self._zookeeper = zookeeper

    async def answer(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, AlterPartitionReassignmentsRequest)
        for each in request.topics:
            name = TopicName(each.name)
            node = self._zookeeper.tree.read(paths.topic(name))
            assert node is not None
            assignment = codecs.decode_whole_topic(name, node.data)
            begun = {
                PartitionId(one.partition_index): begin_reassignment(
                    assignment.partitions[PartitionId(one.partition_index)], tuple(map(BrokerId, one.replicas or ()))
                )
                for one in each.partitions
            }
            data = codecs.encode_topic(replace(assignment, partitions={**assignment.partitions, **begun}))
            await self._zookeeper.session().transact([SetData(path=paths.topic(name), data=data, version=ANY_VERSION)])
        return _all_begun(request)
