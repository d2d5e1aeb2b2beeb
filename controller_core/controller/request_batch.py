"""What the brokers are to be told about one event, gathered while it is handled and sent when it is done.

Operations name partitions and receivers; the requests are built at the end from the state that the event left, so a
partition that changed three times is sent once. Each broker gets at most one LeaderAndIsr, one UpdateMetadata and one
StopReplica request, in this order. A broker learns of the controller, and so of where to send its own requests, from
UpdateMetadata alone: every one carries all live brokers, and among them the controller itself, which is a broker to the
others without ever being registered as one.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from controller_core.controller.cluster_state import ClusterState
from controller_core.controller.partition_entries import PartitionEntries
from controller_core.model.ids import (
    EPOCH_DURING_DELETE,
    NO_EPOCH,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Endpoint
from controller_core.wire import entries
from controller_core.wire.messages import (
    ControlRequest,
    LeaderAndIsrLiveLeader,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

SECURITY_PROTOCOL_IDS: Mapping[str, int] = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

REQUEST_BYTES: Final = 32 << 20
"""How large the topics of one request become, before another is made of the rest: a broker reads it into memory whole, and
takes no more than its `socket.request.max.bytes` (100 MiB unless configured)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerIdentity:
    """Who the controller is to the brokers during one term, and where they reach it."""

    id: BrokerId
    epoch: ControllerEpoch
    endpoint: Endpoint


class RequestSink(Protocol):
    """Takes requests for a broker, in order; `controller_core.controller.channels` is the real one."""

    def send(self, broker: BrokerId, request: ControlRequest) -> None: ...


Partitions = dict[TopicPartition, None]
"""A set that keeps its order, and is copied and merged as fast as one."""


@dataclass(slots=True)
class _ForBroker:
    leader_and_isr: dict[TopicPartition, bool] = field(default_factory=dict)
    """Partition -> whether the replica is new."""
    metadata: Partitions | None = None
    """What the broker is told beside what all are told."""
    stop: dict[TopicPartition, bool] = field(default_factory=dict)
    """Partition -> whether the replica is deleted."""
    strays: set[TopicPartition] = field(default_factory=set)
    """Those to stop whose log may be of a topic that had the same name: the present leader epoch says nothing of them."""


class RequestBatch:
    """Gathers requests during an event; `flush` sends them."""

    def __init__(self, state: ClusterState, identity: ControllerIdentity) -> None:
        self._state = state
        self._identity = identity
        self._brokers: defaultdict[BrokerId, _ForBroker] = defaultdict(_ForBroker)
        self._metadata_of_all: Partitions = {}
        """What each of `_told_all` is told: the same partitions, and so the same bytes."""
        self._told_all: frozenset[BrokerId] = frozenset()
        self._deleted: dict[TopicPartition, TopicId | None] = {}

    def leader_and_isr(
        self, topic_partition: TopicPartition, receivers: Iterable[BrokerId], *, is_new: bool = False
    ) -> None:
        """Tells the receivers of a partition's leadership and assignment, and every broker's metadata cache with them."""
        for broker in self._state.live_or_shutting_down & set(receivers):
            requests = self._brokers[broker].leader_and_isr
            requests[topic_partition] = is_new or requests.get(topic_partition, False)
        self.update_metadata((topic_partition,))

    def leader_and_isr_of(
        self, receivers: Mapping[TopicPartition, Iterable[BrokerId]], *, is_new: bool = False
    ) -> None:
        """As `leader_and_isr`, for many partitions, each with its receivers."""
        live = {broker: self._brokers[broker].leader_and_isr for broker in self._state.live_or_shutting_down}
        for partition, brokers in receivers.items():
            for broker in brokers:
                if (requests := live.get(broker)) is not None:
                    requests[partition] = is_new or requests.get(partition, False)
        self.update_metadata(receivers)

    def leader_and_isr_to(self, broker: BrokerId, partitions: Collection[TopicPartition]) -> None:
        """As `leader_and_isr`, for many partitions that are not new to one broker."""
        if broker in self._state.live_or_shutting_down:
            requests = self._brokers[broker].leader_and_isr
            requests.update(dict.fromkeys(partitions, False) | requests)
        self.update_metadata(partitions)

    def update_metadata(self, partitions: Iterable[TopicPartition], brokers: Iterable[BrokerId] | None = None) -> None:
        """Updates the metadata caches of the brokers, by default of all; no partitions: the list of brokers alone."""
        if brokers is not None:
            added = dict.fromkeys(partitions)
            for broker in brokers:
                self._add_metadata(broker, added)
            return
        if self._told_all != self._state.live_or_shutting_down:
            self._tell_each()
            self._told_all = frozenset(self._state.live_or_shutting_down)
        self._metadata_of_all.update(dict.fromkeys(partitions))

    def _tell_each(self) -> None:
        """Makes what was meant for all something for each of them: from now on, all are others."""
        for broker in self._told_all:
            self._add_metadata(broker, self._metadata_of_all)
        self._metadata_of_all, self._told_all = {}, frozenset()

    def _add_metadata(self, broker: BrokerId, partitions: Partitions) -> None:
        requests = self._brokers[broker]
        requests.metadata = partitions if requests.metadata is None else requests.metadata | partitions

    def forget_metadata(
        self,
        partitions: Iterable[TopicPartition],
        topic_id: TopicId | None,
        brokers: Iterable[BrokerId] | None = None,
    ) -> None:
        """Makes brokers, by default all, drop partitions from their metadata caches: they are being deleted or gone."""
        partitions = list(partitions)
        self._deleted.update(dict.fromkeys(partitions, topic_id))
        self.update_metadata(partitions, brokers)

    def stop_replica(self, topic_partition: TopicPartition, broker: BrokerId, *, delete: bool) -> None:
        """Makes a broker stop its replica, and delete its log if told so."""
        if broker in self._state.live_or_shutting_down:
            stops = self._brokers[broker].stop
            stops[topic_partition] = delete or stops.get(topic_partition, False)

    def delete_stray(self, topic_partition: TopicPartition, broker: BrokerId) -> None:
        """Makes a broker delete a log that is not of an assigned replica, under whatever leader epoch it knows it."""
        if broker in self._state.live_or_shutting_down:
            self.stop_replica(topic_partition, broker, delete=True)
            self._brokers[broker].strays.add(topic_partition)

    def flush(self, sink: RequestSink) -> None:
        """Builds the requests from the present state, hands them on, and starts afresh."""
        if not self._brokers and not self._told_all:
            return
        built = PartitionEntries(self._state, self._deleted)
        metadata = _Shared(lambda partitions: self._metadata_requests(built, partitions))
        live_brokers = tuple(self._live_brokers())
        for broker in {**dict.fromkeys(self._told_all), **dict.fromkeys(self._brokers)}:
            registered = self._state.brokers.get(broker)
            if registered is not None:
                requests = self._brokers[broker]
                for leader_and_isr in self._leader_and_isr_requests(registered.epoch, built, requests.leader_and_isr):
                    sink.send(broker, leader_and_isr)
                told = self._metadata_of(broker, requests)
                for topics in () if told is None else metadata.of(told):
                    sink.send(broker, self._update_metadata(registered.epoch, topics, live_brokers))
                if requests.stop:
                    sink.send(broker, self._stop_replica(registered.epoch, requests))
        self.discard()

    def discard(self) -> None:
        """Drops what was gathered: whoever is no longer the controller must not tell anybody anything."""
        self._brokers.clear()
        self._metadata_of_all, self._told_all = {}, frozenset()
        self._deleted = {}

    # LeaderAndIsr

    def _leader_and_isr_requests(
        self, epoch: BrokerEpoch, built: PartitionEntries, partitions: Mapping[TopicPartition, bool]
    ) -> Iterable[LeaderAndIsrRequest]:
        topics, leaders = built.leader_and_isr(partitions)
        for part in _request_sized(topics):
            yield LeaderAndIsrRequest(
                controller_id=self._identity.id,
                controller_epoch=self._identity.epoch,
                broker_epoch=epoch,
                topic_states=entries.encoded_topics(LeaderAndIsrTopicState, part),
                live_leaders=self._live_leaders(leaders),
            )

    def _live_leaders(self, leaders: Iterable[BrokerId]) -> tuple[LeaderAndIsrLiveLeader, ...]:
        listener = self._identity.endpoint.listener
        return tuple(
            LeaderAndIsrLiveLeader(broker_id=leader, host_name=endpoint.host, port=endpoint.port)
            for leader in sorted(leaders)
            if (broker := self._state.brokers.get(leader)) and (endpoint := broker.endpoint(listener))
        )

    # UpdateMetadata

    def _metadata_of(self, broker: BrokerId, requests: _ForBroker) -> Partitions | None:
        if broker not in self._told_all:
            return requests.metadata
        return self._metadata_of_all if not requests.metadata else self._metadata_of_all | requests.metadata

    def _metadata_requests(
        self, built: PartitionEntries, partitions: Partitions
    ) -> list[tuple[UpdateMetadataTopicState, ...]]:
        """The topics of one request or several; of one without topics where there is nothing but the list of brokers."""
        parts = list(_request_sized(built.update_metadata(partitions))) or [[]]
        return [entries.encoded_topics(UpdateMetadataTopicState, part) for part in parts]

    def _update_metadata(
        self,
        epoch: BrokerEpoch,
        topics: tuple[UpdateMetadataTopicState, ...],
        live_brokers: tuple[UpdateMetadataBroker, ...],
    ) -> UpdateMetadataRequest:
        return UpdateMetadataRequest(
            controller_id=self._identity.id,
            controller_epoch=self._identity.epoch,
            broker_epoch=epoch,
            topic_states=topics,
            live_brokers=live_brokers,
        )

    def _live_brokers(self) -> Iterable[UpdateMetadataBroker]:
        for broker in self._state.brokers.values():
            endpoints = tuple(_endpoint(endpoint) for endpoint in broker.endpoints)
            yield UpdateMetadataBroker(id=broker.id, endpoints=endpoints, rack=broker.rack)
        yield UpdateMetadataBroker(
            id=self._identity.id,
            endpoints=(_endpoint(self._identity.endpoint),),
            rack=self._state.rack_of_controller(),
        )

    # StopReplica

    def _stop_replica(self, epoch: BrokerEpoch, requests: _ForBroker) -> StopReplicaRequest:
        return StopReplicaRequest(
            controller_id=self._identity.id,
            controller_epoch=self._identity.epoch,
            broker_epoch=epoch,
            topic_states=self._stop_topics(requests),
        )

    def _stop_topics(self, requests: _ForBroker) -> tuple[StopReplicaTopicState, ...]:
        by_topic: defaultdict[TopicName, list[StopReplicaPartitionState]] = defaultdict(list)
        for partition, delete in requests.stop.items():
            by_topic[partition.topic].append(
                StopReplicaPartitionState(
                    partition_index=partition.partition,
                    leader_epoch=NO_EPOCH if partition in requests.strays else self._stop_epoch(partition),
                    delete_partition=delete,
                )
            )
        return tuple(
            StopReplicaTopicState(topic_name=topic, partition_states=tuple(entries))
            for topic, entries in by_topic.items()
        )

    def _stop_epoch(self, partition: TopicPartition) -> LeaderEpoch:
        """The fence of KIP-570: a delayed StopReplica must not stop a replica that was added again since."""
        if partition.topic in self._state.deletions:
            return EPOCH_DURING_DELETE
        state = self._state.states.get(partition)
        return state.leader_and_isr.leader_epoch if state else NO_EPOCH


class _Shared:
    """What was made of partitions, made once for all who are told the same ones."""

    def __init__(self, make: Callable[[Partitions], list[tuple[UpdateMetadataTopicState, ...]]]) -> None:
        self._make = make
        self._made: list[tuple[Partitions, list[tuple[UpdateMetadataTopicState, ...]]]] = []

    def of(self, partitions: Partitions) -> list[tuple[UpdateMetadataTopicState, ...]]:
        for known, made in self._made:
            if known is partitions or known == partitions:
                return made
        self._made.append((partitions, self._make(partitions)))
        return self._made[-1][1]


def _request_sized(topics: Iterable[bytes]) -> Iterable[list[bytes]]:
    """Divides topics into runs that fit one request."""
    part: list[bytes] = []
    size = 0
    for topic in topics:
        if part and size + len(topic) > REQUEST_BYTES:
            yield part
            part, size = [], 0
        part.append(topic)
        size += len(topic)
    if part:
        yield part


def _endpoint(endpoint: Endpoint) -> UpdateMetadataEndpoint:
    return UpdateMetadataEndpoint(
        port=endpoint.port,
        host=endpoint.host,
        listener=endpoint.listener,
        security_protocol=SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
    )
