"""The limit of a transaction's size, to the byte. Answers may be larger. Servers have ZooKeeper's default limit."""

import pytest

from controller_core.zk.session import (
    Check,
    ConnectionLost,
    Create,
    Delete,
    SetData,
    TooLarge,
    WriteOp,
    ZkSession,
    ZkVersion,
)
from tests.contract.ensembles import Ensemble

V0 = ZkVersion(0)


def make_writes(data: bytes) -> list[WriteOp]:
    """Return a transaction with an operation of every kind, one of them with the data."""
    return [
        Check(path="/kept", version=V0),
        SetData(path="/kept", data=b"now", version=V0),
        Create(path="/largé", data=data),
        Delete(path="/gone"),
    ]


async def make_writes_of_size(session: ZkSession, size_bytes: int) -> list[WriteOp]:
    return make_writes(b"x" * (size_bytes - session.request_bytes(make_writes(b""))))


async def open_session(ensemble: Ensemble, believed_bytes: int) -> ZkSession:
    session = await ensemble.session(believed_bytes)
    await session.transact([Create(path="/kept"), Create(path="/gone")])
    return session


async def test_a_transaction_may_be_as_large_as_the_limit_to_the_byte(ensemble: Ensemble) -> None:
    session = await open_session(ensemble, 0xFFFFF)
    await session.transact(await make_writes_of_size(session, 0xFFFFF))
    nodes = await session.read_many(["/kept", "/largé", "/gone"])
    assert [node and (node.data[:3], node.version) for node in nodes] == [(b"now", 1), (b"xxx", 0), None]


async def test_one_byte_more_costs_the_connection_where_the_limit_is_believed_to_be_larger(ensemble: Ensemble) -> None:
    session = await open_session(ensemble, 0xFFFFF + 1)
    with pytest.raises(ConnectionLost):
        await session.transact(await make_writes_of_size(session, 0xFFFFF + 1))
    assert await session.wait_connected(20_000)
    assert (await session.read_many(["/largé"])) == [None]


async def test_what_is_too_large_is_not_sent_and_what_is_sent_with_it_is_applied(ensemble: Ensemble) -> None:
    session = await open_session(ensemble, 0xFFFFF)
    too_large = await make_writes_of_size(session, 0xFFFFF + 1)
    first, refused, last = await session.transact_many([[Create(path="/a")], too_large, [Create(path="/b")]])
    assert (first, last) == (("/a",), ("/b",))
    assert isinstance(refused, TooLarge)
    assert refused.failed.op == too_large[2]
    with pytest.raises(TooLarge, match="1048576 bytes"):
        await session.transact(too_large)
    assert (await session.read_many(["/kept", "/largé", "/a"]))[1] is None


async def test_a_list_of_children_may_be_larger_than_a_request(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    names = [f"{number:0200}" for number in range(6000)]
    creates: list[WriteOp] = [Create(path=f"/many/{name}") for name in names]
    await session.transact([Create(path="/many")])
    await session.transact_many([creates[at : at + 1000] for at in range(0, len(creates), 1000)])
    assert sum(map(len, names)) > session.max_request_bytes
    assert await session.children_many(["/many"]) == [tuple(names)]
    assert await session.children_watched("/many", lambda _: None) == tuple(names)
