"""Fills the metadata cache from the znodes of v2 whenever they change.

There is no UpdateMetadata, so each broker updates its own cache. The controller's id is -1. A partition is visible
while its `replicas` exist, but not while it is being created or deleted.
"""

from collections.abc import Iterable

import structlog

from controller_core.model.ids import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Broker, SecurityProtocol
from controller_core.wire.messages import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkSession
from replica_broker.replicas.metadata_cache import MetadataCache
from replica_broker.v2.znodes import paths
from replica_broker.v2.znodes.partitions import PartitionZnodes, read_partitions
from replica_broker.v2.znodes.registrations import live_brokers

log = structlog.get_logger()

_NO_CONTROLLER = BrokerId(-1)
_NO_EPOCH = ControllerEpoch(0)


class ClusterView:
    """Fills the metadata cache."""

    def __init__(self, zk: ZkSession, metadata: MetadataCache) -> None:
        self._zk = zk
        self._metadata = metadata

    async def read_all(self) -> None:
        """Read all topics, and forget those that are gone."""
        (topics,) = await self._zk.children_many([paths.TOPICS])
        names = [TopicName(name) for name in topics or ()]
        listed = await self._zk.children_many([paths.topic(name) for name in names])
        there = [
            TopicPartition(name, PartitionId(int(child)))
            for name, children in zip(names, listed, strict=True)
            for child in children or ()
            if child.isdigit()
        ]
        known = [
            TopicPartition(name, each) for name in self._metadata.topics for each in self._metadata.partitions(name)
        ]
        await self.read_changed((*there, *known))

    async def read_changed(self, changed: Iterable[TopicPartition]) -> None:
        """Read these partitions, and the brokers. Raises the errors of ZooKeeper."""
        of_topics: dict[TopicName, dict[TopicPartition, None]] = {}
        for where in changed:
            of_topics.setdefault(where.topic, {})[where] = None
        brokers = await live_brokers(self._zk)
        states = [await self._topic(name, partitions) for name, partitions in of_topics.items()]
        self._metadata.update(
            UpdateMetadataRequest(
                controller_id=_NO_CONTROLLER,
                controller_epoch=_NO_EPOCH,
                topic_states=tuple(state for state in states if state is not None),
                live_brokers=tuple(_broker(broker) for broker in brokers),
            )
        )

    async def _topic(self, name: TopicName, changed: Iterable[TopicPartition]) -> UpdateMetadataTopicState | None:
        """Return the changed state of a topic, or None if nothing of it exists or is known."""
        try:
            read = await read_partitions(self._zk, changed)
        except MalformedZnode as error:
            log.error("unreadable topic keeps its known state", topic=name, reason=str(error))
            return None
        states = [_partition(znodes) for znodes in read if znodes.replicas]
        states += [
            _make_deleted_state(znodes)
            for znodes in read
            if not znodes.replicas and znodes.topic_partition in self._metadata
        ]
        if not states:
            return None
        return UpdateMetadataTopicState(topic_name=name, topic_id=read[0].topic_id, partition_states=tuple(states))


def _broker(broker: Broker) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker.id,
        endpoints=tuple(
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=SecurityProtocol[endpoint.security_protocol].value,
            )
            for endpoint in broker.endpoints
        ),
        rack=broker.rack,
    )


def _partition(znodes: PartitionZnodes) -> UpdateMetadataPartitionState:
    leader = znodes.leader
    return UpdateMetadataPartitionState(
        partition_index=znodes.topic_partition.partition,
        controller_epoch=_NO_EPOCH,
        leader=NO_LEADER if leader is None else leader.broker_id,
        leader_epoch=LeaderEpoch(max(0, znodes.epoch_version)) if leader is None else leader.epoch,
        isr=znodes.isr,
        zk_version=znodes.partition_epoch,
        replicas=znodes.assigned,
    )


def _make_deleted_state(znodes: PartitionZnodes) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=znodes.topic_partition.partition,
        controller_epoch=_NO_EPOCH,
        leader=LEADER_DURING_DELETE,
        leader_epoch=LeaderEpoch(0),
        isr=(),
        zk_version=PartitionEpoch(0),
        replicas=(),
    )
