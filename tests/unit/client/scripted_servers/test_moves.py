"""Moves, their throttles, and how often the cluster is asked about them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsResponse
from kio.schema.alter_partition_reassignments.v0.response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsResponse
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsResponse
from kio.schema.list_partition_reassignments.v0.response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from controller_core.client.errors import AdminError, OutcomeUnknown, PartlyRefused, Refused, Unreachable
from controller_core.client.reassigning.reassignments import Progress
from controller_core.wire.requests.configs import Operation
from tests.unit.client.scripted_servers.scripted import (
    ALTER_REASSIGNMENTS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_REASSIGNMENTS,
    METADATA,
    ScriptedBroker,
    ScriptedCluster,
    fill_response,
    metadata,
    start_cluster,
)
from tests.unit.client.transport.servers import NO_TIME

TO_3 = '{"partitions":[{"topic":"orders","partition":0,"replicas":[3,1]}]}'
RATE = "leader.replication.throttled.rate"


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    async with start_cluster([1, 2, 3, 4]) as started:
        started.topics = {"orders": [[1, 2]]}
        yield started


def make_moves(
    *, target: tuple[int, ...] = (3, 1), all_: tuple[int, ...] = (3, 1, 2)
) -> ListPartitionReassignmentsResponse:
    brokers = tuple(map(BrokerId, all_))
    partition = OngoingPartitionReassignment(
        partition_index=i32(0),
        replicas=brokers,
        adding_replicas=(),
        removing_replicas=tuple(each for each in brokers if each not in target),
    )
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        error_message=None,
        topics=(OngoingTopicReassignment(name=TopicName("orders"), partitions=(partition,)),),
    )


def rates_deleted(cluster: ScriptedCluster) -> dict[str, list[str]]:
    """Return the names of the deleted configurations, by broker or topic."""
    return {
        str(resource.resource_name): [str(config.name) for config in resource.configs]
        for broker in cluster.brokers.values()
        for request in broker.list_requests(INCREMENTAL_ALTER_CONFIGS)
        for resource in request.resources
        if all(config.config_operation == 1 for config in resource.configs)
    }


OWNED = "kontroller.reassignment.throttle"


def list_rates(cluster: ScriptedCluster) -> list[int]:
    """Return the brokers whose rates were set."""
    return [
        broker.id
        for broker in cluster.brokers.values()
        for request in broker.list_requests(INCREMENTAL_ALTER_CONFIGS)
        for resource in request.resources
        if {str(config.name) for config in resource.configs} >= {RATE}
    ]


def list_owned(cluster: ScriptedCluster) -> list[tuple[str, str, int]]:
    """Return the throttles that were given to a controller, or taken from it: at whom, the setting, the operation."""
    return [
        (str(resource.resource_name), str(config.name), int(config.config_operation))
        for broker in cluster.brokers.values()
        for request in broker.list_requests(INCREMENTAL_ALTER_CONFIGS)
        for resource in request.resources
        for config in resource.configs
        if str(config.name).startswith(OWNED)
    ]


async def test_a_move_off_a_dead_broker_is_throttled_at_the_living_ones(cluster: ScriptedCluster) -> None:
    cluster.topics = {"orders": [[9, 2]]}
    admin = cluster.client()
    found = await admin.throttle_reassignment(
        '{"partitions":[{"topic":"orders","partition":0,"replicas":[2,3]}]}', 1000
    )
    assert (found.is_owned, found.absent) == (False, (9,))
    assert list_rates(cluster) == [2, 3]
    assert await admin.throttle_brokers([4, 9], 1000) == (9,)
    assert list_rates(cluster) == [2, 3, 4], "4 has returned"


async def test_no_throttle_leaves_out_a_broker_that_is_to_receive(cluster: ScriptedCluster) -> None:
    with pytest.raises(Unreachable, match="broker 9 is not registered: start it"):
        await cluster.client().throttle_reassignment(TO_3.replace("3,1", "9,1"), 1000)


async def test_a_controller_that_owns_throttles_is_given_the_whole_one_and_loses_it_again(
    cluster: ScriptedCluster,
) -> None:
    cluster.topics = {"orders": [[9, 2]]}
    cluster[1].configs = {OWNED: ""}
    admin = cluster.client()
    found = await admin.throttle_reassignment(TO_3, 1000)
    assert (found.is_owned, found.absent) == (True, (9,))
    assert list_rates(cluster) == []
    await admin.end_owned_throttle(TO_3)
    (whose, setting, operation), ended = list_owned(cluster)
    assert (whose, operation) == ("1", Operation.SET)
    assert ended == ("1", setting, Operation.DELETE)


async def test_a_throttle_goes_to_the_controller_of_the_moment(cluster: ScriptedCluster) -> None:
    """The first one has lost the role between the question and the change."""

    def lose(broker: ScriptedBroker, request: Any) -> Any:
        cluster.controller = 3
        return fill_response(IncrementalAlterConfigsResponse, ErrorCode.not_controller)

    cluster[1].configs = cluster[3].configs = {OWNED: ""}
    cluster[1].answers[INCREMENTAL_ALTER_CONFIGS].append(lose)
    assert (await cluster.client().throttle_reassignment(TO_3, 1000)).is_owned
    assert [whose for whose, _, _ in list_owned(cluster)] == ["1", "3"]


async def test_what_else_is_throttled_of_a_topic_stays_so_and_a_list_that_is_not_there_is_begun(
    cluster: ScriptedCluster,
) -> None:
    """Kafka 2.8 turns an append to a missing list into a value that it cannot read."""
    cluster.topic_configs["orders"] = {"leader.replication.throttled.replicas": "7:1"}
    await cluster.client().throttle_reassignment(TO_3, 1000)
    operations = {
        str(config.name): int(config.config_operation)
        for broker in cluster.brokers.values()
        for request in broker.list_requests(INCREMENTAL_ALTER_CONFIGS)
        for resource in request.resources
        if resource.resource_name == "orders"
        for config in resource.configs
    }
    assert operations == {
        "leader.replication.throttled.replicas": Operation.APPEND,
        "follower.replication.throttled.replicas": Operation.SET,
    }


async def test_a_throttle_is_taken_from_all_brokers_also_from_those_that_the_move_has_left(
    cluster: ScriptedCluster,
) -> None:
    cluster.topics = {"orders": [[3, 1]]}
    cluster.topic_configs["orders"] = {"leader.replication.throttled.replicas": "0:1,0:2"}
    for broker in (1, 2, 3):
        cluster[broker].configs = {RATE: "1000"}
    await cluster.client().unthrottle_reassignment(TO_3)
    assert set(rates_deleted(cluster)) == {"1", "2", "3", "orders"}, "4 has none"


async def test_a_rate_that_is_left_is_found_also_when_no_topic_is_throttled_any_more(cluster: ScriptedCluster) -> None:
    cluster[4].configs = {RATE: "1000"}
    await cluster.client().unthrottle_reassignment(TO_3)
    assert set(rates_deleted(cluster)) == {"4"}


async def test_a_broker_that_does_not_answer_keeps_no_throttle_from_being_taken_from_others(
    cluster: ScriptedCluster,
) -> None:
    cluster.topic_configs["orders"] = {"leader.replication.throttled.replicas": "0:1,0:2"}
    cluster[3].configs = {RATE: "1000"}
    cluster[4].hangs = True
    with pytest.raises(AdminError, match="a throttle may stay: broker 4"):
        await cluster.client(2, socket_connection_setup_timeout_ms=300).unthrottle_reassignment(TO_3)
    assert set(rates_deleted(cluster)) == {"1", "2", "3", "orders"}


async def test_a_broker_that_is_dead_is_missed_only_where_its_topics_are_throttled(cluster: ScriptedCluster) -> None:
    cluster.topics = {"orders": [[1, 9]]}
    await cluster.client().unthrottle_reassignment(TO_3)
    cluster.topic_configs["orders"] = {"follower.replication.throttled.replicas": "0:3"}
    with pytest.raises(AdminError, match="a throttle may stay: broker 9: broker 9 is not registered: start it"):
        await cluster.client().unthrottle_reassignment(TO_3)
    assert set(rates_deleted(cluster)) == {"1", "3", "orders"}


async def test_a_broker_that_has_not_heard_yet_of_its_throttle_does_not_keep_it(cluster: ScriptedCluster) -> None:
    """This happens if a move is refused right after it was throttled."""
    admin = cluster.client()
    await admin.throttle_reassignment(TO_3, 1000)
    first, *_ = cluster[1].list_requests(INCREMENTAL_ALTER_CONFIGS)
    assert first.resources[0].resource_name == "orders", "whatever is set then is found by what its topics have"
    cluster.topic_configs["orders"] = {"leader.replication.throttled.replicas": "0:1,0:2"}
    await admin.unthrottle_reassignment(TO_3)
    assert set(rates_deleted(cluster)) == {"1", "2", "3", "orders"}


async def test_nothing_is_left_out_of_a_throttle_because_a_broker_does_not_know_it(cluster: ScriptedCluster) -> None:
    """Otherwise the replica would move without a throttle."""
    topics, cluster.topics = cluster.topics, {}

    def hears(broker: ScriptedBroker, request: Any) -> Any:
        before = metadata(broker, request)
        broker.cluster.topics = topics
        return before

    cluster[2].answers[METADATA] += [metadata, hears]
    await cluster.client().throttle_reassignment(TO_3, 1000)
    assert {b for b in cluster.brokers if cluster[b].list_requests(INCREMENTAL_ALTER_CONFIGS)} == {1, 2, 3}
    cluster.topics = {}
    with pytest.raises(Refused, match="orders-0: unknown topic or partition"):
        await cluster.client().throttle_reassignment(TO_3, 1000)


async def test_a_broker_that_hears_late_of_a_move_s_end_is_no_failure(cluster: ScriptedCluster) -> None:
    def arrives(broker: ScriptedBroker, request: Any) -> Any:
        before = metadata(broker, request)
        cluster.topics = {"orders": [[3, 1]]}
        return before

    cluster[2].answers[METADATA] += [metadata, arrives]
    admin = cluster.client()
    assert list((await admin.verify_reassign_partitions(TO_3)).values()) == [Progress.COMPLETED]
    cluster.topics = {"orders": [[1, 2]]}
    assert list((await admin.verify_reassign_partitions(TO_3)).values()) == [Progress.FAILED]


async def test_what_moves_elsewhere_has_failed_without_a_second_look(cluster: ScriptedCluster) -> None:
    cluster[1].answers[LIST_REASSIGNMENTS].append(make_moves(target=(4, 1), all_=(4, 1, 2)))
    assert list((await cluster.client().verify_reassign_partitions(TO_3)).values()) == [Progress.FAILED]
    assert len(cluster[1].list_requests(LIST_REASSIGNMENTS)) == 1


async def test_each_partition_of_a_wait_has_time_to_be_known_where_it_is(cluster: ScriptedCluster) -> None:
    """Each has its time, even if another one was not yet on its target at the last look."""
    two = TO_3.replace("]}]}", ']},{"topic":"orders","partition":1,"replicas":[3]}]}')
    cluster.topics = {"orders": [[1, 2], [1]]}
    looks: list[list[list[int]]] = [[[1, 2], [3]], [[3, 1], [1]], [[3, 1], [1]], [[3, 1], [3]]]

    def answer_metadata(broker: ScriptedBroker, request: Any) -> Any:
        if request.topics:
            cluster.topics["orders"] = looks.pop(0) if len(looks) > 1 else looks[0]
        return metadata(broker, request)

    cluster.answers[METADATA] = answer_metadata
    ended = await cluster.client().wait_for_reassignment(two)
    assert ended.error is None


async def test_a_move_and_the_wait_for_it_have_one_time(cluster: ScriptedCluster) -> None:
    """The wait has the rest of the move's time, some 1.5 of 2.5 s."""
    cluster.answers[LIST_REASSIGNMENTS] = make_moves()
    cluster[1].delay_s = 1
    started = asyncio.get_running_loop().time()
    with pytest.raises(Unreachable):
        await cluster.client().reassign_partitions(TO_3, timeout_ms=2_500)
    assert asyncio.get_running_loop().time() - started < 3.5


async def test_a_long_wait_looks_less_often_where_a_look_takes_long(cluster: ScriptedCluster) -> None:
    cluster.answers[LIST_REASSIGNMENTS] = make_moves()
    cluster[1].delay_s = 0.2
    with pytest.raises(Unreachable):
        await cluster.client().wait_for_reassignment(TO_3, timeout_ms=3_000)
    assert len(cluster[1].list_requests(LIST_REASSIGNMENTS)) <= 2


async def test_a_server_whose_time_was_over_may_have_done_it(cluster: ScriptedCluster) -> None:
    timed_out = fill_response(AlterPartitionReassignmentsResponse, ErrorCode.request_timed_out, of_parts=False)
    cluster[1].answers[ALTER_REASSIGNMENTS].append(timed_out)
    with pytest.raises(OutcomeUnknown, match="it may have been done, or be done later"):
        await cluster.client().start_reassignment(TO_3)
    busy = fill_response(ListPartitionReassignmentsResponse, ErrorCode.request_timed_out, has_parts=False)
    cluster[1].answers[LIST_REASSIGNMENTS].append(busy)
    assert await cluster.client().list_reassignments() == {}, "what changes nothing is asked again"


@pytest.mark.parametrize(
    ("codes", "begun"),
    [
        ((ErrorCode.invalid_replica_assignment, ErrorCode.none), 1),
        ((ErrorCode.invalid_replica_assignment, ErrorCode.invalid_replica_assignment), 0),
        ((ErrorCode.invalid_replica_assignment, ErrorCode.request_timed_out), None),
    ],
)
async def test_a_move_that_is_partly_refused_says_how_many_partitions_have_begun(
    cluster: ScriptedCluster, codes: tuple[ErrorCode, ErrorCode], begun: int | None
) -> None:
    cluster.topics = {"orders": [[1, 2], [1, 2]]}
    parts = tuple(
        ReassignablePartitionResponse(partition_index=i32(at), error_code=code, error_message=None)
        for at, code in enumerate(codes)
    )
    cluster.answers[ALTER_REASSIGNMENTS] = AlterPartitionReassignmentsResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        error_message=None,
        responses=(ReassignableTopicResponse(name=TopicName("orders"), partitions=parts),),
    )
    part = TO_3[len('{"partitions":[') : -len("]}")]
    both = f'{{"partitions":[{part},{part.replace(":0", ":1")}]}}'
    with pytest.raises(PartlyRefused) as refused:
        await cluster.client().start_reassignment(both)
    assert refused.value.begun == begun
