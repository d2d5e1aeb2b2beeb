"""The requests that brokers take for those of servers or tools, whatever connection they come by."""

import struct
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from kio.index import load_request_schema
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload

from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import encode_request, read_request_head
from controller_core.wire.listener.disguises import find_judged_api

FETCH, ADD_PARTITIONS, ALTER_PARTITION, DELETE_RECORDS = 1, 24, 56, 21
SOON = i32Timedelta.parse(timedelta(seconds=1))
FIRST_TAGGED = 15


async def judge(content: bytes) -> int:
    return await find_judged_api(read_request_head(content), content)


def encode(request: RequestPayload, client_id: str = "client") -> bytes:
    return encode_request(request, 1, client_id)[4:]


def make_fetch(version: int, replica: int | None = None, partitions: int = 2, **partition: Any) -> RequestPayload:
    """Return a Fetch request of a consumer, or of the follower with that id."""
    schema = load_request_schema(FETCH, version)
    module: Any = __import__(schema.__module__, fromlist=["FetchTopic"])
    given = {"partition": i32(0), "fetch_offset": i64(7), "partition_max_bytes": i32(1024)}
    each = module.FetchPartition(**given, **partition)
    named = {"topic_id": uuid4()} if version >= 13 else {"topic": "topic"}
    topic = module.FetchTopic(**named, partitions=(each,) * partitions)
    top: dict[str, Any] = {"max_wait": SOON, "min_bytes": i32(1), "topics": (topic,)}
    if version >= 7:
        forgotten = module.ForgottenTopic(**named, partitions=(i32(1), i32(2)))
        top |= {"forgotten_topics_data": (forgotten,)}
    if version < FIRST_TAGGED:
        top |= {"replica_id": WireBrokerId(-1 if replica is None else replica)}
    elif replica is not None:
        top |= {"replica_state": module.ReplicaState(replica_id=WireBrokerId(replica))}
    request: RequestPayload = schema(**top)
    return request


@pytest.mark.parametrize("version", range(4, 18))
@pytest.mark.parametrize("partitions", [0, 2, 2000])
async def test_a_fetch_is_a_consumers_or_a_followers(version: int, partitions: int) -> None:
    assert await judge(encode(make_fetch(version, partitions=partitions))) == FETCH
    assert await judge(encode(make_fetch(version, 2, partitions=partitions))) == ALTER_PARTITION


async def test_a_fetch_that_hides_a_followers_id_behind_another_field_is_a_followers() -> None:
    """Kafka ignores the sizes of the fields that it knows, so it reads on inside of what others skip."""
    consumers = encode(make_fetch(17))
    state = b"\1\4" + struct.pack(">i", 2) + b"\0"
    hidden = b"\0" + bytes([2 + len(state)]) + b"\2c" + state
    assert consumers.endswith(b"\0")
    assert await judge(consumers[:-1] + b"\1" + hidden) == ALTER_PARTITION
    directory = encode(make_fetch(17, replica_directory_id=uuid4()))
    assert await judge(directory) == ALTER_PARTITION


async def test_a_fetch_that_is_cut_is_no_request() -> None:
    for version in (11, 17):
        content = encode(make_fetch(version))
        with pytest.raises(Undecodable):
            await judge(content[:18])


async def test_a_producer_that_may_write_to_internal_topics_is_an_administrators_tool() -> None:
    produce = struct.pack(">hhih", 0, 9, 1, 14)
    assert await judge(produce + b"__admin_client\0") == DELETE_RECORDS
    for other in (b"__admin_clienT\0", b"my_admin_clien\0"):
        assert await judge(produce + other) == 0
    assert await judge(struct.pack(">hhih", 0, 9, 1, -1)) == 0
    assert await judge(struct.pack(">hhih", FETCH + 1, 9, 1, 14) + b"__admin_client\0") == FETCH + 1


@pytest.mark.parametrize(("version", "judged"), [(3, ADD_PARTITIONS), (4, ALTER_PARTITION), (5, ALTER_PARTITION)])
async def test_partitions_of_several_transactions_are_added_by_brokers(version: int, judged: int) -> None:
    assert await judge(struct.pack(">hhih", ADD_PARTITIONS, version, 1, -1)) == judged
