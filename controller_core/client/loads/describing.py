"""Describes the loads of a cluster, without an agent in its brokers: two looks at the ends of all logs, and between them
one at their sizes.

The cluster may change between the looks. The second one decides about topics, replicas and leaders, and a partition that
only one of them shows has no rate. A broker that does not answer is named, and its numbers are unknown. All other
numbers are there."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kio.schema.describe_log_dirs.v5 import DescribeLogDirsResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v6 import ListOffsetsResponse

from controller_core.client.cluster import Call, Cluster
from controller_core.client.configs import ask_min_insync_replicas, keeps_logs
from controller_core.client.errors import AdminError, OutcomeUnknown, Refused, Unreachable
from controller_core.client.loads.cluster_loads import BrokerLoad, ClusterLoads, Look, PartitionLoad, SeenLogs
from controller_core.client.loads.disks import Disks, read_disks
from controller_core.client.reassigning.reassignments import Ongoing, list_ongoing
from controller_core.client.snapshot import read_snapshot
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import PartitionSnapshot, Snapshot
from controller_core.wire.requests.log_dirs import ALL_LOGS
from controller_core.wire.requests.offsets import EARLIEST, LATEST, make_offsets_request

DEFAULT_BETWEEN_LOOKS_S: Final = 60.0
_BROKERS_AT_A_TIME: Final = 16
"""Limits the connections, and the answers in memory."""
_PARTITIONS_PER_REQUEST: Final = 2_000
_BROKER_MS: Final = 15_000
"""Time limit of one broker for one answer. A broker may hang."""


async def describe_loads(cluster: Cluster, between_looks_s: float, timeout_ms: int | None = None) -> ClusterLoads:
    """Describe the loads. `timeout_ms` limits each look, and the questions between them. Raises `AdminError` if no
    server describes the cluster.

    With `between_looks_s` 0 there is no second look, and all rates are unknown."""
    asking = _Asking()
    clock = asyncio.get_running_loop().time
    call = cluster.call(timeout_ms)
    before = await asking.read_cluster(call)
    began_s = clock()
    looks_twice = between_looks_s > 0
    first_ends = await asking.ask_offsets(call, _group_by_leader(before), LATEST) if looks_twice else {}

    call = cluster.call(timeout_ms)
    starts = await asking.ask_offsets(call, _group_by_leader(before), EARLIEST) if looks_twice else {}
    disks = await asking.ask_disks(call, _find_brokers(before, await asking.find_hidden_controller(call, before)))
    min_isrs = await asking.ask_min_isrs(call, before.topics)

    after, last_ends = before, dict[TopicPartition, Look]()
    call = cluster.call(timeout_ms)
    if looks_twice:
        await asyncio.sleep(max(0.0, began_s + between_looks_s - clock()))
        call = cluster.call(timeout_ms)
        after = await asking.read_cluster(call)
        last_ends = await asking.ask_offsets(call, _group_by_leader(after), LATEST)
    moving = await asking.ask_moving(call)
    seen = SeenLogs(
        first_ends=first_ends,
        last_ends=last_ends,
        starts=starts,
        sizes={
            broker: {partition: Look(size, look.at_s) for partition, size in look.disks.logs.bytes_of.items()}
            for broker, look in disks.items()
        },
    )
    listed = _find_brokers(after, await asking.find_hidden_controller(call, after))
    return ClusterLoads(
        cluster_id=after.cluster_id,
        taken_at_s=time.time(),
        brokers=tuple(_make_broker(number, after, disks.get(number), asking) for number in listed),
        partitions=_make_partitions(before, after, seen, min_isrs, moving),
        moving=frozenset(moving),
        troubles=asking.list_troubles(),
    )


@dataclass(frozen=True, slots=True)
class _DisksLook:
    disks: Disks
    at_s: float


@dataclass(slots=True)
class _Asking:
    """Asks brokers, a few at a time. Stores the troubles instead of raising them."""

    silent: dict[BrokerId, str] = field(default_factory=dict)
    """Brokers that did not answer."""
    troubles: dict[str, None] = field(default_factory=dict)
    _addresses: dict[BrokerId, Address] = field(default_factory=dict)
    """Those of the last look. A call forgets its own after an error."""
    _hidden: dict[BrokerId, bool] = field(default_factory=dict)

    def list_troubles(self) -> tuple[str, ...]:
        """Return a line for each trouble."""
        return (*(f"broker {broker}: {why}" for broker, why in sorted(self.silent.items())), *self.troubles)

    async def read_cluster(self, call: Call) -> Snapshot:
        """Return the brokers, topics and partitions. Raises `AdminError`."""
        snapshot = read_snapshot(await call.metadata(of_all=True))
        self._addresses = dict(call.cluster.brokers)
        return snapshot

    async def ask_offsets(
        self, call: Call, asked: Mapping[BrokerId, Sequence[TopicPartition]], timestamp: int
    ) -> dict[TopicPartition, Look]:
        """Return the offsets of partitions, from their leaders. Those with an error, or no answer, are missing."""
        found: dict[TopicPartition, Look] = {}

        async def ask(broker: BrokerId) -> None:
            for first in range(0, len(asked[broker]), _PARTITIONS_PER_REQUEST):
                request = make_offsets_request(asked[broker][first : first + _PARTITIONS_PER_REQUEST], timestamp)
                response = await call.ask_at(
                    self._addresses[broker], request, ListOffsetsResponse, min(call.left_ms, _BROKER_MS)
                )
                at_s = asyncio.get_running_loop().time()
                found.update(
                    (
                        TopicPartition(TopicName(str(topic.name)), PartitionId(int(each.partition_index))),
                        Look(int(each.offset), at_s),
                    )
                    for topic in response.topics
                    for each in topic.partitions
                    if each.error_code is ErrorCode.none and each.offset >= 0
                )

        await self._ask_each(asked, ask)
        return found

    async def ask_disks(self, call: Call, brokers: Iterable[BrokerId]) -> dict[BrokerId, _DisksLook]:
        """Return the disks of live brokers."""
        found: dict[BrokerId, _DisksLook] = {}

        async def ask(broker: BrokerId) -> None:
            response = await call.ask_at(
                self._addresses[broker], ALL_LOGS, DescribeLogDirsResponse, min(call.left_ms, _BROKER_MS)
            )
            look = found[broker] = _DisksLook(read_disks(response), asyncio.get_running_loop().time())
            for path in look.disks.failed:
                self.troubles[f"broker {broker}: log directory {path} has failed"] = None

        await self._ask_each(brokers, ask)
        return found

    async def ask_min_isrs(self, call: Call, topics: Iterable[TopicName]) -> dict[TopicName, int]:
        """Return min.insync.replicas of topics. Those without it are missing."""
        refused: list[Refused] = []
        try:
            return await ask_min_insync_replicas(call.target_any(), topics, refused)
        except AdminError as error:
            self.troubles[f"min.insync.replicas are unknown: {error}"] = None
            return {}
        finally:
            if refused:
                self.troubles[f"min.insync.replicas of {len(refused)} topics are unknown: {refused[0]}"] = None

    async def ask_moving(self, call: Call) -> dict[TopicPartition, Ongoing]:
        """Return the partitions that are being reassigned."""
        try:
            return await list_ongoing(call)
        except AdminError as error:
            self.troubles[f"it is unknown which partitions move: {error}"] = None
            return {}

    async def find_hidden_controller(self, call: Call, snapshot: Snapshot) -> BrokerId | None:
        """Return the controller if it is listed as a broker and is none."""
        controller = None if snapshot.controller is None else snapshot.controller.id
        if controller is None or controller in snapshot.holders:
            return None
        if controller not in self._hidden:
            try:
                self._hidden[controller] = not await keeps_logs(call, controller)
            except AdminError as error:
                self.troubles[f"controller {controller} is left out, because it may be no broker: {error}"] = None
                self._hidden[controller] = True
        return controller if self._hidden[controller] else None

    async def _ask_each(self, brokers: Iterable[BrokerId], ask: Callable[[BrokerId], Awaitable[None]]) -> None:
        """Ask those of the brokers that live. A broker that did not answer is not asked again."""
        room = asyncio.Semaphore(_BROKERS_AT_A_TIME)

        async def ask_one(broker: BrokerId) -> None:
            async with room:
                try:
                    await ask(broker)
                except (Unreachable, OutcomeUnknown) as error:
                    self.silent[broker] = f"it does not answer, so its numbers are unknown: {error}"
                except AdminError as error:
                    self.troubles[f"broker {broker}: {error}"] = None

        await asyncio.gather(
            *(ask_one(broker) for broker in brokers if broker in self._addresses.keys() - self.silent.keys())
        )


def _group_by_leader(snapshot: Snapshot) -> dict[BrokerId, list[TopicPartition]]:
    led: defaultdict[BrokerId, list[TopicPartition]] = defaultdict(list)
    for each in snapshot.list_partitions():
        if each.leader is not None:
            led[each.leader].append(each.partition)
    return dict(led)


def _find_brokers(snapshot: Snapshot, hidden: BrokerId | None) -> list[BrokerId]:
    return sorted((snapshot.brokers.keys() | snapshot.holders) - {hidden})


def _make_broker(number: BrokerId, snapshot: Snapshot, look: _DisksLook | None, asking: _Asking) -> BrokerLoad:
    live = snapshot.brokers.get(number)
    if live is None:
        return BrokerLoad(id=number, is_live=False, takes_replicas=False)
    is_cordoned = look is not None and look.disks.is_cordoned
    return BrokerLoad(
        id=number,
        rack=live.rack,
        takes_replicas=number not in asking.silent and not is_cordoned,
        disk_bytes=None if look is None else look.disks.disk_bytes,
    )


def _make_partitions(
    before: Snapshot,
    after: Snapshot,
    seen: SeenLogs,
    min_isrs: Mapping[TopicName, int],
    moving: Mapping[TopicPartition, Ongoing],
) -> dict[TopicPartition, PartitionLoad]:
    return {
        each.partition: PartitionLoad(
            replicas=_find_target(each, moving),
            isr=each.isr,
            leader=each.leader,
            size_bytes=seen.find_size(each.partition, each.leader, each.replicas),
            in_bytes_per_second=_estimate_rate(before, after, seen, each),
            min_isr=min_isrs.get(each.partition.topic),
        )
        for each in after.list_partitions()
    }


def _estimate_rate(before: Snapshot, after: Snapshot, seen: SeenLogs, each: PartitionSnapshot) -> float | None:
    """Return the rate of a partition; None if its topic was deleted and created again between the looks."""
    topic = each.partition.topic
    earlier = before.topics.get(topic)
    if earlier is None or earlier.assignment.topic_id != after.topics[topic].assignment.topic_id:
        return None
    return seen.estimate_rate(each.partition, each.leader)


def _find_target(each: PartitionSnapshot, moving: Mapping[TopicPartition, Ongoing]) -> tuple[BrokerId, ...]:
    """Return the replicas of a partition, after its move if it moves. A move that brokers do not know of yet does not
    count."""
    target = moving[each.partition].target if each.partition in moving else ()
    return target if target and set(target) <= set(each.replicas) else each.replicas
