"""The seed's `ReplicaFetcherThread`: a task that fetches several partitions from one leader in each request.

A partition first truncates what its leader does not have, then fetches from its log's end. A response is applied
without interruption, after a check that the partition still follows this leader in this epoch. So nothing of the old
leader is appended after `remove`, as the seed demands before a replica leads.

If the leader fences a partition's epoch, fetching stops until a command brings the new one (KIP-320). All other errors
are retried after a pause: for one partition, starting short, or for all if the leader does not answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import LeaderEpoch, TopicPartition
from controller_core.supervision import start_supervised
from controller_core.wire.messages import ErrorCode
from replica_broker.replicas.following.applying import Applying
from replica_broker.replicas.following.following import Following, Phase
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.requests import EARLIEST, LATEST, Asked, EpochEnd, Fetch, Fetched
from replica_broker.replicas.seams import LeaderEndpoint, LeaderLink, LeaderLinkError
from replica_broker.replicas.settings import ReplicaSettings

log = structlog.get_logger()


class Fetcher:
    """Follows one leader until it is closed."""

    def __init__(
        self, endpoint: LeaderEndpoint, link: LeaderLink, applying: Applying, settings: ReplicaSettings, clock: Clock
    ) -> None:
        self._endpoint = endpoint
        self._link = link
        self._applying = applying
        self._settings = settings
        self._clock = clock
        self._following: dict[TopicPartition, Following] = {}
        self._changed = asyncio.Event()
        self._task = start_supervised(
            self._follow, name=f"fetch from broker {endpoint.broker}", sleep_ms=clock.sleep_ms
        )

    @property
    def is_idle(self) -> bool:
        return not self._following

    def add(self, partition: Partition) -> None:
        """Start to follow for a partition, in its current epoch."""
        phase = Phase.CUT if self._settings.truncate_to == "leader epoch" else Phase.FETCH
        self._following[partition.topic_partition] = Following(partition, partition.leader_epoch, phase)
        self._changed.set()

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop following for a partition. Later responses for it are ignored."""
        self._following.pop(topic_partition, None)

    async def close(self) -> None:
        """End the task and the connection."""
        self._following.clear()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._link.close()

    async def _follow(self) -> None:
        while True:
            self._changed.clear()
            now_ms = self._clock.monotonic_ms()
            due = [
                each for each in self._following.values() if each.paused_until_ms <= now_ms and self._is_present(each)
            ]
            if not due:
                await self._wait_until_due(now_ms)
                continue
            try:
                await self._do(due, Phase.CUT, self._cut)
                await self._do(due, Phase.FIND_RANGE, self._find_range)
                await self._do(due, Phase.FETCH, self._fetch)
            except LeaderLinkError as error:
                log.warning("a leader does not answer", leader=self._endpoint.broker, reason=str(error))
                await self._clock.sleep_ms(self._settings.fetch_backoff_ms)

    async def _wait_until_due(self, now_ms: float) -> None:
        first_ms = min(
            (each.paused_until_ms for each in self._following.values() if self._is_present(each)), default=None
        )
        try:
            async with asyncio.timeout(None if first_ms is None else (first_ms - now_ms) / 1000):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _do(
        self, due: Collection[Following], phase: Phase, work: Callable[[Collection[Following]], Awaitable[None]]
    ) -> None:
        if concerned := [each for each in due if each.phase is phase and self._is_present(each)]:
            await work(concerned)

    def _is_present(self, following: Following) -> bool:
        return self._following.get(following.partition.topic_partition) is following and following.is_current

    async def _cut(self, cutting: Collection[Following]) -> None:
        asked = {}
        for each in cutting:
            epoch = each.partition.log.latest_epoch
            if epoch is not None:
                asked[each.partition.topic_partition] = (each.leader_epoch, epoch)
            elif self._applying.cut_to_high_watermark(each.partition):
                each.phase = Phase.FETCH
        if not asked:
            return
        ends = await self._link.ends_of_epochs(asked, self._settings.broker_id)
        for each in cutting:
            end = ends.get(each.partition.topic_partition)
            if each.partition.topic_partition not in asked or not self._is_present(each):
                continue
            if not isinstance(end, EpochEnd):
                self._handle_refusal(each, end)
            elif self._cut_one(each, end):
                each.phase = Phase.FETCH

    def _cut_one(self, following: Following, leaders: EpochEnd) -> bool:
        """Truncate, and return True if the rest matches the leader's log.

        If nothing changed and it does not match, pause, because the leader would give the same answer again.
        """
        before = following.partition.log.latest_epoch, following.partition.replica.end_offset
        is_complete = self._applying.cut(following.partition, leaders)
        after = following.partition.log.latest_epoch, following.partition.replica.end_offset
        if before == after and not (is_complete and following.phase is Phase.CUT):
            following.pause(self._clock.monotonic_ms(), self._settings.fetch_backoff_ms)
        return is_complete

    async def _find_range(self, lost: Collection[Following]) -> None:
        """Find the leader's range and fit the log into it: Kafka's `fetchOffsetAndTruncate`.

        The leader has deleted the follower's next messages, or lost messages that the follower has.
        """

        def list_asked(timestamp: int) -> Mapping[TopicPartition, tuple[LeaderEpoch, int]]:
            return {each.partition.topic_partition: (each.leader_epoch, timestamp) for each in lost}

        ends = await self._link.list_offsets(list_asked(LATEST), self._settings.broker_id)
        starts = await self._link.list_offsets(list_asked(EARLIEST), self._settings.broker_id)
        for each in lost:
            start, end = (found.get(each.partition.topic_partition) for found in (starts, ends))
            if not self._is_present(each):
                continue
            if isinstance(start, ErrorCode) or isinstance(end, ErrorCode) or start is None or end is None:
                self._handle_refusal(each, start if isinstance(start, ErrorCode) else end)
                continue
            each.phase = Phase.FETCH
            if not self._applying.fit(each.partition, start, end):
                each.pause(
                    self._clock.monotonic_ms(), self._settings.fetch_backoff_ms
                )  # it was in range: the leader's reason is unknown, so give it time

    async def _fetch(self, fetching: Collection[Following]) -> None:
        asked = Fetch(
            partitions={each.partition.topic_partition: each.make_request(self._settings) for each in fetching},
            replica_id=self._settings.broker_id,
            max_wait_ms=self._settings.fetch_wait_max_ms,
            min_bytes=self._settings.fetch_min_bytes,
            max_bytes=self._settings.fetch_max_bytes,
        )
        answers = await self._link.fetch(asked)
        for each in fetching:
            topic_partition = each.partition.topic_partition
            if not self._is_present(each):
                continue
            if topic_partition in answers:
                self._take(each, asked.partitions[topic_partition], answers[topic_partition])
            else:
                self._handle_refusal(each, None)

    def _take(self, following: Following, asked: Asked, answer: Fetched) -> None:
        # The log has changed since the request, so this answer does not continue it.
        if following.partition.replica.end_offset != asked.offset:
            return
        if answer.error_code is not ErrorCode.none:
            self._handle_refusal(following, answer.error_code)
        elif answer.diverging_epoch is not None:
            self._cut_one(following, answer.diverging_epoch)
        elif self._applying.append(following.partition, answer):
            following.pauses = 0
            if answer.records:  # moves to the end, so that the other partitions get their share first
                self._following[following.partition.topic_partition] = self._following.pop(
                    following.partition.topic_partition
                )
        else:
            following.pause(self._clock.monotonic_ms(), self._settings.fetch_backoff_ms)

    def _handle_refusal(self, following: Following, error: object) -> None:
        """Handle a partition that the leader refused or did not answer."""
        partition = following.partition
        if error is ErrorCode.offset_out_of_range and following.phase is Phase.FETCH:
            following.phase = Phase.FIND_RANGE
            return
        log.info("a leader refused a partition", partition=str(partition.topic_partition), error=str(error))
        if error is ErrorCode.fenced_leader_epoch:
            self.remove(partition.topic_partition)
        else:
            following.pause(self._clock.monotonic_ms(), self._settings.fetch_backoff_ms)
