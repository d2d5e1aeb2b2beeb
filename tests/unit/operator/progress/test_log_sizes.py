"""A size is one replica's, over all directories of its broker. A contradictory answer counts as none."""

import asyncio
from typing import Any

import pytest
from kio.schema.describe_log_dirs.v2 import DescribeLogDirsRequest, DescribeLogDirsResponse
from kio.schema.describe_log_dirs.v2.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32, i64
from kio.static.protocol import RequestPayload

from controller_core.client.log_dirs.log_sizes import (
    FutureLog,
    LogSizes,
    UnusableSizesError,
    ask_log_sizes,
    read_log_sizes,
)
from controller_core.model.ids import BrokerEpoch, BrokerId, TopicPartition
from controller_core.model.metadata import Broker, Endpoint
from controller_core.wire.messages import NO_THROTTLE
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT
from simulation.broker_state import log_dirs
from simulation.cluster.names import tp

FAILED = ErrorCode.kafka_storage_error


def directory(*replicas: tuple[int, int, bool], error: ErrorCode = ErrorCode.none) -> DescribeLogDirsResult:
    """A log directory with replicas of `orders`: partition, bytes, and whether it is one on its way."""
    partitions = tuple(
        DescribeLogDirsPartition(
            partition_index=i32(number), partition_size=i64(size), offset_lag=i64(9), is_future_key=is_future
        )
        for number, size, is_future in replicas
    )
    topics = (DescribeLogDirsTopic(name=WireTopicName("orders"), partitions=partitions),) if replicas else ()
    return DescribeLogDirsResult(error_code=error, log_dir="/data", topics=topics)


def make_response(*directories: DescribeLogDirsResult) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(throttle_time=NO_THROTTLE, results=directories)


def make_sizes(bytes_of: dict[TopicPartition, int], *, works: bool = True) -> LogSizes:
    """The sizes of replicas that all are in `/data`."""
    directory_of = dict.fromkeys(bytes_of, "/data")
    return LogSizes(bytes_of=bytes_of, are_all_seen=works, directory_of=directory_of, directories={"/data": works})


def test_replicas_are_found_in_all_directories() -> None:
    found = read_log_sizes(make_response(directory((0, 10, False)), directory((1, 20, False)), directory()))
    assert found == make_sizes({tp("orders", 0): 10, tp("orders", 1): 20})


def test_a_log_on_its_way_to_another_directory_is_not_the_replica() -> None:
    found = read_log_sizes(make_response(directory((0, 3, True), (1, 5, True)), directory((0, 10, False))))
    assert found.bytes_of == {tp("orders", 0): 10}
    assert found.futures == {tp("orders", at): FutureLog(directory="/data", bytes=size, offset_lag=9)
                             for at, size in enumerate((3, 5))}  # fmt: skip


def test_a_failed_directory_may_hold_what_is_not_named() -> None:
    found = read_log_sizes(make_response(directory((0, 10, False)), directory(error=FAILED)))
    assert found == make_sizes({tp("orders", 0): 10}, works=False)


@pytest.mark.parametrize(
    "answer",
    [
        make_response(),
        make_response(directory((0, -1, False))),
        make_response(directory((0, 1, False)), directory((0, 1, False))),
    ],
    ids=["not authorized", "negative", "twice"],
)
def test_what_makes_no_sense_is_no_answer(answer: DescribeLogDirsResponse) -> None:
    with pytest.raises(UnusableSizesError):
        read_log_sizes(answer)


def test_a_broker_is_asked_for_five_hundred_partitions_at_a_time() -> None:
    asked: list[int] = []

    class Broker:
        async def ask_any(self, request: RequestPayload, response_type: type[Any]) -> Any:
            assert isinstance(request, DescribeLogDirsRequest)
            found = [tp(str(each.topic), int(number)) for each in request.topics or () for number in each.partitions]
            asked.append(len(found))
            return log_dirs(found, {each: 1 + each.partition for each in found}, has_failed=len(asked) == 2)

    wanted = [tp(f"topic-{number % 7}", number) for number in range(1_203)]
    found = asyncio.run(ask_log_sizes(wanted, Broker()))
    assert asked == [500, 500, 203]
    assert found.bytes_of == {each: 1 + each.partition for each in wanted}
    assert found.directory_of.keys() == set(wanted)
    assert (found.are_all_seen, found.directories) == (False, {"/data/1": True, "/data/2": False})


def test_a_broker_is_asked_at_each_of_its_listeners_without_encryption() -> None:
    listeners = [("INTERNAL", "PLAINTEXT", "a"), ("SAFE", "SASL_SSL", "b"), ("REPLICATION", "PLAINTEXT", "c")]
    endpoints = tuple(
        Endpoint(listener=name, security_protocol=protocol, host=host, port=9092) for name, protocol, host in listeners
    )
    broker = Broker(id=BrokerId(1), epoch=BrokerEpoch(1), endpoints=endpoints)
    assert [str(each) for each in ANY_PLAINTEXT.addresses(broker)] == ["a:9092", "c:9092"]
