"""The requests to brokers about one event, gathered while it is handled and sent when it ends.

Operations name partitions and receivers. The requests are built at the end from the resulting state, so a partition
that changed three times is sent once. Each broker gets at most one LeaderAndIsr, one UpdateMetadata and one StopReplica
request, in this order. Brokers find the controller only through UpdateMetadata. So each one lists all live brokers, and
the controller among them, which other brokers take for a broker although it is not registered.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from controller_core.controller.sending.broker_requests import (
    AddressedRequest,
    BrokerRequests,
    ControllerIdentity,
    ForBroker,
    Partitions,
)
from controller_core.controller.sending.prepared_topic import NOTHING_PREPARED, Prepared
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import BrokerId, TopicId, TopicPartition
from controller_core.wire.messages import ControlRequest


class RequestSink(Protocol):
    """Takes requests for a broker, in order. The real one is `controller_core.controller.sending.channels`."""

    def send(self, broker: BrokerId, request: ControlRequest) -> None: ...


class RequestBatch:
    """Gathers requests during an event; `flush` sends them."""

    def __init__(self, state: ClusterState, identity: ControllerIdentity) -> None:
        self._state = state
        self._identity = identity
        self._brokers: defaultdict[BrokerId, ForBroker] = defaultdict(ForBroker)
        """The content for each broker; in UpdateMetadata, in addition to the content for all."""
        self._metadata_of_all: Partitions = {}
        """The content for each of `_all_brokers`: the same partitions, and so the same bytes."""
        self._all_brokers: frozenset[BrokerId] = frozenset()
        self._deleted: dict[TopicPartition, TopicId | None] = {}
        self._whole: Prepared = NOTHING_PREPARED

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to send to any broker."""
        return not (self._brokers or self._all_brokers or self._deleted or self._whole)

    def send_all_of(self, topics: Prepared) -> None:
        """Send every broker its part of whole topics. They are encoded already, so the state must not change."""
        if topics:
            self._whole = topics
            self.update_metadata(())

    def add_leader_and_isr(
        self, topic_partition: TopicPartition, receivers: Iterable[BrokerId], *, is_new: bool = False
    ) -> None:
        """Send a partition's leadership and assignment to the receivers, and its metadata to all brokers."""
        self.add_leader_and_isr_of({topic_partition: receivers}, is_new=is_new)

    def add_leader_and_isr_of(
        self, receivers: Mapping[TopicPartition, Iterable[BrokerId]], *, is_new: bool = False
    ) -> None:
        """Like `add_leader_and_isr`, for many partitions, each with its receivers."""
        live = {broker: self._brokers[broker].leader_and_isr for broker in self._state.live_or_shutting_down}
        for partition, brokers in receivers.items():
            for broker in brokers:
                if (requests := live.get(broker)) is not None:
                    requests[partition] = is_new or requests.get(partition, False)
        self.update_metadata(receivers)

    def add_leader_and_isr_to(self, broker: BrokerId, partitions: Collection[TopicPartition]) -> None:
        """Send one broker many partitions that are not new to it. The caller updates the metadata caches."""
        if broker in self._state.live_or_shutting_down:
            requests = self._brokers[broker]
            requests.leader_and_isr = dict.fromkeys(partitions, False) | requests.leader_and_isr

    def update_metadata(self, partitions: Iterable[TopicPartition], brokers: Iterable[BrokerId] | None = None) -> None:
        """Update the metadata caches of the brokers, by default of all. No partitions: only the list of brokers."""
        if brokers is not None:
            added = dict.fromkeys(partitions)
            for broker in brokers:
                self._add_metadata(broker, added)
            return
        # Brokers have come or gone: what was meant for the former ones must not go to the new ones.
        if self._all_brokers != self._state.live_or_shutting_down:
            self._give_each_its_own()
            self._all_brokers = frozenset(self._state.live_or_shutting_down)
        if self._metadata_of_all:
            self._metadata_of_all.update(dict.fromkeys(partitions))
        else:
            self._metadata_of_all = dict.fromkeys(partitions)

    def _give_each_its_own(self) -> None:
        """Copy the content for all to each of its brokers, because from now on "all" are other brokers."""
        for broker in self._all_brokers:
            self._add_metadata(broker, self._metadata_of_all)
        self._metadata_of_all, self._all_brokers = {}, frozenset()

    def _add_metadata(self, broker: BrokerId, partitions: Partitions) -> None:
        requests = self._brokers[broker]
        if requests.metadata is None:
            requests.metadata = partitions.copy()
        else:
            requests.metadata.update(partitions)

    def forget_metadata(
        self,
        partitions: Iterable[TopicPartition],
        topic_id: TopicId | None,
        brokers: Iterable[BrokerId] | None = None,
    ) -> None:
        """Make brokers, by default all, drop partitions from their metadata caches, because they are deleted or gone.

        `topic_id` is the id of a topic that stays. It is None if the whole topic goes: a broker that does not know the
        topic would keep an id that comes with its deletion.
        """
        partitions = list(partitions)
        self._deleted.update(dict.fromkeys(partitions, topic_id))
        self.update_metadata(partitions, brokers)

    def stop_replica(self, topic_partition: TopicPartition, broker: BrokerId, *, delete: bool) -> None:
        """Make a broker stop its replica, and delete its log on request."""
        if broker in self._state.live_or_shutting_down:
            stops = self._brokers[broker].stop
            stops[topic_partition] = delete or stops.get(topic_partition, False)

    def delete_stray(self, topic_partition: TopicPartition, broker: BrokerId) -> None:
        """Make a broker delete a log that belongs to no assigned replica, whatever its leader epoch is."""
        if broker in self._state.live_or_shutting_down:
            self.stop_replica(topic_partition, broker, delete=True)
            self._brokers[broker].strays.add(topic_partition)

    def flush(self, sink: RequestSink) -> None:
        """Build the requests from the present state, pass them to the sink, and start an empty batch."""
        for addressed in self._requests():
            if addressed is not None:
                sink.send(*addressed)

    async def flush_gently(self, sink: RequestSink) -> None:
        """Like `flush`, but give the event loop a turn every few milliseconds.

        The state must not change in between: the operation waits for this, or has ended.
        """
        for addressed in self._requests():
            if addressed is None:
                await asyncio.sleep(0)
            else:
                sink.send(*addressed)

    def discard(self) -> None:
        """Drop what was gathered. A process that is no longer the controller must not send anything."""
        self._brokers = defaultdict(ForBroker)
        self._metadata_of_all, self._all_brokers = {}, frozenset()
        self._deleted, self._whole = {}, NOTHING_PREPARED

    def _requests(self) -> Iterator[AddressedRequest | None]:
        """Take what was gathered and build the requests."""
        gathered, of_all, deleted, whole = self._brokers, self._metadata_of_all, self._deleted, self._whole
        for broker in self._all_brokers:
            requests = gathered[broker]
            requests.metadata = {**of_all, **requests.metadata} if requests.metadata else of_all
        self.discard()
        if not gathered:
            return iter(())
        return BrokerRequests(self._state, self._identity, deleted, whole).build(gathered)
