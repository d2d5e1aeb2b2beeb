"""Kontroller's request for a transaction has the same bytes as kazoo's, and its reading of the answer is the same."""

import struct

from hypothesis import given
from hypothesis import strategies as st
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, NotEmptyError, ZookeeperError
from kazoo.protocol import serialization as kazoo
from kazoo.security import OPEN_ACL_UNSAFE

from controller_core.zk.kazoo.transaction import FailedAt, Transaction
from controller_core.zk.session import Check, Create, CreateMode, Delete, SetData, WriteOp, ZkVersion

_FLAGS = {CreateMode.PERSISTENT: 0, CreateMode.EPHEMERAL: 1, CreateMode.PERSISTENT_SEQUENTIAL: 2}
_HEADER = struct.Struct("!iBi")
_LAST = _HEADER.pack(-1, 1, -1)

_paths = st.lists(st.text(st.characters(exclude_characters="/", codec="utf-8"), min_size=1), max_size=3).map(
    lambda names: "/" + "/".join(names)
)
_versions = st.integers(-1, 2**31 - 1).map(ZkVersion)
_ops: st.SearchStrategy[WriteOp] = st.one_of(
    st.builds(Create, path=_paths, data=st.binary(max_size=20), mode=st.sampled_from(CreateMode)),
    st.builds(SetData, path=_paths, data=st.binary(max_size=20), version=_versions),
    st.builds(Delete, path=_paths, version=_versions),
    st.builds(Check, path=_paths, version=_versions),
)


def convert_to_kazoo(op: WriteOp, chroot: str) -> object:
    path = (chroot if op.path == "/" else chroot + op.path) or "/"
    match op:
        case Create(data=data, mode=mode):
            return kazoo.Create(path, data, OPEN_ACL_UNSAFE, _FLAGS[mode])
        case SetData(data=data, version=version):
            return kazoo.SetData(path, data, version)
        case Delete(version=version):
            return kazoo.Delete(path, version)
        case Check(version=version):
            return kazoo.CheckVersion(path, version)


def make_answer(ops: list[WriteOp], names: list[str]) -> bytes:
    """Return a server's answer to a transaction that it applied."""
    answer = b""
    for op, name in zip(ops, names, strict=True):
        match op:
            case Create():
                answer += _HEADER.pack(1, 0, 0) + kazoo.write_string(name)
            case SetData():
                answer += _HEADER.pack(5, 0, 0) + bytes(67) + b"\1"
            case Delete():
                answer += _HEADER.pack(2, 0, 0)
            case Check():
                answer += _HEADER.pack(13, 0, 0)
    return answer + _LAST


@given(ops=st.lists(_ops, max_size=8), chroot=st.sampled_from(["", "/kafka", "/a/b"]))
def test_the_bytes_of_a_transaction_are_those_of_kazoo(ops: list[WriteOp], chroot: str) -> None:
    expected = kazoo.Transaction([convert_to_kazoo(op, chroot) for op in ops]).serialize()
    assert Transaction(ops, chroot).serialize() == bytes(expected)


@given(data=st.data(), ops=st.lists(_ops, min_size=1, max_size=8))
def test_an_applied_transaction_says_the_names_that_kazoo_reads_of_its_sequential_znodes(
    data: st.DataObject, ops: list[WriteOp]
) -> None:
    names = [data.draw(_paths) for _ in ops]
    header = b"header"
    answer = header + make_answer(ops, names)
    read_by_kazoo = kazoo.Transaction.deserialize(answer, len(header))
    assert len(read_by_kazoo) == len(ops)
    sequential = [
        found
        for op, found in zip(ops, read_by_kazoo, strict=True)
        if isinstance(op, Create) and op.mode is CreateMode.PERSISTENT_SEQUENTIAL
    ]
    assert Transaction(ops, "").deserialize(answer, len(header)) == sequential


@given(
    ops=st.lists(_ops, min_size=1, max_size=8),
    position=st.integers(0, 7),
    error=st.sampled_from([NodeExistsError, NoNodeError, BadVersionError, NotEmptyError]),
)
def test_a_refused_transaction_names_the_operation_that_was_the_reason(
    ops: list[WriteOp], position: int, error: type[ZookeeperError]
) -> None:
    index = position % len(ops)
    codes = [0] * index + [error.code] + [-2] * (len(ops) - index - 1)
    answer = b"".join(_HEADER.pack(-1, 0, code) + struct.pack("!i", code) for code in codes) + _LAST
    (failed,) = Transaction(ops, "").deserialize(answer, 0)
    assert isinstance(failed, FailedAt)
    assert (failed.index, type(failed.error)) == (index, error)
