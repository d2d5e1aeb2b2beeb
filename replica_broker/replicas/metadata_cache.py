"""The metadata cache: the live brokers, the controller and the partitions, as the controller sent them.

Each UpdateMetadata replaces the live brokers and the controller's id, and changes single partitions. A partition with
leader -2 is deleted, and with the last one its topic. Responses to clients come from this cache, so it is eventually
consistent. No write depends on it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from controller_core.model.ids import LEADER_DURING_DELETE, BrokerId, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import Endpoint, SecurityProtocol
from controller_core.wire.messages import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

_PROTOCOLS: Final = {protocol.value: protocol.name for protocol in SecurityProtocol}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBroker:
    """A live broker, or the controller, which is listed like one."""

    id: BrokerId
    endpoints: Mapping[str, Endpoint]
    rack: str | None


class MetadataCache:
    """The metadata cache. Before the first UpdateMetadata it is empty and must not be relied on."""

    def __init__(self) -> None:
        self._brokers: Mapping[BrokerId, LiveBroker] = {}
        self._controller: BrokerId | None = None
        self._topics: dict[TopicName, dict[PartitionId, UpdateMetadataPartitionState]] = {}
        self._ids: dict[TopicName, TopicId] = {}
        self._names: dict[TopicId, TopicName] = {}
        self._is_filled = False

    @property
    def is_filled(self) -> bool:
        """True after the first UpdateMetadata."""
        return self._is_filled

    @property
    def brokers(self) -> Mapping[BrokerId, LiveBroker]:
        return self._brokers

    @property
    def controller(self) -> BrokerId | None:
        return self._controller

    @property
    def topics(self) -> Iterable[TopicName]:
        return self._topics.keys()

    def partitions(self, topic: TopicName) -> Mapping[PartitionId, UpdateMetadataPartitionState]:
        """Return the known partitions of a topic; empty for an unknown one."""
        return self._topics.get(topic, {})

    def partition(self, topic_partition: TopicPartition) -> UpdateMetadataPartitionState | None:
        return self.partitions(topic_partition.topic).get(topic_partition.partition)

    def __contains__(self, topic_partition: TopicPartition) -> bool:
        return self.partition(topic_partition) is not None

    def topic_id(self, topic: TopicName) -> TopicId | None:
        return self._ids.get(topic)

    def topic_named(self, topic_id: TopicId) -> TopicName | None:
        return self._names.get(topic_id)

    def endpoint(self, broker: BrokerId, listener: str) -> Endpoint | None:
        """Return the address of a live broker on a listener, or None."""
        live = self._brokers.get(broker)
        return None if live is None else live.endpoints.get(listener)

    def controller_endpoint(self, listener: str) -> Endpoint | None:
        """Return the address of the controller, or None if it is unknown."""
        return None if self._controller is None else self.endpoint(self._controller, listener)

    def update(self, request: UpdateMetadataRequest) -> tuple[TopicPartition, ...]:
        """Apply an UpdateMetadata. Return the deleted partitions."""
        self._brokers = {broker.id: _live(broker) for broker in request.live_brokers}
        self._controller = request.controller_id if request.controller_id >= 0 else None
        self._is_filled = True
        return tuple(gone for topic in request.topic_states for gone in self._update_topic(topic))

    def _update_topic(self, said: UpdateMetadataTopicState) -> list[TopicPartition]:
        name = said.topic_name
        self._set_id(name, said.topic_id)
        partitions = self._topics.setdefault(name, {})
        gone = []
        for state in said.partition_states:
            if state.leader != LEADER_DURING_DELETE:
                partitions[state.partition_index] = state
            elif partitions.pop(state.partition_index, None) is not None:
                gone.append(TopicPartition(name, state.partition_index))
        if not partitions:
            del self._topics[name]
            self._set_id(name, None)
        return gone

    def _set_id(self, name: TopicName, topic_id: TopicId | None) -> None:
        former = self._ids.pop(name, None)
        if former is not None and self._names.get(former) == name:
            del self._names[former]
        if topic_id is not None:
            self._ids[name] = topic_id
            self._names[topic_id] = name


def _live(broker: UpdateMetadataBroker) -> LiveBroker:
    return LiveBroker(
        id=broker.id,
        endpoints={
            said.listener: Endpoint(
                listener=said.listener,
                security_protocol=_PROTOCOLS.get(said.security_protocol, str(said.security_protocol)),
                host=said.host,
                port=said.port,
            )
            for said in broker.endpoints
        },
        rack=broker.rack,
    )
