"""All replicas on this broker: commands of the controller, appends of producers, fetches of followers and consumers.

This class connects the parts and finds the partition of a request; the work is in `commands`, `leading` and
`following`. Everything runs in one event loop. No change of a partition awaits halfway, so commands, appends and
fetches never see half of one another's work.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionEpoch, TopicName, TopicPartition
from controller_core.supervision import start_supervised
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
)
from replica_broker.counters import BrokerCounters
from replica_broker.log.directories import LogDirectories
from replica_broker.log.errors import LogError
from replica_broker.log.log import Appended
from replica_broker.log.producers.markers import EndOfTransaction
from replica_broker.log.producers.states import ProducerStates
from replica_broker.replicas import housekeeping
from replica_broker.replicas.commands.becoming import Becoming
from replica_broker.replicas.commands.stopping import Stopping
from replica_broker.replicas.errors import NotLeader, ReplicaRefused, StorageFailed, UnknownPartition
from replica_broker.replicas.following.applying import Applying
from replica_broker.replicas.following.fetchers import Fetchers
from replica_broker.replicas.leading import offsets
from replica_broker.replicas.leading.appending import ALL, Appending
from replica_broker.replicas.leading.committing import Committing
from replica_broker.replicas.leading.deleting import Deleting
from replica_broker.replicas.leading.fetches import Fetches
from replica_broker.replicas.leading.isr_changes import IsrChanges
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.replica import NEVER_MS
from replica_broker.replicas.requests import CONSUMER, Deleted, EpochEnd, Fetch, Fetched, ListedOffset
from replica_broker.replicas.seams import IsrWriter, LeaderLinks, TopicConfigs
from replica_broker.replicas.settings import ReplicaSettings
from replica_broker.replicas.storage import Storage


class Replicas:
    """All replicas on this broker.

    `is_known` returns True if the metadata cache has a partition. A partition without a replica here is then led by
    another broker, and otherwise unknown. `is_alive` returns True for a live broker. `on_directory_failed` is called
    after a failure of a log directory, to notify the controller.
    """

    def __init__(
        self,
        settings: ReplicaSettings,
        directories: LogDirectories,
        links: LeaderLinks,
        isr_writer: IsrWriter,
        configs: TopicConfigs,
        clock: Clock,
        *,
        is_known: Callable[[TopicPartition], bool] = lambda topic_partition: False,
        is_alive: Callable[[BrokerId], bool] = lambda broker: True,
        on_directory_failed: Callable[[], object] = lambda: None,
        counters: BrokerCounters | None = None,
    ) -> None:
        self._settings = settings
        self._configs = configs
        self._clock = clock
        self._is_known = is_known
        self._counters = counters = counters or BrokerCounters()
        self._storage = Storage(directories, on_directory_failed=on_directory_failed)
        applying = Applying(self._storage, counters)
        self._committing = Committing(settings, configs, clock)
        self._isr_changes = IsrChanges(settings, isr_writer, self._committing, clock, counters)
        self._fetchers = Fetchers(applying, links, settings, clock)
        self._appending = Appending(self._committing, clock, counters)
        self._fetches = Fetches(self._find, self._storage, self._committing, self._isr_changes, clock)
        self._deleting = Deleting(self._find, self._storage, is_alive)
        self._stopping = Stopping(self._storage, self._fetchers)
        self._becoming = Becoming(
            settings,
            self._storage,
            self._fetchers,
            applying,
            self._committing,
            self._isr_changes,
            configs,
            clock,
        )
        self._storage.when_offline(lambda partition: self._fetchers.stop(partition.topic_partition))
        self._background: list[asyncio.Task[None]] = []

    @property
    def hosted(self) -> Mapping[TopicPartition, Partition]:
        """The partitions with a replica on this broker, including offline ones."""
        return self._storage.hosted

    @property
    def high_watermarks(self) -> Mapping[TopicPartition, int]:
        """The high watermarks of the online replicas, for the last checkpoint."""
        return housekeeping.high_watermarks(self._storage)

    def is_under_min_isr(self, partition: Partition) -> bool:
        """Return True if the ISR is too small for acks=all."""
        return len(partition.isr) < self._committing.min_insync_replicas(partition)

    def start(self) -> None:
        """Start the background tasks."""
        work = {
            "take slow followers out of the ISR": lambda: self._isr_changes.keep(self._list_led),
            "checkpoint high watermarks": lambda: housekeeping.keep_checkpointing(
                self._storage, self._settings, self._clock
            ),
            "flush logs": lambda: housekeeping.keep_flushing(self._storage, self._settings, self._clock),
            "delete old segments": lambda: housekeeping.keep_deleting(self._storage, self._settings, self._clock),
        }
        self._background += [
            start_supervised(each, name=name, sleep_ms=self._clock.sleep_ms) for name, each in work.items()
        ]

    async def close(self) -> None:
        """Stop the tasks, wake all waiters, and write the high watermarks. The directories close the logs."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._fetchers.close()
        for partition in self._storage.hosted.values():
            partition.stop()
        housekeeping.checkpoint(self._storage)

    async def on_leader_and_isr_command(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Start to lead and follow. Each partition succeeds or fails alone."""
        response = self._becoming.on_leader_and_isr_command(request)
        await self._fetchers.close_idle()
        return response

    async def on_stop_replica_command(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop replicas, and delete logs if the command says so."""
        response = self._stopping.on_stop_replica_command(request)
        await self._fetchers.close_idle()
        return response

    async def on_topic_configs_changed(self, topic: TopicName) -> None:
        """Apply a topic's new configuration, also to waiting requests."""
        config = self._configs.log_config(topic)
        for topic_partition, partition in self._storage.hosted.items():
            if topic_partition.topic == topic and not partition.is_offline:
                partition.log.config = config
                self._committing.advance(partition)
                partition.notify()

    def on_brokers_changed(self) -> None:
        """Handle new live brokers from the controller."""
        self._deleting.on_brokers_changed()

    def take_written(
        self,
        topic_partition: TopicPartition,
        *,
        isr: tuple[BrokerId, ...],
        partition_epoch: PartitionEpoch,
        assigned_replicas: tuple[BrokerId, ...],
    ) -> None:
        """Take over an ISR or assignment that the leader has written itself in its epoch.

        Raises `ReplicaRefused` if the partition has no replica here.
        """
        partition = self._find(topic_partition)
        partition.isr, partition.partition_epoch, partition.proposed = isr, partition_epoch, None
        partition.assign(assigned_replicas)
        for broker, follower in partition.followers.items():
            if broker not in isr:
                follower.last_caught_up_ms = NEVER_MS  # so that it is not waited for before it has caught up
        self._committing.advance(partition)
        partition.notify()

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        """Return True if the log is in a failed directory."""
        return self._storage.is_offline(topic_partition)

    def may_be_offline(self, topic_partition: TopicPartition) -> bool:
        """Return True if the log is in a failed directory, or may have been in one because it is in no other."""
        return self._storage.may_be_offline(topic_partition)

    def when_offline(self, listener: Callable[[Partition], object]) -> None:
        """Call the listener with each replica whose log directory fails."""
        self._storage.when_offline(listener)

    def on_directory_offline(self) -> None:
        """Handle the failure of a directory outside of these methods, for `LogDirectories(on_offline=)`."""
        self._storage.take_offline()

    def append(
        self, topic_partition: TopicPartition, records: bytes, *, acks: int, timeout_ms: int
    ) -> Callable[[], Awaitable[Appended]]:
        """Append to a log that this broker leads. Return the function that waits for the acks.

        For acks=all it waits until the messages are committed. It does not refer to the records. Both raise
        `ReplicaRefused` and `LogError`, which have an `error_code`.
        """
        with self._count_refused_produce():
            partition = self._find(topic_partition)
            with self._storage.guard(topic_partition):
                appended = self._appending.append(partition, records, acks=acks)
            reigns = partition.reigns

        async def wait() -> Appended:
            if acks == ALL:
                with self._count_refused_produce():
                    await self._appending.wait_until_committed(
                        partition, appended.last_offset + 1, reigns=reigns, timeout_ms=timeout_ms
                    )
            return appended

        return wait

    async def append_marker(self, topic_partition: TopicPartition, end: EndOfTransaction, *, timeout_ms: int) -> None:
        """Append a transaction's end marker to a log that this broker leads, and wait until it is committed.

        Raises as `append`.
        """
        partition = self._find(topic_partition)
        with self._storage.guard(topic_partition):
            appended = self._appending.append_marker(partition, end)
        await self._appending.wait_until_committed(
            partition, appended.last_offset + 1, reigns=partition.reigns, timeout_ms=timeout_ms
        )

    async def fetch(self, asked: Fetch) -> dict[TopicPartition, Fetched]:
        """Return the messages of each partition. Errors are in the answers."""
        answers = await self._fetches.fetch(asked)
        for answer in answers.values():
            if answer.error_code is not ErrorCode.none:
                self._counters.count_refused("Fetch", answer.error_code)
        size_bytes = sum(len(answer.records) for answer in answers.values())
        self._counters.count_sent(size_bytes, is_to_follower=asked.is_from_follower)
        return answers

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int
    ) -> dict[TopicPartition, Deleted]:
        """Delete the messages before these offsets of logs that this broker leads. Errors are in the results."""
        return await self._deleting.delete(offsets, timeout_ms=timeout_ms)

    def producers(self, topic_partition: TopicPartition) -> ProducerStates:
        """Return the producers of a partition as this replica knows them, as a leader or a follower.

        Raises `ReplicaRefused`.
        """
        partition = self._find(topic_partition)
        if partition.is_offline:
            raise StorageFailed(topic_partition, "its log directory failed")
        return partition.log.producers

    def list_offset(
        self,
        topic_partition: TopicPartition,
        timestamp_ms: int,
        *,
        current_leader_epoch: LeaderEpoch,
        replica_id: BrokerId = CONSUMER,
    ) -> ListedOffset:
        """Return the offset of a timestamp. Raises `ReplicaRefused`.

        The isolation level does not matter: without transactions, all committed messages are stable.
        """
        partition = self._find(topic_partition)
        with self._storage.guard(topic_partition):
            return offsets.list_offset(
                partition, timestamp_ms, current_leader_epoch=current_leader_epoch, is_follower=replica_id >= 0
            )

    def find_epoch_end(
        self, topic_partition: TopicPartition, *, current_leader_epoch: LeaderEpoch, asked_epoch: LeaderEpoch
    ) -> EpochEnd:
        """Return the end of an epoch in the leader's log. Raises `ReplicaRefused`."""
        partition = self._find(topic_partition)
        return offsets.find_epoch_end(partition, current_leader_epoch=current_leader_epoch, asked_epoch=asked_epoch)

    @contextmanager
    def _count_refused_produce(self) -> Iterator[None]:
        try:
            yield
        except (ReplicaRefused, LogError) as error:
            self._counters.count_refused("Produce", error.error_code)
            raise

    def _list_led(self) -> Iterator[Partition]:
        return (partition for partition in list(self._storage.hosted.values()) if partition.is_leader)

    def _find(self, topic_partition: TopicPartition) -> Partition:
        """Return the hosted partition. Raises `StorageFailed`, `NotLeader`, `UnknownPartition`."""
        partition = self._storage.hosted.get(topic_partition)
        if partition is not None:
            return partition
        if self._storage.is_offline(topic_partition):
            raise StorageFailed(topic_partition, "its log directory failed")
        if self._is_known(topic_partition):
            raise NotLeader(topic_partition, "this broker has no replica")
        raise UnknownPartition(topic_partition, "this broker does not know it")
