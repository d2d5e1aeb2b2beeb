"""Log directories of a move: brokers are asked before the partitions move, again once they have the replicas, and for
nothing that they cannot do."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kio.schema.alter_partition_reassignments.v0.response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.alter_replica_log_dirs.v2.response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kio.schema.describe_log_dirs.v2.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from controller_core.client.errors import AdminError, PartlyRefused, Unreachable
from controller_core.client.log_dirs.placing import Place
from controller_core.client.reassigning.reassignments import Progress
from controller_core.model.ids import BrokerId, PartitionReplica
from simulation.cluster.names import tp
from tests.unit.client.scripted_servers.scripted import (
    ALTER_REASSIGNMENTS,
    ScriptedBroker,
    ScriptedCluster,
    start_cluster,
)
from tests.unit.client.transport.servers import NO_TIME, NOBODY

ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS = 34, 35
ORDERS = tp("orders", 0)
WITHIN_1 = '{"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["/b","any"]}]}'
TO_3 = '{"partitions":[{"topic":"orders","partition":0,"replicas":[1,3],"log_dirs":["any","/b"]}]}'


@dataclass
class Disks:
    """The directories of a broker: the replica's size and its copy's, by directory."""

    replica: dict[str, int] = field(default_factory=dict)
    future: dict[str, int] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    refuses: ErrorCode = ErrorCode.none
    asked: list[str] = field(default_factory=list)

    def describe(self) -> DescribeLogDirsResponse:
        return DescribeLogDirsResponse(throttle_time=NO_TIME, results=tuple(map(self._directory, ("/a", "/b"))))

    def alter(self, path: str) -> ErrorCode:
        self.asked.append(path)
        if self.refuses is not ErrorCode.none:
            return self.refuses
        if not self.replica:
            return ErrorCode.replica_not_available
        self.future = {} if path in self.replica else {path: 0}
        return ErrorCode.none

    def _directory(self, path: str) -> DescribeLogDirsResult:
        logs = [
            DescribeLogDirsPartition(
                partition_index=i32(0), partition_size=i64(of[path]), offset_lag=i64(7), is_future_key=of is self.future
            )
            for of in (self.replica, self.future)
            if path in of
        ]
        topics = (DescribeLogDirsTopic(name=TopicName("orders"), partitions=tuple(logs)),) if logs else ()
        code = ErrorCode.kafka_storage_error if path in self.failed else ErrorCode.none
        return DescribeLogDirsResult(error_code=code, log_dir=path, topics=topics)


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    async with start_cluster([1, 2, 3]) as started:
        started.topics = {"orders": [[1, 2]]}
        yield started


@pytest.fixture
def disks(cluster: ScriptedCluster) -> dict[int, Disks]:
    """Brokers 1 and 2 have the replica in /a, and 3 has none."""
    found = {1: Disks({"/a": 1000}), 2: Disks({"/a": 1000}), 3: Disks()}

    def describe(broker: ScriptedBroker, _: Any) -> DescribeLogDirsResponse:
        return found[broker.id].describe()

    def alter(broker: ScriptedBroker, request: Any) -> AlterReplicaLogDirsResponse:
        (path,) = [str(each.path) for each in request.dirs]
        result = AlterReplicaLogDirPartitionResult(partition_index=i32(0), error_code=found[broker.id].alter(path))
        topic = AlterReplicaLogDirTopicResult(topic_name=TopicName("orders"), partitions=(result,))
        return AlterReplicaLogDirsResponse(throttle_time=NO_TIME, results=(topic,))

    cluster.answers |= {DESCRIBE_LOG_DIRS: describe, ALTER_REPLICA_LOG_DIRS: alter}
    return found


def has_moved_partitions(cluster: ScriptedCluster) -> bool:
    return any(broker.list_requests(ALTER_REASSIGNMENTS) for broker in cluster.brokers.values())


async def test_a_new_replica_is_directed_before_it_exists_and_again_if_it_was_created_elsewhere(
    cluster: ScriptedCluster, disks: dict[int, Disks]
) -> None:
    def begin(broker: ScriptedBroker, _: Any) -> Any:
        assert disks[3].asked == ["/b"], "it moves before its directory is known"
        cluster.topics, disks[3].replica = {"orders": [[1, 3]]}, {"/a": 10}
        return cluster_answer

    cluster_answer = cluster.answers[ALTER_REASSIGNMENTS]
    cluster[1].answers[ALTER_REASSIGNMENTS].append(begin)
    admin = cluster.client()
    await admin.start_reassignment(TO_3)
    assert list((await admin.verify_reassign_partitions(TO_3)).values()) == [Progress.FAILED]

    def copy(broker: ScriptedBroker, _: Any) -> DescribeLogDirsResponse:
        if disks[3].future:
            disks[3].replica, disks[3].future = disks[3].future, {}
        return disks[3].describe()

    cluster[3].answers[DESCRIBE_LOG_DIRS] += [copy, copy]
    ended = await admin.wait_for_reassignment(TO_3)
    assert ended.error is None
    assert disks[3].asked == ["/b", "/b"]
    assert disks[3].replica.keys() == {"/b"}


async def test_progress_counts_the_bytes_that_the_copy_lacks(cluster: ScriptedCluster, disks: dict[int, Disks]) -> None:
    disks[1].future = {"/b": 400}
    admin = cluster.client()
    assert list((await admin.verify_reassign_partitions(WITHIN_1)).values()) == [Progress.IN_PROGRESS]
    progress = await admin.progress_of_reassignment(WITHIN_1)
    assert (progress.total, progress.done, progress.bytes_left) == (1, 0, 600)
    (placement,) = (await admin.placements_of_reassignment(WITHIN_1)).values()
    assert (placement.place, placement.bytes_left, placement.offset_lag) == (Place.COPYING, 600, 7)
    disks[1].replica, disks[1].future = {"/b": 1000}, {}
    assert list((await admin.verify_reassign_partitions(WITHIN_1)).values()) == [Progress.COMPLETED]
    await admin.start_reassignment(WITHIN_1)
    assert disks[1].asked == [], "it is there already"


@pytest.mark.parametrize(
    ("path", "failed", "said"),
    [
        ("/c", (), r"orders-0: /c is not a log directory of broker 1, which has /a, /b \(.*\); nothing moves"),
        ("/b", ("/b",), "log directory /b of broker 1 has failed: repair or replace its disk"),
    ],
)
async def test_a_directory_that_a_broker_cannot_use_is_refused_before_anything_moves(
    cluster: ScriptedCluster, disks: dict[int, Disks], path: str, failed: tuple[str, ...], said: str
) -> None:
    disks[1].failed = failed
    with pytest.raises(PartlyRefused, match=said) as refused:
        await cluster.client().start_reassignment(WITHIN_1.replace("/b", path))
    assert refused.value.begun == 0
    assert disks[1].asked == []
    assert not has_moved_partitions(cluster)


async def test_a_broker_that_refuses_a_directory_or_is_dead_keeps_all_partitions_where_they_are(
    cluster: ScriptedCluster, disks: dict[int, Disks]
) -> None:
    disks[1].refuses = ErrorCode.cluster_authorization_failed
    with pytest.raises(PartlyRefused, match="orders-0 to /b on broker 1: cluster authorization failed") as refused:
        await cluster.client().start_reassignment(WITHIN_1)
    assert refused.value.begun is None, "other replicas may be copied, and need the throttle"
    with pytest.raises(Unreachable, match="broker 9: it is not registered; nothing moves: start the broker"):
        await cluster.client().start_reassignment(TO_3.replace("[1,3]", "[1,9]"))
    assert not has_moved_partitions(cluster)


async def test_a_broker_that_has_another_address_is_asked_there(
    cluster: ScriptedCluster, disks: dict[int, Disks]
) -> None:
    admin, present = cluster.client(), cluster[3].address
    for ask in (admin.placements_of_reassignment, admin.start_reassignment):
        cluster[3].address = NOBODY
        await admin.describe_cluster()
        cluster[3].address = present
        await ask(TO_3)
    assert len(cluster[3].list_requests(DESCRIBE_LOG_DIRS)) == 2
    assert disks[3].asked == ["/b"]
    assert has_moved_partitions(cluster)


async def test_a_broker_that_does_not_answer_is_not_asked_again_at_the_same_address(
    cluster: ScriptedCluster, disks: dict[int, Disks]
) -> None:
    admin = cluster.client()
    await admin.describe_cluster()
    cluster[1].answers[DESCRIBE_LOG_DIRS] += [None, None]
    (placement,) = (await admin.placements_of_reassignment(WITHIN_1)).values()
    assert placement.place is Place.UNKNOWN
    assert len(cluster[1].list_requests(DESCRIBE_LOG_DIRS)) == 1


async def test_a_cancellation_ends_the_copying_and_leaves_other_copies(
    cluster: ScriptedCluster, disks: dict[int, Disks]
) -> None:
    not_moving = ReassignablePartitionResponse(
        partition_index=i32(0), error_code=ErrorCode.no_reassignment_in_progress, error_message=None
    )
    cluster.answers[ALTER_REASSIGNMENTS] = AlterPartitionReassignmentsResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        error_message=None,
        responses=(ReassignableTopicResponse(name=TopicName("orders"), partitions=(not_moving,)),),
    )
    disks[1].future = {"/b": 400}
    admin = cluster.client()
    assert await admin.cancel_reassignment(WITHIN_1.replace("/b", "/a")) == ()
    assert disks[1].future
    assert await admin.cancel_reassignment(WITHIN_1) == (ORDERS,)
    assert (disks[1].asked, disks[1].future) == (["/a"], {})
    disks[1].future = {"/b": 400}
    cluster[1].answers[DESCRIBE_LOG_DIRS].append(None)
    with pytest.raises(
        AdminError, match=r"may still be copied between log directories: broker 1: .*0 of 1 are cancelled"
    ):
        await admin.cancel_reassignment(WITHIN_1)


async def test_a_wait_does_not_restart_a_copy_that_somebody_has_ended(
    cluster: ScriptedCluster, disks: dict[int, Disks]
) -> None:
    def end_copy(broker: ScriptedBroker, _: Any) -> DescribeLogDirsResponse:
        disks[1].future = {}
        return disks[1].describe()

    cluster.answers[DESCRIBE_LOG_DIRS] = lambda broker, _: (
        end_copy(broker, _) if broker.id == 1 else disks[broker.id].describe()
    )
    ended = await cluster.client().wait_for_reassignment(WITHIN_1)
    assert ended.partitions == {ORDERS: Progress.FAILED}
    assert disks[1].asked == ["/b"]


async def test_the_plan_that_reverts_a_move_names_the_present_directories(
    cluster: ScriptedCluster, disks: dict[int, Disks]
) -> None:
    admin = cluster.client()
    assert '"replicas":[1,2],"log_dirs":["/a","/a"]' in await admin.current_assignment(TO_3)
    assert '"replicas":[1,2],"log_dirs":["any","any"]' in await admin.current_assignment(TO_3.replace("/b", "any"))
    assert PartitionReplica(ORDERS, BrokerId(3)) in await admin.placements_of_reassignment(TO_3)
