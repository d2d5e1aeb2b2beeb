"""All replicas on this broker: what the controller commands, what producers append, what followers and consumers fetch.

This puts the parts together and finds the partition that is meant; what happens is in `commands`,
`leading` and `following`. Everything runs in one event loop, and nothing that touches a partition waits in its midst:
so commands, appends and fetches see each other's work whole.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionEpoch, TopicName, TopicPartition
from controller_core.supervision import supervised
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
    """See the module.

    `is_known` says whether the metadata cache has a partition: one that is not here is led by another broker then, and
    unknown else. `is_alive` says whether a broker is. `on_directory_failed` is called when a log directory has failed: the
    controller is to be told."""

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
        """The partitions of which a replica is here, offline ones among them."""
        return self._storage.hosted

    @property
    def high_watermarks(self) -> Mapping[TopicPartition, int]:
        """What is committed, as the directories write it down when they are closed."""
        return housekeeping.high_watermarks(self._storage)

    def is_under_min_isr(self, partition: Partition) -> bool:
        """Whether fewer are in sync than a producer with acks=all needs."""
        return len(partition.isr) < self._committing.min_insync_replicas(partition)

    def start(self) -> None:
        """Begins what goes on in the background."""
        work = {
            "take slow followers out of the ISR": lambda: self._isr_changes.keep(self._led),
            "checkpoint high watermarks": lambda: housekeeping.keep_checkpointing(
                self._storage, self._settings, self._clock
            ),
            "flush logs": lambda: housekeeping.keep_flushing(self._storage, self._settings, self._clock),
            "delete old segments": lambda: housekeeping.keep_deleting(self._storage, self._settings, self._clock),
        }
        self._background += [supervised(each, name=name, sleep_ms=self._clock.sleep_ms) for name, each in work.items()]

    async def close(self) -> None:
        """Ends it, answers who waits, and writes the high watermarks. The logs are closed by their directories."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._fetchers.close()
        for partition in self._storage.hosted.values():
            partition.stop()
        housekeeping.checkpoint(self._storage)

    async def on_leader_and_isr_command(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Begins to lead and to follow; every partition is judged for itself."""
        response = self._becoming.on_leader_and_isr_command(request)
        await self._fetchers.close_idle()
        return response

    async def on_stop_replica_command(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stops replicas, and deletes logs where that is said."""
        response = self._stopping.on_stop_replica_command(request)
        await self._fetchers.close_idle()
        return response

    async def on_topic_configs_changed(self, topic: TopicName) -> None:
        """What is configured for a topic holds from now on, also for who waits."""
        config = self._configs.log_config(topic)
        for topic_partition, partition in self._storage.hosted.items():
            if topic_partition.topic == topic and not partition.is_offline:
                partition.log.config = config
                self._committing.advance(partition)
                partition.notify()

    def on_brokers_changed(self) -> None:
        """The controller said who is alive."""
        self._deleting.on_brokers_changed()

    def take_written(
        self,
        topic_partition: TopicPartition,
        *,
        isr: tuple[BrokerId, ...],
        partition_epoch: PartitionEpoch,
        assigned_replicas: tuple[BrokerId, ...],
    ) -> None:
        """What the leader of a partition has written of it by itself, in its epoch: an ISR, or an assignment.

        Raises `ReplicaRefused` where the partition is not here."""
        partition = self._find(topic_partition)
        partition.isr, partition.partition_epoch, partition.proposed = isr, partition_epoch, None
        partition.assign(assigned_replicas)
        for broker, follower in partition.followers.items():
            if broker not in isr:
                follower.last_caught_up_ms = NEVER_MS  # nobody waits for it before it has caught up
        self._committing.advance(partition)
        partition.notify()

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        """Whether the log is in a directory that failed."""
        return self._storage.is_offline(topic_partition)

    def may_be_offline(self, topic_partition: TopicPartition) -> bool:
        """Whether the log is in a directory that failed, or there is none and it may have been in such a directory."""
        return self._storage.may_be_offline(topic_partition)

    def when_offline(self, listener: Callable[[Partition], object]) -> None:
        """Calls it with every replica whose log directory fails."""
        self._storage.when_offline(listener)

    def on_directory_offline(self) -> None:
        """For `LogDirectories(on_offline=)`: a directory failed in something that nobody here did."""
        self._storage.take_offline()

    async def append(self, topic_partition: TopicPartition, records: bytes, *, acks: int, timeout_ms: int) -> Appended:
        """Appends to the log that this broker leads, and waits until that is committed, where acks ask for it.

        Raises `ReplicaRefused` and `LogError`, which have an `error_code`."""
        try:
            partition = self._find(topic_partition)
            with self._storage.guarded(topic_partition):
                appended = self._appending.append(partition, records, acks=acks)
            if acks == ALL:
                await self._appending.until_committed(partition, appended.last_offset + 1, timeout_ms=timeout_ms)
        except (ReplicaRefused, LogError) as error:
            self._counters.refused("Produce", error.error_code)
            raise
        return appended

    async def append_marker(self, topic_partition: TopicPartition, end: EndOfTransaction, *, timeout_ms: int) -> None:
        """Appends the end of a transaction to the log that this broker leads, and waits until that is committed.

        Raises as `append`."""
        partition = self._find(topic_partition)
        with self._storage.guarded(topic_partition):
            appended = self._appending.append_marker(partition, end)
        await self._appending.until_committed(partition, appended.last_offset + 1, timeout_ms=timeout_ms)

    async def fetch(self, asked: Fetch) -> dict[TopicPartition, Fetched]:
        """What is there of each partition; raises nothing, as errors are in the answers."""
        answers = await self._fetches.fetch(asked)
        for answer in answers.values():
            if answer.error_code is not ErrorCode.none:
                self._counters.refused("Fetch", answer.error_code)
        size_bytes = sum(len(answer.records) for answer in answers.values())
        self._counters.sent(size_bytes, is_to_follower=asked.is_from_follower)
        return answers

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int
    ) -> dict[TopicPartition, Deleted]:
        """Deletes what is before these offsets of logs that this broker leads; raises nothing."""
        return await self._deleting.delete(offsets, timeout_ms=timeout_ms)

    def producers(self, topic_partition: TopicPartition) -> ProducerStates:
        """Who wrote to a partition, as the replica here knows it, be it the leader's or a follower's. Raises
        `ReplicaRefused`."""
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
        """Where the messages of a time begin. Raises `ReplicaRefused`.

        Nothing here depends on the isolation level: without transactions, all that is committed is stable."""
        partition = self._find(topic_partition)
        with self._storage.guarded(topic_partition):
            return offsets.list_offset(
                partition, timestamp_ms, current_leader_epoch=current_leader_epoch, is_follower=replica_id >= 0
            )

    def end_of_epoch(
        self, topic_partition: TopicPartition, *, current_leader_epoch: LeaderEpoch, asked_epoch: LeaderEpoch
    ) -> EpochEnd:
        """Where an epoch ends in the leader's log. Raises `ReplicaRefused`."""
        partition = self._find(topic_partition)
        return offsets.end_of_epoch(partition, current_leader_epoch=current_leader_epoch, asked_epoch=asked_epoch)

    def _led(self) -> Iterator[Partition]:
        return (partition for partition in list(self._storage.hosted.values()) if partition.is_leader)

    def _find(self, topic_partition: TopicPartition) -> Partition:
        """Raises `StorageFailed`, `NotLeader`, `UnknownPartition`."""
        partition = self._storage.hosted.get(topic_partition)
        if partition is not None:
            return partition
        if self._storage.is_offline(topic_partition):
            raise StorageFailed(topic_partition, "its log directory failed")
        if self._is_known(topic_partition):
            raise NotLeader(topic_partition, "it is on other brokers")
        raise UnknownPartition(topic_partition, "nobody has told this broker of it")
