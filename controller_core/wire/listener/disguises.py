"""Relayed requests that need a greater right than their API, because of what they contain.

Kafka gives some clients' APIs a second meaning between brokers, or for its own tools. Brokers recognize the sender by a
field that anybody can fill in. So such a request is judged as if it were one of another API.
"""

from typing import Final

from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2

from controller_core.wire.codecs.decoding import Cursor, decode
from controller_core.wire.codecs.frames import RequestHead, read_client_id
from controller_core.wire.listener.relay import PRODUCE, Content
from controller_core.wire.listener.workers import LARGE_BYTES, Lane, run_in_thread

_FETCH: Final = 1
_DELETE_RECORDS: Final = 21
_ADD_PARTITIONS_TO_TXN: Final = 24
_ALTER_PARTITION: Final = 56

_WRITER_OF_INTERNAL_TOPICS: Final = "__admin_client"
"""The client id that may write to `__consumer_offsets` and `__transaction_state`."""
_FIRST_ADD_PARTITIONS_OF_BROKERS: Final = 4
_FIRST_FLEXIBLE_FETCH: Final = 12
_FIRST_FETCH_WITH_TAGGED_REPLICA: Final = 15
_TOPIC_ID_BYTES: Final = 16
_BYTES_BEFORE_TOPICS: Final = 4 + 4 + 4 + 1 + 4 + 4
"""The waiting time, the least and most bytes, the isolation level, the session and its epoch."""
_PARTITION_BYTES: Final = 4 + 4 + 8 + 4 + 8 + 4
"""The index, the leader epoch, the offset, the epoch there, the log's start and the most bytes."""


_BYTES_OF_HEADER: Final = 64
"""Enough bytes to compare the client id."""


async def find_judged_api(head: RequestHead, content: Content) -> int:
    """Return the key of the API whose right a request needs: usually its own. Raises `Undecodable`."""
    if head.api_key == PRODUCE and read_client_id(bytes(content[:_BYTES_OF_HEADER])) == _WRITER_OF_INTERNAL_TOPICS:
        return _DELETE_RECORDS
    if head.api_key == _ADD_PARTITIONS_TO_TXN and head.api_version >= _FIRST_ADD_PARTITIONS_OF_BROKERS:
        return _ALTER_PARTITION
    if head.api_key == _FETCH:
        work = head.api_version, bytes(content)
        is_large = len(content) > LARGE_BYTES
        is_follower = await run_in_thread(Lane.CLIENTS, _is_of_follower, *work) if is_large else _is_of_follower(*work)
        return _ALTER_PARTITION if is_follower else _FETCH
    return head.api_key


def _is_of_follower(version: int, content: bytes) -> bool:
    """Return True if a broker would take a Fetch request for one of a follower, whose position moves the high watermark."""
    _, offset = decode(RequestHeaderV2 if version >= _FIRST_FLEXIBLE_FETCH else RequestHeaderV1, content)
    cursor = Cursor(content, offset)
    if version >= _FIRST_FETCH_WITH_TAGGED_REPLICA:
        return _has_tagged_fields(cursor)
    return int.from_bytes(cursor.take(4), "big", signed=True) >= 0


def _has_tagged_fields(cursor: Cursor) -> bool:
    """Return True if a Fetch request has tagged fields. Consumers send none, and a follower's id is in one.

    The fields are not read, because Kafka believes the sizes of those that it knows less than other decoders do.
    """
    cursor.take(_BYTES_BEFORE_TOPICS)
    for _ in range(_read_count(cursor)):
        cursor.take(_TOPIC_ID_BYTES)
        for _ in range(_read_count(cursor)):
            cursor.take(_PARTITION_BYTES)
            if cursor.read_unsigned_varint():
                return True
        if cursor.read_unsigned_varint():
            return True
    for _ in range(_read_count(cursor)):  # the forgotten topics
        cursor.take(_TOPIC_ID_BYTES)
        cursor.take(4 * _read_count(cursor))
        if cursor.read_unsigned_varint():
            return True
    cursor.take(_read_count(cursor))  # the rack
    return cursor.read_unsigned_varint() != 0


def _read_count(cursor: Cursor) -> int:
    """Read the length of a compact array or string."""
    return max(cursor.read_unsigned_varint() - 1, 0)
