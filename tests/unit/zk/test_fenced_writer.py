"""FencedWriter over the simulated ZooKeeper: fencing, isolation of failures, and lost connections at every write."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from controller_core.zk import paths
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.fenced import Fenced, FencedWriter, WriteOutcome
from controller_core.zk.session import (
    AccessRefused,
    BadVersion,
    ConnectionLost,
    Create,
    CreateMode,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    OperationRefused,
    SessionExpired,
    SetData,
    TooLarge,
    WriteOp,
    ZkError,
    ZkNode,
    ZkVersion,
)
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession
from tests.unit.zk.conftest import EPOCH_VERSION

V0 = ZkVersion(0)


@pytest.fixture
def writer(session: SimulatedSession) -> FencedWriter:
    return FencedWriter(session, EPOCH_VERSION, ops_per_transaction=5, reconnect_timeout_ms=20)


async def make(session: SimulatedSession, *names: str) -> None:
    for name in names:
        await session.transact([Create(path=f"/{name}", data=b"old")])


def write_each(names: Sequence[str], data: bytes = b"new") -> dict[str, list[WriteOp]]:
    return {name: [SetData(path=f"/{name}", data=data, version=V0)] for name in names}


async def data_of(session: SimulatedSession, names: Sequence[str]) -> list[tuple[bytes, int] | None]:
    nodes = await session.read_many([f"/{name}" for name in names])
    return [(node.data, node.version) if node else None for node in nodes]


NAMES = [f"n{number}" for number in range(20)]


async def test_groups_are_written_and_named_in_their_order(session: SimulatedSession, writer: FencedWriter) -> None:
    await make(session, *NAMES)
    outcome = await writer.write(write_each(NAMES))
    assert outcome.written == tuple(NAMES)
    assert outcome.failed == {}
    assert await data_of(session, NAMES) == [(b"new", 1)] * len(NAMES)


async def test_no_groups_write_nothing(writer: FencedWriter) -> None:
    outcome: WriteOutcome[str] = await writer.write({})
    assert (outcome.written, outcome.failed) == ((), {})


async def test_a_newer_epoch_fences_every_group(session: SimulatedSession, writer: FencedWriter) -> None:
    await make(session, "n0")
    await session.transact([SetData(path=paths.CONTROLLER_EPOCH, data=b"2", version=EPOCH_VERSION)])
    with pytest.raises(Fenced, match="controller_epoch"):
        await writer.write(write_each(["n0"]))
    assert await data_of(session, ["n0"]) == [(b"old", 0)]


async def test_a_deleted_epoch_fences_too(session: SimulatedSession, writer: FencedWriter) -> None:
    await make(session, "n0")
    await session.transact([Delete(path=paths.CONTROLLER_EPOCH)])
    with pytest.raises(Fenced):
        await writer.write(write_each(["n0"]))


async def test_failed_groups_fail_alone_and_say_why(session: SimulatedSession, writer: FencedWriter) -> None:
    await make(session, *NAMES)
    await session.transact([SetData(path="/n3", data=b"other")])
    await session.transact([Delete(path="/n4")])
    await session.transact([Create(path="/n6/child")])
    groups: dict[str, list[WriteOp]] = dict(write_each(NAMES))
    groups["n5"] = [Create(path="/n5")]
    groups["n6"] = [Delete(path="/n6")]
    groups["n7"] = [SetData(path="/n7", data=b"new", version=V0), Create(path="/absent/child")]
    outcome = await writer.write(groups)
    assert {key: type(error) for key, error in outcome.failed.items()} == {
        "n3": BadVersion,
        "n4": NoNode,
        "n5": NodeExists,
        "n6": NotEmpty,
        "n7": NoNode,
    }
    assert outcome.failed["n7"].failed.index == 1
    assert outcome.failed["n3"].failed.op == groups["n3"][0]
    assert outcome.written == tuple(name for name in NAMES if name not in outcome.failed)
    assert await data_of(session, ["n7", "n8"]) == [(b"old", 0), (b"new", 1)]


async def test_groups_that_acls_deny_fail_alone_and_name_their_paths(
    session: SimulatedSession, zookeeper: SimulatedZooKeeper
) -> None:
    names = [f"n{number}" for number in range(100)]
    await make(session, *names)
    zookeeper.tree.read_only.update(f"/{name}" for name in names[::2])
    zxid_before = zookeeper.tree.zxid
    outcome = await FencedWriter(session, EPOCH_VERSION, reconnect_timeout_ms=20).write(write_each(names))
    assert outcome.written == tuple(names[1::2])
    assert {key: type(error) for key, error in outcome.failed.items()} == dict.fromkeys(names[::2], OperationRefused)
    assert "ZooKeeper refuses access to /n2 " in str(outcome.failed["n2"])
    assert zookeeper.tree.zxid - zxid_before == 1 + 99, "one transaction together, then one for each other group"
    assert await data_of(session, ["n2", "n3"]) == [(b"old", 0), (b"new", 1)]


@pytest.mark.parametrize("path", [paths.CONTROLLER, paths.CONTROLLER_EPOCH])
async def test_access_to_the_role_that_is_refused_is_raised(
    session: SimulatedSession, zookeeper: SimulatedZooKeeper, writer: FencedWriter, path: str
) -> None:
    zookeeper.tree.read_only.add(path)
    with pytest.raises(AccessRefused, match=f"refuses access to {path} "):
        await writer.write({"role": [SetData(path=path, data=b"new")]})


async def test_a_thousand_failures_take_two_rounds(session: SimulatedSession, zookeeper: SimulatedZooKeeper) -> None:
    names = [f"n{number}" for number in range(1000)]
    await make(session, *names)
    for name in names[::2]:
        await session.transact([SetData(path=f"/{name}", data=b"other")])
    zxid_before = zookeeper.tree.zxid
    outcome = await FencedWriter(session, EPOCH_VERSION, ops_per_transaction=2000, reconnect_timeout_ms=20).write(
        write_each(names)
    )
    assert zookeeper.tree.zxid - zxid_before == 2
    assert outcome.written == tuple(names[1::2])
    assert set(outcome.failed) == set(names[::2])


@pytest.mark.parametrize("after_writes", range(7))
@pytest.mark.parametrize("is_applied", [True, False])
async def test_a_lost_connection_loses_and_repeats_no_write(
    zookeeper: SimulatedZooKeeper, session: SimulatedSession, writer: FencedWriter, after_writes: int, is_applied: bool
) -> None:
    await make(session, *NAMES[:10])
    groups: dict[str, list[WriteOp]] = dict(write_each(NAMES[:10]))
    groups["created"] = [Create(path="/created"), Create(path="/created/state", data=b"x")]
    groups["replaced"] = [Create(path="/replaced"), SetData(path="/replaced", data=b"y", version=V0)]
    groups["deleted"] = [Delete(path="/n0", version=ZkVersion(1))]
    groups["wrong"] = [SetData(path="/n1", data=b"z", version=ZkVersion(7))]
    lose = zookeeper.lose_next_response if is_applied else zookeeper.fail_before_apply
    lose(session, after_writes=after_writes)
    first = {key: ops for key, ops in groups.items() if key != "deleted"}
    outcome = await writer.write(first)
    assert outcome.written == tuple(key for key in first if key != "wrong")
    assert set(outcome.failed) == {"wrong"}
    assert (await writer.write({"deleted": groups["deleted"]})).written == ("deleted",)
    assert await data_of(session, NAMES[:10]) == [None, *[(b"new", 1)] * 9]
    assert await data_of(session, ["created", "created/state", "replaced"]) == [(b"", 0), (b"x", 0), (b"y", 1)]


class BehindAfterALoss(DelegatingSession):
    """The new server of the connection is behind: it shows the old state until a transaction of this session has passed
    through the leader and come back. ZooKeeper promises no more."""

    def __init__(self, session: SimulatedSession, names: Sequence[str]) -> None:
        super().__init__(session)
        self._paths = [f"/{name}" for name in names]
        self._behind: dict[str, ZkNode | None] = {}

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        nodes = await super().read_many(paths)
        return [self._behind.get(path, node) for path, node in zip(paths, nodes, strict=True)]

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        try:
            return await super().transact(ops)
        finally:
            self._behind.clear()

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        before = dict(zip(self._paths, await super().read_many(self._paths), strict=True))
        results = await super().transact_many(transactions)
        is_lost = any(isinstance(result, ConnectionLost) for result in results)
        self._behind = before if is_lost else {}
        return results


async def test_a_server_that_is_behind_after_a_lost_connection_is_not_believed(
    zookeeper: SimulatedZooKeeper, session: SimulatedSession
) -> None:
    await make(session, "n0", "n1")
    writer = FencedWriter(BehindAfterALoss(session, ["n0", "n1"]), EPOCH_VERSION, reconnect_timeout_ms=20)
    zookeeper.lose_next_response(session)
    outcome = await writer.write(write_each(["n0", "n1"]))
    assert (outcome.written, outcome.failed) == (("n0", "n1"), {})


class LostAfterTheFirst(DelegatingSession):
    """A connection that breaks whenever one transaction of several got through."""

    def __init__(self, session: SimulatedSession, zookeeper: SimulatedZooKeeper) -> None:
        super().__init__(session)
        self.losses = 0
        self._lose_after = partial(zookeeper.fail_before_apply, session)

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        if len(transactions) > 1:
            self.losses += 1
            self._lose_after(after_writes=1)
        return await super().transact_many(transactions)


async def test_a_connection_that_is_lost_again_and_again_ends_no_write_that_gets_on(
    zookeeper: SimulatedZooKeeper, session: SimulatedSession
) -> None:
    names = [f"n{number}" for number in range(40)]
    await make(session, *names)
    unsteady = LostAfterTheFirst(session, zookeeper)
    outcome = await FencedWriter(unsteady, EPOCH_VERSION, ops_per_transaction=5, reconnect_timeout_ms=20).write(
        write_each(names)
    )
    assert outcome.written == tuple(names)
    assert unsteady.losses == 9
    assert await data_of(session, names) == [(b"new", 1)] * len(names)


async def test_an_ephemeral_of_another_session_is_not_taken_for_ours(
    zookeeper: SimulatedZooKeeper, session: SimulatedSession, writer: FencedWriter
) -> None:
    other = zookeeper.session()
    zookeeper.fail_before_apply(session)
    create = Create(path="/lock", data=b"me", mode=CreateMode.EPHEMERAL)
    await other.transact([create])
    outcome = await writer.write({"lock": [create]})
    assert isinstance(outcome.failed["lock"], NodeExists)


async def test_a_connection_that_stays_away_is_reported_as_lost(
    zookeeper: SimulatedZooKeeper, session: SimulatedSession, writer: FencedWriter
) -> None:
    await make(session, "n0")
    zookeeper.disconnect(session)
    with pytest.raises(ConnectionLost, match="20 ms"):
        await writer.write(write_each(["n0"]))


async def test_a_session_that_expired_ends_the_write(
    zookeeper: SimulatedZooKeeper, session: SimulatedSession, writer: FencedWriter
) -> None:
    await make(session, "n0")
    zookeeper.expire(session)
    with pytest.raises(SessionExpired):
        await writer.write(write_each(["n0"]))
    assert await session.wait_connected(1000)
    with pytest.raises(SessionExpired):
        await writer.write(write_each(["n0"]))
    assert await data_of(session, ["n0"]) == [(b"old", 0)]


async def test_a_group_larger_than_the_limits_of_a_batch_is_a_transaction_of_its_own(
    session: SimulatedSession, writer: FencedWriter
) -> None:
    await make(session, *NAMES)
    together: list[WriteOp] = [SetData(path=f"/{name}", data=b"new", version=V0) for name in NAMES[2:]]
    outcome = await writer.write({**write_each(NAMES[:2]), "large": together})
    assert outcome.written == ("n0", "n1", "large")
    assert await data_of(session, NAMES) == [(b"new", 1)] * len(NAMES)


def make_write(writer: FencedWriter, room_bytes: int) -> list[WriteOp]:
    """Return a write that leaves that many bytes of ZooKeeper's limit."""
    empty = SetData(path="/n0", data=b"", version=V0)
    return [replace(empty, data=b"x" * (writer.room_bytes([empty]) - room_bytes))]


async def test_a_single_write_may_reach_the_limit_and_only_a_larger_one_fails(
    session: SimulatedSession, writer: FencedWriter
) -> None:
    await make(session, "n0", "n1")
    assert writer.why_too_large(make_write(writer, 0)) is None
    assert (await writer.write({"n0": make_write(writer, 0)})).failed == {}
    outcome = await writer.write({"n0": make_write(writer, -1), **write_each(["n1"])})
    assert outcome.written == ("n1",)
    assert isinstance(outcome.failed["n0"], TooLarge)
    assert "1048576 bytes; ZooKeeper's limit is 1048575" in str(outcome.failed["n0"])
    why = writer.why_too_large(make_write(writer, -1))
    assert why is not None
    assert "1048576 bytes; ZooKeeper's limit is 1048575" in why


async def test_a_request_that_zookeeper_cannot_take_ends_in_a_lost_connection(zookeeper: SimulatedZooKeeper) -> None:
    """The limit is larger than that of the servers: nothing is known of it but that the connection goes."""
    zookeeper.jute_maxbuffer_bytes = 1 << 18
    session = zookeeper.session(max_request_bytes=1 << 20)
    await session.transact([Create(path=paths.CONTROLLER_EPOCH, data=b"0")])
    await make(session, "n0")
    writer = FencedWriter(session, V0, reconnect_timeout_ms=1000)
    with pytest.raises(ConnectionLost, match=r"--zookeeper-jute-maxbuffer-bytes"):
        await writer.write({"n0": [SetData(path="/n0", data=b"x" * (1 << 19))]})
