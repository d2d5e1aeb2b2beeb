"""What the brokers are to be sent about one event, gathered while it is handled and sent when it is done.

Operations name partitions and receivers; the requests are built at the end from the state that the event left, so a
partition that changed three times is sent once. Each broker gets at most one LeaderAndIsr, one UpdateMetadata and one
StopReplica request, in this order. A broker learns of the controller, and so of where to send its own requests, from
UpdateMetadata alone: every one carries all live brokers, and among them the controller itself, which is a broker to the
others without ever being registered as one.
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
    """Takes requests for a broker, in order; `controller_core.controller.sending.channels` is the real one."""

    def send(self, broker: BrokerId, request: ControlRequest) -> None: ...


class RequestBatch:
    """Gathers requests during an event; `flush` sends them."""

    def __init__(self, state: ClusterState, identity: ControllerIdentity) -> None:
        self._state = state
        self._identity = identity
        self._brokers: defaultdict[BrokerId, ForBroker] = defaultdict(ForBroker)
        """What each broker is sent; in UpdateMetadata, beside what all are sent."""
        self._metadata_of_all: Partitions = {}
        """What each of `_all_brokers` is sent: the same partitions, and so the same bytes."""
        self._all_brokers: frozenset[BrokerId] = frozenset()
        self._deleted: dict[TopicPartition, TopicId | None] = {}
        self._whole: Prepared = NOTHING_PREPARED

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send to anybody."""
        return not (self._brokers or self._all_brokers or self._deleted or self._whole)

    def send_all_of(self, topics: Prepared) -> None:
        """Sends every broker all there is of the topics. They are written already: the state must stay as it is."""
        if topics:
            self._whole = topics
            self.update_metadata(())

    def leader_and_isr(
        self, topic_partition: TopicPartition, receivers: Iterable[BrokerId], *, is_new: bool = False
    ) -> None:
        """Sends the receivers a partition's leadership and assignment, and with them every broker's metadata cache."""
        self.leader_and_isr_of({topic_partition: receivers}, is_new=is_new)

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
        """Sends one broker many partitions that are not new to it; the metadata caches are the caller's matter."""
        if broker in self._state.live_or_shutting_down:
            requests = self._brokers[broker]
            requests.leader_and_isr = dict.fromkeys(partitions, False) | requests.leader_and_isr

    def update_metadata(self, partitions: Iterable[TopicPartition], brokers: Iterable[BrokerId] | None = None) -> None:
        """Updates the metadata caches of the brokers, by default of all; no partitions: the list of brokers alone."""
        if brokers is not None:
            added = dict.fromkeys(partitions)
            for broker in brokers:
                self._add_metadata(broker, added)
            return
        if self._all_brokers != self._state.live_or_shutting_down:
            self._give_each_its_own()
            self._all_brokers = frozenset(self._state.live_or_shutting_down)
        if self._metadata_of_all:
            self._metadata_of_all.update(dict.fromkeys(partitions))
        else:
            self._metadata_of_all = dict.fromkeys(partitions)

    def _give_each_its_own(self) -> None:
        """Makes what was meant for all something for each of them: from now on, all are others."""
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
        """Makes brokers, by default all, drop partitions from their metadata caches: they are being deleted or gone.

        `topic_id` is that of the topic that stays. None where all of it goes: a broker that does not know the topic would
        keep an id that comes with its deletion."""
        partitions = list(partitions)
        self._deleted.update(dict.fromkeys(partitions, topic_id))
        self.update_metadata(partitions, brokers)

    def stop_replica(self, topic_partition: TopicPartition, broker: BrokerId, *, delete: bool) -> None:
        """Makes a broker stop its replica, and delete its log if asked to."""
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
        for addressed in self._requests():
            if addressed is not None:
                sink.send(*addressed)

    async def flush_gently(self, sink: RequestSink) -> None:
        """As `flush`, and whoever else is on the event loop has a turn every few milliseconds.

        Only where nobody changes the state meanwhile: the operation waits for it, or is done."""
        for addressed in self._requests():
            if addressed is None:
                await asyncio.sleep(0)
            else:
                sink.send(*addressed)

    def discard(self) -> None:
        """Drops what was gathered: whoever is no longer the controller must not send anybody anything."""
        self._brokers = defaultdict(ForBroker)
        self._metadata_of_all, self._all_brokers = {}, frozenset()
        self._deleted, self._whole = {}, NOTHING_PREPARED

    def _requests(self) -> Iterator[AddressedRequest | None]:
        """Takes what was gathered and builds the requests."""
        gathered, of_all, deleted, whole = self._brokers, self._metadata_of_all, self._deleted, self._whole
        for broker in self._all_brokers:
            requests = gathered[broker]
            requests.metadata = {**of_all, **requests.metadata} if requests.metadata else of_all
        self.discard()
        if not gathered:
            return iter(())
        return BrokerRequests(self._state, self._identity, deleted, whole).build(gathered)
