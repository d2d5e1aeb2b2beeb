"""Assignments as people and Kafka's tools write them. The error about a wrong one says what to write instead."""

import json

import pytest

from controller_core.client.errors import InvalidArgument
from controller_core.client.reassigning.assignments import (
    Reassignment,
    format_partitions,
    format_reassignment,
    parse_partitions,
    parse_reassignment,
    parse_replica_assignment,
    read_reassignment,
)
from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicName, TopicPartition


def tp(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(TopicName(topic), PartitionId(partition))


def ids(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, brokers))


def test_an_assignment_names_the_replicas_of_one_partition_after_the_other() -> None:
    assert parse_replica_assignment("1:2,2:3") == {0: ids(1, 2), 1: ids(2, 3)}
    assert parse_replica_assignment(" 7 ") == {0: ids(7)}


@pytest.mark.parametrize(
    "text", ["", "1:2,", "a", "1:1", "1:2,3", "-1", "2147483648", "1::2", "1;2", "1_2:3", "+1", "\u0661"]
)
def test_an_assignment_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_replica_assignment(text)


def test_a_reassignment_is_read_and_written_as_kafka_s_tool_has_it() -> None:
    targets = {tp("b", 1): ids(3, 1), tp("a", 0): ids(2)}
    text = format_reassignment(targets)
    assert json.loads(text) == {
        "version": 1,
        "partitions": [
            {"topic": "a", "partition": 0, "replicas": [2], "log_dirs": ["any"]},
            {"topic": "b", "partition": 1, "replicas": [3, 1], "log_dirs": ["any", "any"]},
        ],
    }
    assert parse_reassignment(text) == targets


def test_log_directories_are_those_of_the_replicas_in_their_order() -> None:
    directories = {PartitionReplica(tp("a", 0), BrokerId(2)): "/data2"}
    text = format_reassignment({tp("a", 0): ids(1, 2)}, directories)
    assert '"log_dirs":["any","/data2"]' in text
    assert read_reassignment(text) == Reassignment(targets={tp("a", 0): ids(1, 2)}, directories=directories)


def test_a_byte_order_mark_is_no_part_of_a_plan() -> None:
    text = format_reassignment({tp("a", 0): ids(1)})
    assert parse_reassignment(f"\ufeff{text}") == {tp("a", 0): ids(1)}


def test_the_specification_s_own_examples_are_read() -> None:
    move = '{"partitions":[{"topic":"foo","partition":1,"replicas":[1,2,3]}],"version":1}'
    assert parse_reassignment(move) == {tp("foo", 1): ids(1, 2, 3)}
    chosen = '{"partitions":[{"topic":"foo","partition":1},{"topic":"foobar","partition":2}]}'
    assert parse_partitions(chosen) == (tp("foo", 1), tp("foobar", 2))
    assert parse_partitions(format_partitions([tp("foobar", 2), tp("foo", 1)])) == (tp("foo", 1), tp("foobar", 2))


ENTRY = {"topic": "foo", "partition": 0, "replicas": [1]}
WRONG_MOVES = {
    "no JSON": ("{", "write it as"),
    "no object": ("[]", "write it as"),
    "another version": (json.dumps({"version": 2, "partitions": [ENTRY]}), "version"),
    "nothing in it": ('{"version":1,"partitions":[]}', "at least one"),
    "no partitions": ('{"version":1}', "partitions"),
    "a partition that is a word": (json.dumps({"partitions": [{**ENTRY, "partition": "0"}]}), "partition"),
    "a partition below 0": (json.dumps({"partitions": [{**ENTRY, "partition": -1}]}), "partition"),
    "a broker out of range": (json.dumps({"partitions": [{**ENTRY, "replicas": [1 << 31]}]}), "replicas"),
    "a broker twice": (json.dumps({"partitions": [{**ENTRY, "replicas": [1, 1]}]}), "once"),
    "no replica": (json.dumps({"partitions": [{**ENTRY, "replicas": []}]}), "replicas"),
    "a partition twice": (json.dumps({"partitions": [ENTRY, ENTRY]}), "twice"),
    "fewer log directories than replicas": (
        json.dumps({"partitions": [{**ENTRY, "replicas": [1, 2], "log_dirs": ["/a"]}]}),
        "for each",
    ),
    "a name that is too long": (json.dumps({"partitions": [{**ENTRY, "topic": "x" * 250}]}), "topic"),
}


@pytest.mark.parametrize(("text", "message"), WRONG_MOVES.values(), ids=WRONG_MOVES)
def test_a_reassignment_that_is_none_says_what_to_write(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        parse_reassignment(text)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"partitions":[]}', '{"partitions":[{"topic":"a","partition":0},{"topic":"a","partition":0}]}']
)
def test_a_choice_of_partitions_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_partitions(text)


def test_many_partitions_are_read_about_as_quickly_as_they_are_written() -> None:
    many = [tp("t", number) for number in range(50_000)]
    with pytest.raises(InvalidArgument, match="t-49999 is there twice"):
        parse_partitions(format_partitions([*many, many[-1]]))
