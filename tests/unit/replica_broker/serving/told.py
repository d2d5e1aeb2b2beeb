"""A broker that has received the metadata of a cluster, for tests of its answers."""

from collections.abc import Iterable
from uuid import UUID

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
)
from controller_core.wire.messages import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from replica_broker.membership.node import Node

OWN = BrokerId(3)
EPOCH = BrokerEpoch(50)
ORDERS_ID = TopicId(UUID(int=7))


def broker(broker_id: int, *listeners: str) -> UpdateMetadataBroker:
    """Return a broker. Its first listener, `PLAINTEXT` by default, is at port 9000 plus the id; each further one 100
    higher."""
    endpoints = tuple(
        UpdateMetadataEndpoint(
            port=9000 + 100 * number + broker_id, host="here", listener=listener, security_protocol=0
        )
        for number, listener in enumerate(listeners or ("PLAINTEXT",))
    )
    return UpdateMetadataBroker(id=BrokerId(broker_id), endpoints=endpoints, rack=f"r{broker_id}")


def state(number: int, leader: int, replicas: Iterable[int] = (1, 2, 3)) -> UpdateMetadataPartitionState:
    brokers = tuple(map(BrokerId, replicas))
    return UpdateMetadataPartitionState(
        partition_index=PartitionId(number),
        controller_epoch=ControllerEpoch(1),
        leader=BrokerId(leader),
        leader_epoch=LeaderEpoch(4),
        isr=brokers,
        zk_version=PartitionEpoch(2),
        replicas=brokers,
    )


def topic(
    name: str, states: Iterable[UpdateMetadataPartitionState], topic_id: TopicId | None = ORDERS_ID
) -> UpdateMetadataTopicState:
    return UpdateMetadataTopicState(topic_name=TopicName(name), topic_id=topic_id, partition_states=tuple(states))


def update(
    *topics: UpdateMetadataTopicState,
    brokers: Iterable[UpdateMetadataBroker] = (broker(1), broker(2), broker(3)),
    controller_epoch: int = 5,
    broker_epoch: int = -1,
) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=BrokerId(1),
        controller_epoch=ControllerEpoch(controller_epoch),
        broker_epoch=BrokerEpoch(broker_epoch),
        topic_states=topics,
        live_brokers=tuple(brokers),
    )


def node(*topics: UpdateMetadataTopicState) -> Node:
    """Broker 3 of three; broker 1 is the controller."""
    found = Node(id=OWN, cluster_id="the-cluster", epoch=EPOCH)
    found.metadata.update(update(*topics))
    return found
