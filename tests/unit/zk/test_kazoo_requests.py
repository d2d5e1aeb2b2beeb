"""Servers' answers to reads are split at the right places, one by one and in bulk."""

import struct
from typing import Final

from controller_core.zk.kazoo.requests import GetNode, MultiRead
from controller_core.zk.session import SessionId, ZkNode, ZkVersion

STAT: Final = struct.Struct("!qqqqiiiqiiq")
"""The fields of a `Stat`: czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner, dataLength,
numChildren, pzxid."""
NODE: Final = ZkNode(b"data", 1 << 40, 2 << 40, ZkVersion(7), SessionId(3 << 40), 1_700_000_000_000)


def encode_node(node: ZkNode) -> bytes:
    stat = STAT.pack(
        node.czxid, node.mzxid, 11, node.mtime_ms, node.version, 12, 13, node.ephemeral_owner, len(node.data), 14, 15
    )
    return struct.pack("!i", len(node.data)) + node.data + stat


def test_a_znode_is_read_with_each_part_in_its_place() -> None:
    assert tuple(GetNode("/a").deserialize(encode_node(NODE), 0)) == tuple(NODE)


def test_many_znodes_are_read_as_each_would_be() -> None:
    header, missing = struct.pack("!iBi", GetNode.type, 0, 0), struct.pack("!iBii", -1, 0, -101, -101)
    answer = header + encode_node(NODE) + missing + header + encode_node(NODE._replace(data=b""))
    nodes = MultiRead(GetNode, ["/a", "/b", "/c"]).deserialize(answer, 0)
    assert [node and tuple(node) for node in nodes] == [tuple(NODE), None, tuple(NODE._replace(data=b""))]
