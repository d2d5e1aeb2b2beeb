"""The guarantees of `ZkSession` about znodes: reads in order, atomic transactions, errors that name the failed
operation.
"""

import asyncio
import time

import pytest

from controller_core.zk.session import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    CreateMode,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    SetData,
    TransactionFailed,
    WriteOp,
    ZkSession,
    ZkVersion,
)
from tests.contract.ensembles import Ensemble

V0 = ZkVersion(0)
V1 = ZkVersion(1)


@pytest.fixture
async def session(ensemble: Ensemble) -> ZkSession:
    return await ensemble.session()


async def test_a_created_znode_is_read_with_its_stat(session: ZkSession) -> None:
    assert await session.transact([Create(path="/a", data=b"x")]) == ("/a",)
    (node,) = await session.read_many(["/a"])
    assert node is not None
    assert (node.data, node.version, node.ephemeral_owner) == (b"x", 0, 0)
    assert node.czxid == node.mzxid > 0


async def test_writing_raises_the_version_and_mzxid_and_keeps_czxid(session: ZkSession) -> None:
    await session.transact([Create(path="/a", data=b"x")])
    (before,) = await session.read_many(["/a"])
    assert await session.transact([SetData(path="/a", data=b"y", version=V0)]) == ("/a",)
    (after,) = await session.read_many(["/a"])
    assert before is not None
    assert after is not None
    assert (after.data, after.version, after.czxid) == (b"y", 1, before.czxid)
    assert after.mzxid > before.mzxid


async def test_a_znode_has_the_time_of_its_last_write(session: ZkSession) -> None:
    begun_ms = time.time() * 1000
    await session.transact([Create(path="/a"), Create(path="/b")])
    (created,) = await session.read_many(["/a"])
    assert created is not None
    assert begun_ms - 1 <= created.mtime_ms <= time.time() * 1000
    written = created
    while written.mtime_ms == created.mtime_ms:
        await session.transact([SetData(path="/a", data=b"x")])
        (read,) = await session.read_many(["/a"])
        assert read is not None
        written = read
    assert created.mtime_ms < written.mtime_ms <= time.time() * 1000
    (other,) = await session.read_many(["/b"])
    assert other is not None
    assert other.mtime_ms == created.mtime_ms


async def test_a_recreated_znode_starts_at_version_0_with_a_later_czxid(session: ZkSession) -> None:
    await session.transact([Create(path="/a"), SetData(path="/a", data=b"1")])
    (before,) = await session.read_many(["/a"])
    await session.transact([Delete(path="/a", version=V1), Create(path="/a")])
    (after,) = await session.read_many(["/a"])
    assert before is not None
    assert after is not None
    assert after.version == 0
    assert after.czxid > before.czxid


async def test_five_thousand_znodes_are_read_in_the_order_asked(session: ZkSession) -> None:
    await session.transact([Create(path="/n")])
    await session.transact_many(
        [[Create(path=f"/n/{n}", data=str(n).encode()) for n in range(k, k + 500)] for k in range(0, 5000, 500)]
    )
    paths = [f"/n/{number}" for number in reversed(range(5001))]
    nodes = await session.read_many(paths)
    assert nodes[0] is None
    assert [node.data for node in nodes[1:] if node] == [str(n).encode() for n in reversed(range(5000))]


async def test_reading_no_paths_reads_nothing(session: ZkSession) -> None:
    assert await session.read_many([]) == []
    assert await session.children_many([]) == []


async def test_children_are_sorted_and_none_where_the_parent_is_absent(session: ZkSession) -> None:
    await session.transact([Create(path="/p"), *(Create(path=f"/p/{name}") for name in ("c", "a", "b"))])
    assert await session.children_many(["/p", "/absent", "/p/a"]) == [("a", "b", "c"), None, ()]
    assert await session.children_many(["/"]) == [("p",)]


async def test_data_and_names_of_any_characters_survive(session: ZkSession) -> None:
    data = bytes(range(256))
    await session.transact([Create(path="/zoë", data=data), Create(path="/zoë/<default>")])
    (node,) = await session.read_many(["/zoë"])
    assert node is not None
    assert node.data == data
    assert await session.children_many(["/zoë"]) == [("<default>",)]


async def test_large_data_is_read_back_whole(session: ZkSession) -> None:
    large = b"x" * 900_000
    await session.transact([Create(path="/large", data=large)])
    assert [node.data for node in await session.read_many(["/large"] * 5) if node] == [large] * 5


async def test_a_transaction_near_the_size_limit_is_applied(session: ZkSession) -> None:
    ops: list[WriteOp] = [Create(path=f"/n{number}", data=b"x" * 900) for number in range(1000)]
    assert len(await session.transact(ops)) == 1000
    assert all(await session.read_many([op.path for op in ops]))


@pytest.mark.parametrize(
    ("op", "error"),
    [
        (Create(path="/a"), NodeExists),
        (Create(path="/absent/child"), NoNode),
        (SetData(path="/absent", data=b""), NoNode),
        (SetData(path="/a", data=b"", version=V1), BadVersion),
        (Delete(path="/absent"), NoNode),
        (Delete(path="/a", version=V1), BadVersion),
        (Delete(path="/p"), NotEmpty),
        (Check(path="/absent", version=V0), NoNode),
        (Check(path="/a", version=V1), BadVersion),
        (Create(path="/ephemeral/child"), TransactionFailed),
    ],
)
async def test_a_refused_transaction_names_the_operation_and_applies_nothing(
    session: ZkSession, op: WriteOp, error: type[TransactionFailed]
) -> None:
    await session.transact(
        [
            Create(path="/a", data=b"x"),
            Create(path="/p"),
            Create(path="/p/child"),
            Create(path="/ephemeral", mode=CreateMode.EPHEMERAL),
        ]
    )
    before: list[WriteOp] = [Create(path="/new"), SetData(path="/a", data=b"y"), Delete(path="/p/child")]
    after: list[WriteOp] = [Create(path="/later")]
    if error is NotEmpty:
        before.pop()
    if (error is BadVersion and not isinstance(op, Check)) or isinstance(op, Check):
        before.pop(1)
    with pytest.raises(error) as caught:
        await session.transact([*before, op, *after])
    assert type(caught.value) is error
    assert (caught.value.failed.index, caught.value.failed.op) == (len(before), op)
    a, *absent = await session.read_many(["/a", "/new", "/later"])
    assert a is not None
    assert (a.data, a.version) == (b"x", 0)
    assert absent == [None, None]
    assert await session.children_many(["/p"]) == [("child",)]


async def test_operations_of_a_transaction_see_those_before_them(session: ZkSession) -> None:
    assert await session.transact(
        [
            Create(path="/a"),
            Create(path="/a/b"),
            SetData(path="/a/b", data=b"1", version=V0),
            Check(path="/a/b", version=V1),
            Delete(path="/a/b", version=V1),
            Delete(path="/a", version=V0),
        ]
    ) == ("/a", "/a/b", "/a/b", "/a/b", "/a/b", "/a")
    assert await session.read_many(["/a"]) == [None]


async def test_any_version_is_accepted_where_none_is_expected(session: ZkSession) -> None:
    await session.transact([Create(path="/a"), SetData(path="/a", data=b"1"), SetData(path="/a", data=b"2")])
    await session.transact([Check(path="/a", version=ANY_VERSION), Delete(path="/a")])
    assert await session.read_many(["/a"]) == [None]


async def test_sequential_names_count_all_children_ever_made(session: ZkSession) -> None:
    sequential = Create(path="/q/event_", mode=CreateMode.PERSISTENT_SEQUENTIAL)
    assert await session.transact([Create(path="/q"), sequential]) == ("/q", "/q/event_0000000000")
    await session.transact([Create(path="/q/other")])
    await session.transact([Delete(path="/q/event_0000000000")])
    assert await session.transact([sequential, sequential]) == ("/q/event_0000000002", "/q/event_0000000003")
    with pytest.raises(NodeExists):
        await session.transact([sequential, Create(path="/q")])
    assert await session.transact([sequential]) == ("/q/event_0000000004",)


async def test_many_transactions_succeed_or_fail_each_on_its_own_and_in_order(session: ZkSession) -> None:
    results = await session.transact_many(
        [
            [Create(path="/a")],
            [SetData(path="/a", data=b"1", version=V1)],
            [SetData(path="/a", data=b"1", version=V0), Create(path="/b")],
            [Create(path="/b/c"), Create(path="/b")],
            [SetData(path="/a", data=b"2", version=V1)],
        ]
    )
    assert [type(result) for result in results] == [tuple, BadVersion, tuple, NodeExists, tuple]
    assert results[2] == ("/a", "/b")
    assert isinstance(results[3], NodeExists)
    assert results[3].failed.index == 1
    (node,) = await session.read_many(["/a"])
    assert node is not None
    assert (node.data, node.version) == (b"2", 2)
    assert await session.transact_many([]) == []


async def test_calls_made_at_once_are_answered_in_the_order_made(session: ZkSession) -> None:
    await session.transact([Create(path="/a", data=b"")])
    answers = await asyncio.gather(
        *(
            call
            for number in range(50)
            for call in (session.transact([SetData(path="/a", data=b"%d" % number)]), session.read_many(["/a"]))
        )
    )
    read = [answer[0].data for answer in answers[1::2] if answer[0] and not isinstance(answer[0], str)]
    assert read == [b"%d" % number for number in range(50)]


async def test_sessions_see_each_others_writes_and_have_their_own_ids(ensemble: Ensemble, session: ZkSession) -> None:
    other = await ensemble.session()
    await session.transact([Create(path="/a", data=b"x", mode=CreateMode.EPHEMERAL)])
    (node,) = await other.read_many(["/a"])
    assert node is not None
    assert node.ephemeral_owner == session.session_id != other.session_id


async def test_closing_a_session_removes_its_ephemeral_znodes_and_ends_it(
    ensemble: Ensemble, session: ZkSession
) -> None:
    other = await ensemble.session()
    await session.transact([Create(path="/e", mode=CreateMode.EPHEMERAL), Create(path="/p")])
    await session.close()
    await session.close()
    ephemeral, persistent = await other.read_many(["/e", "/p"])
    assert ephemeral is None
    assert persistent is not None
    with pytest.raises(SessionExpired):
        await session.read_many(["/p"])
    with pytest.raises(SessionExpired):
        await session.transact([Delete(path="/p")])
    (result,) = await session.transact_many([[Delete(path="/p")]])
    assert isinstance(result, SessionExpired)
    with pytest.raises(SessionExpired):
        await session.wait_connected(10)
