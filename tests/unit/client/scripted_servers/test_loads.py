"""The loads of a cluster: sizes, rates and room on disks, from brokers of which some do not answer, while topics change."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kio.schema.describe_log_dirs.v5.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v6.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from controller_core.client.loads.cluster_loads import ClusterLoads, Look, SeenLogs
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.wire.requests.offsets import LATEST
from simulation.cluster.names import tp
from tests.unit.client.scripted_servers.scripted import ScriptedBroker, ScriptedCluster, start_cluster
from tests.unit.client.transport.servers import NO_TIME

LIST_OFFSETS, DESCRIBE_LOG_DIRS = 2, 35
ORDERS, INVOICES = tp("orders", 0), tp("invoices", 0)
SHORTLY_S = 0.05


@dataclass
class Logs:
    """The logs of a scripted cluster. Each look at an end finds it `grows` further."""

    cluster: ScriptedCluster
    ends: dict[str, int] = field(default_factory=dict)
    grows: int = 0
    size: int = 1000
    free: int = 5000
    is_cordoned: bool = False
    failed: bool = False

    def offsets(self, broker: ScriptedBroker, request: Any) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            throttle_time=NO_TIME,
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(self._offset(str(topic.name), broker, each) for each in topic.partitions),
                )
                for topic in request.topics
            ),
        )

    def _offset(self, topic: str, broker: ScriptedBroker, asked: Any) -> ListOffsetsPartitionResponse:
        partitions = self.cluster.topics.get(topic, [])
        number = int(asked.partition_index)
        if number >= len(partitions) or partitions[number][0] != broker.id:
            return ListOffsetsPartitionResponse(
                partition_index=asked.partition_index, error_code=ErrorCode.not_leader_or_follower
            )
        offset = 0
        if asked.timestamp == LATEST:
            offset = self.ends.setdefault(topic, 100)
            self.ends[topic] += self.grows
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, error_code=ErrorCode.none, offset=i64(offset)
        )

    def disks(self, broker: ScriptedBroker, request: Any) -> DescribeLogDirsResponse:
        assert request.topics is None
        held = {
            topic: [number for number, replicas in enumerate(partitions) if broker.id in replicas]
            for topic, partitions in self.cluster.topics.items()
        }
        logs = tuple(
            DescribeLogDirsTopic(
                name=TopicName(topic),
                partitions=tuple(
                    DescribeLogDirsPartition(
                        partition_index=i32(each), partition_size=i64(self.size), offset_lag=i64(0), is_future_key=False
                    )
                    for each in numbers
                ),
            )
            for topic, numbers in held.items()
        )
        shared: dict[str, Any] = {"total_bytes": i64(99_999), "is_cordoned": self.is_cordoned}
        second = ErrorCode.kafka_storage_error if self.failed else ErrorCode.none
        return DescribeLogDirsResponse(
            throttle_time=NO_TIME,
            error_code=ErrorCode.none,
            results=(
                DescribeLogDirsResult(
                    error_code=ErrorCode.none, log_dir="/a", topics=logs, usable_bytes=i64(self.free), **shared
                ),
                DescribeLogDirsResult(
                    error_code=second, log_dir="/b", topics=(), usable_bytes=i64(self.free), **shared
                ),
            ),
        )


@pytest.fixture
async def logs() -> AsyncIterator[Logs]:
    async with start_cluster() as cluster:
        cluster.topics = {"orders": [[1, 2]], "invoices": [[2, 3]]}
        cluster.topic_configs = {name: {"min.insync.replicas": "2"} for name in ("orders", "invoices")}
        found = Logs(cluster)
        cluster.answers |= {LIST_OFFSETS: found.offsets, DESCRIBE_LOG_DIRS: found.disks}
        yield found


async def describe(logs: Logs, between_looks_s: float = SHORTLY_S) -> ClusterLoads:
    return await logs.cluster.client().describe_loads(between_looks_s=between_looks_s)


async def test_sizes_disks_and_configurations_are_described(logs: Logs) -> None:
    found = await describe(logs)
    assert found.partitions.keys() == {ORDERS, INVOICES}
    orders = found.partitions[ORDERS]
    assert (orders.replicas, orders.isr, orders.leader, orders.min_isr) == ((1, 2), (1, 2), 1, 2)
    assert (orders.size_bytes, orders.in_bytes_per_second) == (1000, 0.0)
    assert [each.disk_bytes for each in found.brokers] == [11_000, 12_000, 11_000]
    assert all(each.takes_replicas and each.is_live for each in found.brokers)
    assert (found.troubles, found.cluster_id) == ((), "c")


async def test_a_log_that_grows_has_a_rate(logs: Logs) -> None:
    logs.grows = 10
    rate = (await describe(logs)).partitions[ORDERS].in_bytes_per_second
    assert rate is not None
    assert rate > 0


async def test_without_a_second_look_rates_are_unknown_and_no_offsets_are_asked(logs: Logs) -> None:
    found = await describe(logs, 0)
    assert {each.in_bytes_per_second for each in found.partitions.values()} == {None}
    assert not any(broker.list_requests(LIST_OFFSETS) for broker in logs.cluster.brokers.values())


async def test_a_broker_that_does_not_answer_is_named_and_all_others_are_described(logs: Logs) -> None:
    logs.cluster[1].ranges = {3: (0, 99), 18: (0, 99)}
    logs.cluster[3].answers[DESCRIBE_LOG_DIRS] = [None]
    found = await describe(logs)
    orders, invoices = found.partitions[ORDERS], found.partitions[INVOICES]
    assert (orders.size_bytes, orders.in_bytes_per_second) == (1000, None)  # broker 2 has a replica
    assert (invoices.size_bytes, invoices.in_bytes_per_second) == (1000, 0.0)
    assert [each.disk_bytes for each in found.brokers] == [None, 12_000, None]
    assert [each.takes_replicas for each in found.brokers] == [True, True, False]
    assert found.troubles[0].startswith("broker 3: it does not answer, so its numbers are unknown: ")
    assert any(each.startswith("broker 1: ") and "does not support" in each for each in found.troubles)


async def test_a_leader_that_moves_between_the_looks_is_asked_at_its_new_place(logs: Logs) -> None:
    grows = logs.offsets

    def move(broker: ScriptedBroker, request: Any) -> ListOffsetsResponse:
        answer = grows(broker, request)
        if request.topics[0].partitions[0].timestamp == LATEST:
            logs.cluster.topics["orders"] = [[2, 1]]
        return answer

    logs.cluster[1].answers[LIST_OFFSETS] = [move]
    orders = (await describe(logs)).partitions[ORDERS]
    assert (orders.leader, orders.in_bytes_per_second) == (2, 0.0)


async def test_topics_that_come_and_go_between_the_looks_disturb_nothing(logs: Logs) -> None:
    def change(broker: ScriptedBroker, request: Any) -> DescribeLogDirsResponse:
        answer = logs.disks(broker, request)
        logs.cluster.topics = {"orders": [[1, 2], [3, 1]], "new": [[3]]}
        return answer

    logs.cluster[2].answers[DESCRIBE_LOG_DIRS] = [change]
    found = await describe(logs)
    assert found.partitions.keys() == {ORDERS, tp("orders", 1), tp("new", 0)}
    assert found.partitions[ORDERS].in_bytes_per_second == 0.0
    assert found.partitions[tp("new", 0)].in_bytes_per_second is None


async def test_cordoned_brokers_and_absent_ones_take_no_replicas(logs: Logs) -> None:
    logs.is_cordoned = True
    logs.cluster.topics["orders"] = [[1, 9]]
    brokers = {each.id: each for each in (await describe(logs, 0)).brokers}
    assert [each for each, broker in brokers.items() if broker.takes_replicas] == []
    assert not brokers[BrokerId(9)].is_live


async def test_a_failed_directory_is_named_and_its_broker_s_room_is_unknown(logs: Logs) -> None:
    logs.failed = True
    found = await describe(logs, 0)
    assert "broker 1: log directory /b has failed" in found.troubles
    assert {each.disk_bytes for each in found.brokers} == {None}
    assert found.partitions[ORDERS].size_bytes == 1000


async def test_a_controller_that_is_no_broker_is_left_out(logs: Logs) -> None:
    logs.cluster[1].is_broker = False
    logs.cluster.topics = {"orders": [[3, 2]]}
    assert [each.id for each in (await describe(logs, 0)).brokers] == [2, 3]


def test_a_rate_is_the_growth_of_offsets_times_the_bytes_of_a_record() -> None:
    assert estimate(first=1000, last=1600, size=4200, start=900) == pytest.approx(600 / 60 * 4200 / 400)


@pytest.mark.parametrize(
    ("first", "last", "size", "start", "rate"),
    [
        (1000, 1000, 0, None, 0.0),
        (1000, 900, 4000, 0, None),
        (1000, 1600, 0, 0, None),
        (1000, 1600, 4000, None, None),
        (1000, 1600, 4000, 1300, None),
    ],
)
def test_a_rate_that_the_numbers_do_not_show_is_unknown(
    first: int, last: int, size: int, start: int | None, rate: float | None
) -> None:
    assert estimate(first=first, last=last, size=size, start=start) == rate


def estimate(*, first: int, last: int, size: int, start: int | None) -> float | None:
    """Return the rate over a minute, with the size read in the middle."""
    seen = SeenLogs(
        first_ends={ORDERS: Look(first, 100.0)},
        last_ends={ORDERS: Look(last, 160.0)},
        starts={} if start is None else {ORDERS: Look(start, 130.0)},
        sizes={BrokerId(1): {ORDERS: Look(size, 130.0)}},
    )
    return seen.estimate_rate(TopicPartition(*ORDERS), BrokerId(1))
