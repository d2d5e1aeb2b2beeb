"""What a server answers, read as it lies on the wire: alone and in bulk alike."""

import struct

import pytest

from controller_core.zk.kazoo_requests import GetNode, MultiRead
from controller_core.zk.session import SessionId, ZkNode, ZkVersion

OF_A_CALL = struct.Struct("!iBi")
STAT = struct.pack("!qqqqiiiqiiq", 11, 12, 1_700_000_000_001, 1_700_000_000_002, 3, 4, 5, 0x6007, 1, 2, 13)
"""czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeral owner, length of the data, children, pzxid."""
NODE = struct.pack("!i", 1) + b"x" + STAT
EXPECTED = ZkNode(
    data=b"x",
    czxid=11,
    mzxid=12,
    version=ZkVersion(3),
    ephemeral_owner=SessionId(0x6007),
    mtime_ms=1_700_000_000_002,
)


def test_a_znode_is_read_from_its_stat() -> None:
    assert GetNode("/a").deserialize(NODE, 0) == EXPECTED


@pytest.mark.parametrize("count", [1, 3])
def test_znodes_in_bulk_are_read_as_one_is(count: int) -> None:
    answers = (OF_A_CALL.pack(GetNode.type, False, 0) + NODE) * count
    assert MultiRead(GetNode, ["/a"] * count).deserialize(answers, 0) == [EXPECTED] * count
