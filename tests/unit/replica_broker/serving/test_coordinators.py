"""The coordinator of each group, as every broker computes it."""

from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator
from kio.static.primitive import i8

from controller_core.wire.messages import ErrorCode
from replica_broker.serving.coordinators import (
    VERSIONS,
    find_partition,
    java_hash,
    on_find_coordinator,
)
from tests.unit.replica_broker.serving.told import node, state, topic

OFFSETS = topic("__consumer_offsets", [state(0, 1), state(1, 3), state(2, 9)])
OF_PARTITION = {int(find_partition(key, 3)): key for key in ("a", "b", "c")}


@pytest.mark.parametrize(
    ("text", "hashed"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("\U0001f600", 1772899)],
)
def test_a_string_has_the_hash_that_java_gives_it(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed


def test_the_smallest_hash_has_no_absolute_value_in_java() -> None:
    assert find_partition("polygenelubricants", 50) == 0


def test_a_group_is_sent_to_the_leader_of_its_partition() -> None:
    found = _find(OF_PARTITION[0])
    assert (found.error_code, found.node_id, found.port) == (ErrorCode.none, 1, 9001)


@pytest.mark.parametrize("partition", [1, 2])
def test_nobody_coordinates_where_this_broker_leads_or_nobody_does(partition: int) -> None:
    assert _find(OF_PARTITION[partition]).error_code is ErrorCode.coordinator_not_available


def test_nobody_coordinates_transactions_without_their_topic() -> None:
    assert _find("a", key_type=1).error_code is ErrorCode.coordinator_not_available
    assert _find("a", key_type=2).error_code is ErrorCode.invalid_request


@pytest.mark.parametrize("version", range(VERSIONS.min, 4))
def test_one_key_is_answered_as_old_clients_ask_it(version: int) -> None:
    asked: dict[str, Any] = {"key": OF_PARTITION[0]} if version == 0 else {"key": OF_PARTITION[0], "key_type": i8(0)}
    request_type: Any = load_request_schema(10, version)
    request = request_type(**asked)
    answer: Any = VERSIONS.lower(on_find_coordinator(node(OFFSETS), "PLAINTEXT", VERSIONS.lift(request)), version)
    assert answer.node_id == 1
    assert VERSIONS.encode(answer, 1)


def _find(key: str, key_type: int = 0) -> Coordinator:
    request = FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=(key,))
    return on_find_coordinator(node(OFFSETS), "PLAINTEXT", request).coordinators[0]
