"""What the brokers are to be told about one event, gathered while it is handled and sent when it is done.

Operations name partitions and receivers; the requests are built at the end from the state that the event left, so a
partition that changed three times is sent once. Each broker gets at most one LeaderAndIsr, one UpdateMetadata and one
StopReplica request, in this order. A broker learns of the controller, and so of where to send its own requests, from
UpdateMetadata alone: every one carries all live brokers, and among them the controller itself, which is a broker to the
others without ever being registered as one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from controller_core.controller.cluster_state import ClusterState
from controller_core.model.ids import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Endpoint
from controller_core.wire.messages import (
    ControlRequest,
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

SECURITY_PROTOCOL_IDS: Mapping[str, int] = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerIdentity:
    """Who the controller is to the brokers during one term, and where they reach it."""

    id: BrokerId
    epoch: ControllerEpoch
    endpoint: Endpoint


class RequestSink(Protocol):
    """Takes requests for a broker, in order; `controller_core.controller.channels` is the real one."""

    def send(self, broker: BrokerId, request: ControlRequest) -> None: ...


@dataclass(slots=True)
class _ForBroker:
    leader_and_isr: dict[TopicPartition, bool] = field(default_factory=dict)
    """Partition -> whether the replica is new."""
    metadata: dict[TopicPartition, None] | None = None
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
        self._deleted: dict[TopicPartition, TopicId | None] = {}
        self._built_metadata: dict[frozenset[TopicPartition], tuple[UpdateMetadataTopicState, ...]] = {}

    def leader_and_isr(
        self, topic_partition: TopicPartition, receivers: Iterable[BrokerId], *, is_new: bool = False
    ) -> None:
        """Tells the receivers of a partition's leadership and assignment, and every broker's metadata cache with them."""
        for broker in self._state.live_or_shutting_down & set(receivers):
            requests = self._brokers[broker].leader_and_isr
            requests[topic_partition] = is_new or requests.get(topic_partition, False)
        self.update_metadata((topic_partition,))

    def update_metadata(self, partitions: Iterable[TopicPartition], brokers: Iterable[BrokerId] | None = None) -> None:
        """Updates the metadata caches of the brokers, by default of all; no partitions: the list of brokers alone."""
        partitions = dict.fromkeys(partitions)
        for broker in self._state.live_or_shutting_down if brokers is None else brokers:
            for_broker = self._brokers[broker]
            if for_broker.metadata is None:
                for_broker.metadata = {}
            for_broker.metadata.update(partitions)

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
        gathered, self._brokers = self._brokers, defaultdict(_ForBroker)
        live_brokers = tuple(self._live_brokers()) if gathered else ()
        for broker, requests in gathered.items():
            registered = self._state.brokers.get(broker)
            if registered is None:
                continue
            for request in self._requests(registered.epoch, requests, live_brokers):
                sink.send(broker, request)
        self._deleted = {}
        self._built_metadata = {}

    def discard(self) -> None:
        """Drops what was gathered: whoever is no longer the controller must not tell anybody anything."""
        self._brokers.clear()
        self._deleted = {}

    def _requests(
        self, epoch: BrokerEpoch, requests: _ForBroker, live_brokers: tuple[UpdateMetadataBroker, ...]
    ) -> Iterable[ControlRequest]:
        known = {
            partition: is_new
            for partition, is_new in requests.leader_and_isr.items()
            if partition in self._state.states and self._state.has(partition)
        }
        if known:
            yield LeaderAndIsrRequest(
                controller_id=self._identity.id,
                controller_epoch=self._identity.epoch,
                broker_epoch=epoch,
                topic_states=self._leader_and_isr_topics(known),
                live_leaders=self._live_leaders(known),
            )
        if requests.metadata is not None:
            yield UpdateMetadataRequest(
                controller_id=self._identity.id,
                controller_epoch=self._identity.epoch,
                broker_epoch=epoch,
                topic_states=self._shared_metadata_topics(requests.metadata),
                live_brokers=live_brokers,
            )
        if requests.stop:
            yield StopReplicaRequest(
                controller_id=self._identity.id,
                controller_epoch=self._identity.epoch,
                broker_epoch=epoch,
                topic_states=self._stop_topics(requests),
            )

    # LeaderAndIsr

    def _leader_and_isr_topics(self, partitions: Mapping[TopicPartition, bool]) -> tuple[LeaderAndIsrTopicState, ...]:
        by_topic: defaultdict[TopicName, list[LeaderAndIsrPartitionState]] = defaultdict(list)
        for partition, is_new in partitions.items():
            by_topic[partition.topic].append(self._leader_and_isr_entry(partition, is_new))
        return tuple(
            LeaderAndIsrTopicState(
                topic_name=topic, topic_id=self._state.topics[topic].topic_id, partition_states=tuple(entries)
            )
            for topic, entries in by_topic.items()
        )

    def _leader_and_isr_entry(self, partition: TopicPartition, is_new: bool) -> LeaderAndIsrPartitionState:
        state = self._state.states[partition]
        assignment = self._state.assignment(partition)
        return LeaderAndIsrPartitionState(
            partition_index=partition.partition,
            controller_epoch=state.controller_epoch,
            leader=state.leader_and_isr.leader,
            leader_epoch=state.leader_and_isr.leader_epoch,
            isr=state.leader_and_isr.isr,
            partition_epoch=state.partition_epoch,
            replicas=assignment.replicas,
            adding_replicas=assignment.adding,
            removing_replicas=assignment.removing,
            is_new=is_new,
            leader_recovery_state=int(state.leader_and_isr.leader_recovery_state),
        )

    def _live_leaders(self, partitions: Iterable[TopicPartition]) -> tuple[LeaderAndIsrLiveLeader, ...]:
        leaders = {self._state.states[partition].leader_and_isr.leader for partition in partitions}
        listener = self._identity.endpoint.listener
        return tuple(
            LeaderAndIsrLiveLeader(broker_id=leader, host_name=endpoint.host, port=endpoint.port)
            for leader in sorted(leaders)
            if (broker := self._state.brokers.get(leader)) and (endpoint := broker.endpoint(listener))
        )

    # UpdateMetadata

    def _shared_metadata_topics(
        self, partitions: Mapping[TopicPartition, None]
    ) -> tuple[UpdateMetadataTopicState, ...]:
        """The same entries for all brokers that get the same partitions: built once, and encoded once."""
        key = frozenset(partitions)
        if key not in self._built_metadata:
            self._built_metadata[key] = self._metadata_topics(partitions)
        return self._built_metadata[key]

    def _metadata_topics(self, partitions: Iterable[TopicPartition]) -> tuple[UpdateMetadataTopicState, ...]:
        by_topic: defaultdict[tuple[TopicName, TopicId | None], list[UpdateMetadataPartitionState]] = defaultdict(list)
        for partition in partitions:
            deletion = self._state.deletions.get(partition.topic)
            if partition in self._deleted:
                by_topic[partition.topic, self._deleted[partition]].append(_deleted_entry(partition.partition))
            elif deletion is not None and deletion.started:
                continue
            elif partition in self._state.states and self._state.has(partition):
                topic_id = self._state.topics[partition.topic].topic_id
                by_topic[partition.topic, topic_id].append(self._metadata_entry(partition))
        return tuple(
            UpdateMetadataTopicState(topic_name=topic, topic_id=topic_id, partition_states=tuple(entries))
            for (topic, topic_id), entries in by_topic.items()
        )

    def _metadata_entry(self, partition: TopicPartition) -> UpdateMetadataPartitionState:
        state = self._state.states[partition]
        replicas = self._state.assignment(partition).replicas
        return UpdateMetadataPartitionState(
            partition_index=partition.partition,
            controller_epoch=state.controller_epoch,
            leader=state.leader_and_isr.leader,
            leader_epoch=state.leader_and_isr.leader_epoch,
            isr=state.leader_and_isr.isr,
            zk_version=state.partition_epoch,
            replicas=replicas,
            offline_replicas=tuple(r for r in replicas if not self._state.is_served_by(partition, r)),
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


def _deleted_entry(partition: PartitionId) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=partition,
        controller_epoch=ControllerEpoch(-1),
        leader=LEADER_DURING_DELETE,
        leader_epoch=LeaderEpoch(0),
        isr=(),
        zk_version=PartitionEpoch(0),
        replicas=(),
    )


def _endpoint(endpoint: Endpoint) -> UpdateMetadataEndpoint:
    return UpdateMetadataEndpoint(
        port=endpoint.port,
        host=endpoint.host,
        listener=endpoint.listener,
        security_protocol=SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
    )
