"""The control requests for what was gathered (`request_batch`), built from the state as it is now.

A full request has an entry for every partition of a cluster. So an iterator yields the requests, and None every few
milliseconds inside a large one, so that the caller can give other tasks a turn.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from controller_core.controller.sending.partition_entries import PartitionEntries
from controller_core.controller.sending.prepared_topic import Prepared
from controller_core.controller.sending.stop_entries import stop_entries
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    TopicId,
    TopicPartition,
)
from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import Endpoint, SecurityProtocol
from controller_core.wire.codecs import entries
from controller_core.wire.codecs.encoding import SharedArray, require_encodable
from controller_core.wire.codecs.frames import Unencodable
from controller_core.wire.messages import (
    ControlRequest,
    LeaderAndIsrLiveLeader,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from controller_core.zk import paths

SECURITY_PROTOCOL_IDS: Mapping[str, int] = {protocol.name: protocol.value for protocol in SecurityProtocol}

REQUEST_BYTES: Final = 32 << 20
"""The size of the topics in one request above which another request is started.

A broker reads a request into memory as a whole, and accepts at most `socket.request.max.bytes` (100 MiB by default).
"""
PART_BYTES: Final = 256 << 10
"""The amount of a request after which other tasks may get a turn: a few milliseconds."""

Partitions = dict[TopicPartition, None]
"""An ordered set that is copied and merged as fast as a dictionary."""
Deleted = Mapping[TopicPartition, TopicId | None]
"""Partitions that brokers have to forget, with the ids of their topics."""
AddressedRequest = tuple[BrokerId, ControlRequest]


@dataclass(slots=True, kw_only=True)
class ControllerIdentity:
    """The controller as brokers see it during one term: its id, its epoch, and its addresses."""

    id: BrokerId
    epoch: ControllerEpoch
    """May rise in the middle of a term: `controller_core.controller.term.epoch_raise`."""
    listeners: ControllerListeners
    _elected: ControllerEpoch = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._elected = self.epoch

    def has_had(self, epoch: ControllerEpoch) -> bool:
        """Return True if the epoch belongs to this term, and not to an earlier one."""
        return self._elected <= epoch <= self.epoch


@dataclass(slots=True)
class ForBroker:
    """The content of the next requests to one broker."""

    leader_and_isr: dict[TopicPartition, bool] = field(default_factory=dict)
    """Partition -> True if the replica is new."""
    metadata: Partitions | None = None
    """None: nothing. No partitions: only the list of brokers."""
    stop: dict[TopicPartition, bool] = field(default_factory=dict)
    """Partition -> True if the replica is deleted."""
    strays: set[TopicPartition] = field(default_factory=set)
    """Stopped replicas whose log may belong to a former topic of the same name.

    The leader epoch says nothing about it.
    """


class BrokerRequests:
    """Builds the requests of one batch. The state must not change before all are built."""

    def __init__(self, state: ClusterState, identity: ControllerIdentity, deleted: Deleted, whole: Prepared) -> None:
        """`whole` are topics that every broker is sent, in addition to the gathered partitions."""
        self._state = state
        self._identity = identity
        self._entries = PartitionEntries(state, deleted)
        self._deleted = deleted
        self._whole = whole.values()
        self._live_brokers = SharedArray(self._all_brokers())
        self._live_leaders: dict[frozenset[BrokerId], SharedArray[LeaderAndIsrLiveLeader]] = {}
        """The encoded leaders, shared by all brokers that are sent the same ones."""
        self._metadata: list[tuple[Partitions, list[tuple[UpdateMetadataTopicState, ...]]]] = []
        """The encoded partitions, shared by all brokers that are sent the same ones."""

    def build(self, gathered: Mapping[BrokerId, ForBroker]) -> Iterator[AddressedRequest | None]:
        """Yield the requests in order for each broker, and None if other tasks may get a turn."""
        for broker, what in gathered.items():
            registered = self._state.brokers.get(broker)
            if registered is not None:
                for request in self._requests(broker, registered.epoch, what):
                    yield None if request is None else (broker, request)

    def _requests(self, broker: BrokerId, epoch: BrokerEpoch, what: ForBroker) -> Iterator[ControlRequest | None]:
        yield from self._leader_and_isr(broker, epoch, what.leader_and_isr)
        if what.metadata is not None:
            yield from self._update_metadata(epoch, what.metadata)
        yield from self._stop_replica(epoch, what)

    # LeaderAndIsr

    def _leader_and_isr(
        self, broker: BrokerId, epoch: BrokerEpoch, partitions: Mapping[TopicPartition, bool]
    ) -> Iterator[LeaderAndIsrRequest | None]:
        whole = [topic for topic in self._whole if broker in topic.leader_and_isr]
        if not (partitions or whole):
            return
        leaders = frozenset(self._entries.leaders(partitions).union(*{topic.leaders for topic in whole}))
        live_leaders = self._live_leaders.get(leaders)
        if live_leaders is None:
            live_leaders = self._live_leaders[leaders] = SharedArray(self._endpoints_of(leaders))
        written = (topic.leader_and_isr[broker] for topic in whole)
        for topics in _request_sized(chain(written, self._entries.leader_and_isr(partitions))):
            yield (
                None
                if topics is None
                else LeaderAndIsrRequest(
                    controller_id=self._identity.id,
                    controller_epoch=self._identity.epoch,
                    broker_epoch=epoch,
                    topic_states=entries.make_encoded_topics(LeaderAndIsrTopicState, topics),
                    live_leaders=live_leaders,
                )
            )

    def _endpoints_of(self, leaders: Iterable[BrokerId]) -> Iterator[LeaderAndIsrLiveLeader]:
        listener = self._identity.listeners.inter_broker
        for leader in sorted(leaders):
            if (broker := self._state.brokers.get(leader)) and (endpoint := broker.find_endpoint(listener)):
                yield LeaderAndIsrLiveLeader(broker_id=leader, host_name=endpoint.host, port=endpoint.port)

    # UpdateMetadata

    def _update_metadata(self, epoch: BrokerEpoch, partitions: Partitions) -> Iterator[UpdateMetadataRequest | None]:
        made = next((made for known, made in self._metadata if known is partitions or known == partitions), None)
        if made is None:
            made = []
            makes_forget = not self._deleted.keys().isdisjoint(partitions)
            written = (topic.metadata for topic in self._whole if topic.metadata)
            for part in _request_sized(chain(written, self._entries.update_metadata(partitions))):
                if part is None:
                    yield None
                else:
                    made.append(entries.make_encoded_topics(UpdateMetadataTopicState, part, makes_forget=makes_forget))
            self._metadata.append((partitions, made))
        for topics in made or [()]:
            yield UpdateMetadataRequest(
                controller_id=self._identity.id,
                controller_epoch=self._identity.epoch,
                broker_epoch=epoch,
                topic_states=topics,
                live_brokers=self._live_brokers,
            )

    def _all_brokers(self) -> Iterable[UpdateMetadataBroker]:
        """Yield the brokers that others see as alive, and the controller.

        A broker that is shutting down and leads nothing is left out. Otherwise a leader would not raise its high
        watermark above what that broker has copied until it looks again, which may be seconds after the broker's
        stop: before KRaft, `Partition.isReplicaIsrEligible` of brokers knows only who is alive.
        """
        relieved = self._state.find_relieved()
        for broker in self._state.brokers.values():
            if broker.id in relieved:
                continue
            endpoints = tuple(_endpoint(endpoint) for endpoint in broker.endpoints)
            listed = UpdateMetadataBroker(id=broker.id, endpoints=endpoints, rack=broker.rack)
            try:
                require_encodable(listed)
            except Unencodable as error:
                consequence = "broker cannot be listed in metadata, so other brokers do not find it"
                self._state.unusable.report(paths.broker(broker.id), consequence, error, broker=broker.id)
            else:
                yield listed
        own = self._identity.listeners.list_endpoints(self._state.brokers.values())
        yield UpdateMetadataBroker(
            id=self._identity.id,
            endpoints=tuple(_endpoint(endpoint) for endpoint in own),
            rack=self._state.find_rack_of_controller(),
        )

    # StopReplica

    def _stop_replica(self, epoch: BrokerEpoch, what: ForBroker) -> Iterator[StopReplicaRequest | None]:
        for topics in _request_sized(stop_entries(self._state, what.stop, what.strays)):
            yield (
                None
                if topics is None
                else StopReplicaRequest(
                    controller_id=self._identity.id,
                    controller_epoch=self._identity.epoch,
                    broker_epoch=epoch,
                    topic_states=entries.make_encoded_topics(StopReplicaTopicState, topics),
                )
            )


def _request_sized(topics: Iterable[bytes]) -> Iterator[list[bytes] | None]:
    """Divide topics into runs that fit one request. Yield None if only a part of a run is done."""
    run: list[bytes] = []
    size = part = 0
    for topic in topics:
        if run and size + len(topic) > REQUEST_BYTES:
            yield run
            run, size = [], 0
        run.append(topic)
        size += len(topic)
        part += len(topic)
        if part > PART_BYTES:
            yield None
            part = 0
    if run:
        yield run


def _endpoint(endpoint: Endpoint) -> UpdateMetadataEndpoint:
    return UpdateMetadataEndpoint(
        port=endpoint.port,
        host=endpoint.host,
        listener=endpoint.listener,
        security_protocol=SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
    )
