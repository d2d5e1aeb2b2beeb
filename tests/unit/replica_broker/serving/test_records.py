"""Produce and Fetch: the handling of messages in both directions, in each version."""

import asyncio
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.fetch.v12 import FetchRequest as FetchRequest12
from kio.schema.fetch.v12.request import FetchPartition as FetchPartition12
from kio.schema.fetch.v12.request import FetchTopic as FetchTopic12
from kio.schema.fetch.v17.request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kio.schema.list_offsets.v9.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.produce.v11.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.schema.types import TransactionalId
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from controller_core.admin.rights import EVERYTHING, Rights
from controller_core.model.authorization.acls import Operation, Resource, ResourceType
from controller_core.model.ids import LeaderEpoch, PartitionId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import convert
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.wire.messages import ErrorCode
from replica_broker.log.appending import Appended
from replica_broker.log.errors import UnsupportedFormat
from replica_broker.membership.node import Node
from replica_broker.replicas.errors import NotEnoughReplicas, NotLeader
from replica_broker.replicas.requests import Deleted, EpochEnd, Fetched
from replica_broker.serving import fetch, produce
from replica_broker.serving.answering import authorize_parts
from replica_broker.serving.authorizing import split_partitions
from replica_broker.serving.offsets import delete_records, list_offsets
from tests.unit.replica_broker.log.batches import batch, old_message
from tests.unit.replica_broker.serving.stand_ins import StandInReplicas
from tests.unit.replica_broker.serving.told import ORDERS_ID, OWN, node, state, topic

ORDERS = topic("orders", [state(0, 3), state(1, 1)])
FIRST, SECOND = (TopicPartition(TopicName("orders"), PartitionId(number)) for number in (0, 1))
APPENDED = Appended(first_offset=5, last_offset=6)
WHOLE = batch(b"one")
NO_TIME = i32Timedelta.parse(timedelta())


def make_produce(
    *partitions: int, acks: int = -1, transactional_id: str | None = None, records: bytes = WHOLE
) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=i32(number), records=Records(records)) for number in partitions)
    return ProduceRequest(
        transactional_id=None if transactional_id is None else TransactionalId(transactional_id),
        acks=i16(acks),
        timeout=i32Timedelta.parse(timedelta(seconds=2)),
        topic_data=(TopicProduceData(name=WireTopicName("orders"), partition_data=data),),
    )


async def answers(told: Node, replicas: StandInReplicas, request: ProduceRequest) -> list[Any]:
    pending = await produce.on_produce(told, "PLAINTEXT", replicas.cast_to_replicas(), request)
    assert pending is not None
    response = await pending.finish()
    for version in range(produce.VERSIONS.min, produce.VERSIONS.max + 1):
        assert produce.VERSIONS.encode(produce.VERSIONS.lower(response, version), 1)
    return [one for each in response.responses for one in each.partition_responses]


async def test_each_partition_is_answered_for_itself() -> None:
    replicas = StandInReplicas(appended={FIRST: APPENDED, SECOND: NotLeader(SECOND, "broker 1 leads it")})
    first, second = await answers(node(ORDERS), replicas, make_produce(0, 1))
    assert (first.error_code, first.base_offset, first.log_append_time) == (ErrorCode.none, 5, None)
    assert (second.error_code, second.base_offset) == (ErrorCode.not_leader_or_follower, -1)
    assert (second.current_leader.leader_id, second.current_leader.leader_epoch) == (1, 4)
    assert replicas.asked[0] == (FIRST, len(WHOLE), -1, 2000)


class RightsToOrders:
    """The rights of a caller who may write to one topic."""

    def may(self, operation: Operation, resource: Resource, *, is_wanted: bool = True) -> bool:
        return resource.name == "orders"

    def may_on_any(self, operation: Operation, kind: ResourceType) -> bool:
        return True


@pytest.mark.parametrize("rights", [EVERYTHING, RightsToOrders()])
async def test_records_leave_the_memory_before_their_followers_acknowledge_them(rights: Rights) -> None:
    async def find_rights(*, as_follower: bool = False) -> Rights:
        return rights

    replicas, told, records = StandInReplicas(), node(ORDERS), bytes(bytearray(WHOLE))
    answer = authorize_parts(
        split_partitions.produce,
        lambda request: produce.on_produce(told, "PLAINTEXT", replicas.cast_to_replicas(), request),
    )
    request = make_produce(0, records=records)
    (orders,) = request.topic_data
    request = replace(request, topic_data=(replace(orders, name=WireTopicName("others")), orders))
    pending: Any = await answer(request, find_rights)
    finishing = asyncio.create_task(pending.finish())
    await asyncio.sleep(0)
    del request, orders
    assert sys.getrefcount(records) == 2, "the variable here, and the argument"
    assert not finishing.done()
    replicas.acknowledged.set()
    found = [[one.error_code for one in each.partition_responses] for each in (await finishing).responses]
    of_others = ErrorCode.none if rights is EVERYTHING else ErrorCode.topic_authorization_failed
    assert found == [[of_others], [ErrorCode.none]]


@pytest.mark.parametrize("error", [NotEnoughReplicas(FIRST, "one"), UnsupportedFormat("magic 1")])
async def test_a_refusal_is_told_by_its_code_and_in_its_words(error: NotEnoughReplicas | UnsupportedFormat) -> None:
    (answer,) = await answers(node(ORDERS), StandInReplicas(appended={FIRST: error}), make_produce(0))
    assert (answer.error_code, answer.error_message) == (error.error_code, str(error))


@pytest.mark.parametrize(
    ("records", "error_code"),
    [
        pytest.param(b"", ErrorCode.invalid_record, id="nothing"),
        pytest.param(WHOLE[:-1], ErrorCode.invalid_record, id="cut"),
        pytest.param(WHOLE[:40], ErrorCode.invalid_record, id="cut in its header"),
        pytest.param(WHOLE + WHOLE, ErrorCode.invalid_record, id="two"),
        pytest.param(old_message(1), ErrorCode.invalid_record, id="of an older format"),
        pytest.param(WHOLE[:16] + b"\x03" + WHOLE[17:], ErrorCode.corrupt_message, id="of an unknown format"),
        pytest.param(bytes(range(100)), ErrorCode.corrupt_message, id="by chance"),
    ],
)
async def test_what_is_not_one_whole_batch_is_refused_with_kafkas_error(records: bytes, error_code: ErrorCode) -> None:
    replicas = StandInReplicas(appended={FIRST: APPENDED})
    (answer,) = await answers(node(ORDERS), replicas, make_produce(0, records=records))
    assert (answer.error_code, replicas.asked) == (error_code, [])


async def test_the_messages_of_a_transaction_are_refused_in_words() -> None:
    (answer,) = await answers(node(ORDERS), StandInReplicas(), make_produce(0, transactional_id="mine"))
    assert answer.error_code is ErrorCode.invalid_request
    assert "does not support transactions" in answer.error_message


async def test_no_message_is_taken_before_a_controller_has_said_anything() -> None:
    (answer,) = await answers(Node(id=OWN, cluster_id="c"), StandInReplicas(), make_produce(0))
    assert answer.error_code is ErrorCode.not_leader_or_follower


async def test_acks_that_do_not_exist_are_refused() -> None:
    (answer,) = await answers(node(ORDERS), StandInReplicas(), make_produce(0, acks=2))
    assert answer.error_code is ErrorCode.invalid_required_acks


async def test_who_wants_no_acks_gets_no_answer_and_loses_the_connection_where_something_is_wrong() -> None:
    replicas = StandInReplicas(appended={FIRST: APPENDED, SECOND: NotLeader(SECOND, "no")})
    assert (
        await produce.on_produce(node(ORDERS), "PLAINTEXT", replicas.cast_to_replicas(), make_produce(0, acks=0))
        is None
    )
    with pytest.raises(NoAnswerNow, match="not_leader_or_follower"):
        await produce.on_produce(node(ORDERS), "PLAINTEXT", replicas.cast_to_replicas(), make_produce(0, 1, acks=0))


FETCHED = Fetched(high_watermark=9, last_stable_offset=9, log_start_offset=1, records=b"batches")


def make_fetch_by_id(*, session_id: int = 0, replica_id: int = -1, topic_id: UUID | None = ORDERS_ID) -> FetchRequest:
    partition = FetchPartition(
        partition=i32(0),
        current_leader_epoch=i32(4),
        fetch_offset=i64(3),
        last_fetched_epoch=i32(2),
        partition_max_bytes=i32(100),
    )
    return FetchRequest(
        replica_state=ReplicaState(replica_id=WireBrokerId(replica_id)),
        max_wait=NO_TIME,
        min_bytes=i32(1),
        session_id=i32(session_id),
        topics=(FetchTopic(topic_id=topic_id, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def make_fetch_by_name() -> FetchRequest12:
    partition = FetchPartition12(partition=i32(0), fetch_offset=i64(3), partition_max_bytes=i32(100))
    return FetchRequest12(
        max_wait=NO_TIME,
        min_bytes=i32(1),
        topics=(FetchTopic12(topic=WireTopicName("orders"), partitions=(partition,)),),
        forgotten_topics_data=(),
    )


@pytest.mark.parametrize("version", range(fetch.VERSIONS.min, fetch.VERSIONS.max + 1))
async def test_each_version_is_answered_with_the_topic_as_it_was_asked_for(version: int) -> None:
    newest: Any = make_fetch_by_name() if version < 13 else make_fetch_by_id()
    request: Any = convert(newest, load_request_schema(1, version))
    replicas = StandInReplicas(fetched={FIRST: FETCHED})
    response: Any = await fetch.on_fetch(node(ORDERS), "PLAINTEXT", replicas.cast_to_replicas(), request)
    (answered,) = response.responses
    assert response.__version__ == version
    assert (answered.topic if version < 13 else answered.topic_id) == ("orders" if version < 13 else ORDERS_ID)
    (partition,) = answered.partitions
    assert (partition.high_watermark, partition.records) == (9, b"batches")
    assert fetch.VERSIONS.encode(response, 1)


async def test_a_follower_is_known_by_its_id_and_told_where_its_log_parts() -> None:
    replicas = StandInReplicas(fetched={FIRST: Fetched(diverging_epoch=EpochEnd(LeaderEpoch(1), 2))})
    response: Any = await fetch.on_fetch(
        node(ORDERS), "PLAINTEXT", replicas.cast_to_replicas(), make_fetch_by_id(replica_id=2)
    )
    (asked,) = replicas.asked
    assert asked.is_from_follower
    assert (asked.partitions[FIRST].current_leader_epoch, asked.partitions[FIRST].last_fetched_epoch) == (4, 2)
    diverging = response.responses[0].partitions[0].diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (1, 2)


async def test_a_topic_id_that_nobody_has_told_of_is_unknown() -> None:
    response: Any = await fetch.on_fetch(
        node(ORDERS), "PLAINTEXT", StandInReplicas().cast_to_replicas(), make_fetch_by_id(topic_id=UUID(int=99))
    )
    assert response.responses[0].partitions[0].error_code is ErrorCode.unknown_topic_id


async def test_a_repeated_partition_is_answered_once_and_an_answer_has_a_limit_of_its_own() -> None:
    request = make_fetch_by_name()
    (topic,) = request.topics
    (partition,) = topic.partitions
    repeated = replace(topic, partitions=(partition,) * 100)
    replicas = StandInReplicas(fetched={FIRST: FETCHED})
    response: Any = await fetch.on_fetch(
        node(ORDERS), "PLAINTEXT", replicas.cast_to_replicas(), replace(request, topics=(repeated,) * 100)
    )
    assert [len(each.partitions) for each in response.responses] == [1]
    (asked,) = replicas.asked
    assert asked.max_bytes == 55 << 20


async def test_there_are_no_sessions() -> None:
    response: Any = await fetch.on_fetch(
        node(ORDERS), "PLAINTEXT", StandInReplicas().cast_to_replicas(), make_fetch_by_id(session_id=7)
    )
    assert (response.error_code, response.session_id) == (ErrorCode.fetch_session_id_not_found, 0)


async def test_offsets_are_listed_with_pauses_and_not_of_a_partition_that_is_named_twice() -> None:
    pauses = 0

    async def count_pauses() -> None:
        nonlocal pauses
        while True:
            await asyncio.sleep(0)
            pauses += 1

    def make_topic(name: str, *partitions: int) -> ListOffsetsTopic:
        asked = tuple(ListOffsetsPartition(partition_index=i32(one), timestamp=i64(5)) for one in partitions)
        return ListOffsetsTopic(name=WireTopicName(name), partitions=asked)

    request = ListOffsetsRequest(
        replica_id=WireBrokerId(-1),
        isolation_level=i8(0),
        topics=(make_topic("orders", 0, 1, 2, 1), make_topic("others", 0), make_topic("orders", 2, 3)),
    )
    counting = asyncio.create_task(count_pauses())
    response = await list_offsets.on_list_offsets(StandInReplicas().cast_to_replicas(), request)
    counting.cancel()
    assert [
        (topic.name, one.partition_index) for topic in response.topics for one in topic.partitions if not one.error_code
    ] == [("orders", 0), ("others", 0), ("orders", 3)]
    assert {one.error_code for topic in response.topics for one in topic.partitions} == {
        ErrorCode.none,
        ErrorCode.invalid_request,
    }
    assert pauses >= 3, "one after each search"


async def test_records_are_deleted_of_each_partition_for_itself_and_not_of_internal_topics() -> None:
    replicas = StandInReplicas(
        deleted={FIRST: Deleted(low_watermark=7), SECOND: Deleted(error_code=ErrorCode.offset_out_of_range)}
    )

    def topic_of(name: str, *offsets: tuple[int, int]) -> DeleteRecordsTopic:
        asked = tuple(DeleteRecordsPartition(partition_index=i32(one), offset=i64(at)) for one, at in offsets)
        return DeleteRecordsTopic(name=WireTopicName(name), partitions=asked)

    request = DeleteRecordsRequest(
        topics=(topic_of("orders", (0, 7), (1, -1)), topic_of("__consumer_offsets", (0, 1))),
        timeout=i32Timedelta.parse(timedelta(seconds=3)),
    )
    response = await delete_records.on_delete_records(replicas.cast_to_replicas(), request)
    assert [
        (topic.name, one.partition_index, one.low_watermark, one.error_code)
        for topic in response.topics
        for one in topic.partitions
    ] == [
        ("orders", 0, 7, ErrorCode.none),
        ("orders", 1, -1, ErrorCode.offset_out_of_range),
        ("__consumer_offsets", 0, -1, ErrorCode.invalid_topic_exception),
    ]
    assert replicas.asked == [({FIRST: 7, SECOND: -1}, 3_000)]
    for version in range(delete_records.VERSIONS.min, delete_records.VERSIONS.max + 1):
        assert delete_records.VERSIONS.encode(delete_records.VERSIONS.lower(response, version), 1)
