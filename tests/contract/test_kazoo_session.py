"""Behaviour that needs a session with a real ZooKeeper: addresses, chroots, old servers, silent servers."""

import asyncio
import signal
import socket
import threading
from collections.abc import Sequence

import pytest
from kazoo.security import make_digest_acl

from controller_core.names import Names
from controller_core.zk.kazoo.requests import MultiRead
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.session import (
    AccessRefused,
    ConnectionLost,
    Create,
    Delete,
    SessionState,
    SetData,
    WatchEvent,
    ZkNode,
    ZkSession,
    ZooKeeperUnreachable,
)
from devcluster.clients.sessions import SESSION_TIMEOUT_MS
from devcluster.clusters.zookeeper import ZooKeeper
from tests.contract.ensembles import Events, States, gateway_to, wait_until


async def connect(address: str, *, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> KazooSession:
    return await KazooSession.connect(
        address, session_timeout_ms=session_timeout_ms, connect_timeout_ms=SESSION_TIMEOUT_MS
    )


async def test_it_is_a_zk_session(zookeeper_connect: str) -> None:
    session: ZkSession = await connect(zookeeper_connect)
    await session.close()


async def test_an_address_where_nobody_listens_is_reported_with_the_time_waited() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{reserved.getsockname()[1]}/kafka"
        with pytest.raises(ZooKeeperUnreachable, match=f"{address} within 200 ms"):
            await KazooSession.connect(address, session_timeout_ms=2_000, connect_timeout_ms=200)


@pytest.mark.parametrize("address", ["", "/kafka", "host:port"])
async def test_an_address_that_is_none_is_refused_with_its_form(address: str) -> None:
    with pytest.raises(ValueError, match="write host:port,host:port/chroot"):
        await KazooSession.connect(address, session_timeout_ms=2_000, connect_timeout_ms=200)


async def test_a_missing_chroot_is_made_and_a_present_one_is_kept(zookeeper_connect: str) -> None:
    first = await connect(f"{zookeeper_connect}/deep/tree")
    await first.transact([Create(path="/a")])
    await first.close()
    second = await connect(f"{zookeeper_connect}/deep/tree")
    assert await second.children_many(["/"]) == [("a",)]
    await second.close()


async def test_a_session_without_a_chroot_sees_the_root(zookeeper: ZooKeeper) -> None:
    session = await connect(zookeeper.connect)
    (names,) = await session.children_many(["/"])
    assert names is not None
    assert "zookeeper" in names
    await session.close()


async def test_a_handshake_that_is_never_answered_does_not_cost_the_session(zookeeper: ZooKeeper) -> None:
    async with gateway_to(zookeeper.connect) as gateway:
        # The session waits a part of this time for the answer.
        session = await connect(gateway.address, session_timeout_ms=12_000)
        session_id = session.session_id
        gateway.is_silent = True
        gateway.cut()
        await wait_until(lambda: gateway.unanswered > 0)
        gateway.is_silent = False
        assert await session.wait_connected(60_000)
        assert session.session_id == session_id
        await session.close()


async def test_an_error_that_kazoo_does_not_expect_costs_the_session_and_no_more(zookeeper_connect: str) -> None:
    session = await connect(zookeeper_connect)
    states, former = States(session), session.session_id
    connection = session._client._connection
    read = connection._read_socket

    def stumble(_read_timeout_s: float) -> None:
        connection._read_socket = read
        raise RuntimeError("xids do not match")

    connection._read_socket = stumble
    with pytest.raises(ConnectionLost):
        await session.read_many(["/"])
    await wait_until(lambda: states.seen == [SessionState.EXPIRED, SessionState.CONNECTED])
    assert session.session_id != former
    assert (await session.read_many(["/"]))[0] is not None
    await session.close()


class ReadsJustBeforeAWrite(KazooSession):
    """A session that has read and not yet armed its watches when another session writes."""

    writer: KazooSession | None = None

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        nodes = await super().read_many(paths)
        if self.writer is not None:
            await self.writer.transact(
                [SetData(path="/changed", data=b"1"), Create(path="/made"), Delete(path="/gone")]
            )
        return nodes


async def test_a_write_between_a_read_and_the_arming_of_its_watches_fires_them(zookeeper_connect: str) -> None:
    reader = await ReadsJustBeforeAWrite.connect(
        zookeeper_connect, session_timeout_ms=SESSION_TIMEOUT_MS, connect_timeout_ms=SESSION_TIMEOUT_MS
    )
    events = Events()
    await reader.transact([Create(path="/changed"), Create(path="/gone"), Create(path="/same")])
    reader.writer = await connect(zookeeper_connect)
    changed, made, gone, same = await reader.read_watched(["/changed", "/made", "/gone", "/same"], events.watch)
    assert changed is not None
    assert changed.version == 0
    assert made is None
    assert gone is not None
    assert same is not None
    await wait_until(lambda: len(events.seen) == 3)
    assert sorted(events.seen, key=str) == [
        ("/changed", WatchEvent.DATA_CHANGED),
        ("/gone", WatchEvent.DELETED),
        ("/made", WatchEvent.CREATED),
    ]
    await reader.writer.close()
    await reader.close()


async def test_a_server_without_multi_read_is_read_znode_by_znode(
    zookeeper_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gets an opcode that it really does not know."""
    writer = await connect(zookeeper_connect)
    await writer.transact([Create(path=f"/n{number}", data=b"%d" % number) for number in range(100)])
    await writer.close()
    monkeypatch.setattr(MultiRead, "type", 98)
    session = await connect(zookeeper_connect)
    nodes: list[ZkNode | None] = []
    while not nodes:
        try:
            nodes = await session.read_many([f"/n{number}" for number in range(101)])
        except ConnectionLost:  # the first multi-read costs the connection, a moment after its answer
            assert await session.wait_connected(60_000)
    assert [node.data for node in nodes[:100] if node] == [b"%d" % number for number in range(100)]
    assert nodes[100] is None
    assert await session.children_many(["/n0", "/absent"]) == [(), None]
    await session.close()


async def test_an_acl_that_refuses_is_reported_as_such(zookeeper: ZooKeeper, zookeeper_chroot: str) -> None:
    session = await connect(zookeeper.connect + zookeeper_chroot)
    with zookeeper.client(zookeeper_chroot) as client:
        client.create("/secret", b"", acl=[make_digest_acl("someone", "else", all=True)])
    with pytest.raises(AccessRefused, match=r"access to .*/secret .*ACL"):
        await session.read_many(["/secret"])
    with pytest.raises(AccessRefused, match=r"access to .*/secret .*ACL"):
        await session.transact([SetData(path="/secret", data=b"")])
    await session.close()


async def keep_reading(session: KazooSession) -> None:
    """Read repeatedly: a stopped process may still give an answer or two."""
    while True:
        await session.read_many(["/"])


async def test_a_silent_server_is_noticed_before_the_session_can_expire(own_zookeeper: ZooKeeper) -> None:
    session = await connect(own_zookeeper.connect, session_timeout_ms=3_000)
    states = States(session)
    own_zookeeper.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(ConnectionLost):
            await asyncio.wait_for(keep_reading(session), timeout=20)
        await wait_until(lambda: states.seen == [SessionState.SUSPENDED])
    finally:
        own_zookeeper.process.send_signal(signal.SIGCONT)
    assert await session.wait_connected(60_000)
    await session.close()


async def test_servers_whose_names_hang_or_are_unknown_do_not_keep_it_from_another(zookeeper: ZooKeeper) -> None:
    released = threading.Event()
    host, _, port = zookeeper.connect.partition(":")

    def resolve(name: str) -> list[str]:
        if name.startswith("hanging"):
            released.wait(60)
        if name != "known":
            raise OSError(f"{name} is not known")
        return [host]

    servers = f"hanging-1:{port},hanging-2:{port},unknown:{port},known:{port}"
    try:
        session = await KazooSession.connect(
            servers, session_timeout_ms=6_000, connect_timeout_ms=30_000, names=Names(resolve)
        )
        await session.read_many(["/"])
        await session.close()
        with pytest.raises(ZooKeeperUnreachable, match="hanging-1 cannot be resolved: the name server does not answer"):
            await KazooSession.connect(
                f"hanging-1:{port}", session_timeout_ms=3_000, connect_timeout_ms=5_000, names=Names(resolve)
            )
    finally:
        released.set()


async def test_a_server_that_moved_is_not_looked_for_where_it_was(zookeeper: ZooKeeper) -> None:
    """This is like a deleted pod: its name soon has another address, and nobody answers at the former one."""
    now_at = ["127.0.0.1"]
    async with gateway_to(zookeeper.connect, "127.0.0.1") as former:
        port = int(former.address.rpartition(":")[2])
        async with gateway_to(zookeeper.connect, "127.0.0.2", port):
            session = await KazooSession.connect(
                f"zookeeper:{port}",
                session_timeout_ms=SESSION_TIMEOUT_MS,
                connect_timeout_ms=SESSION_TIMEOUT_MS,
                names=Names(lambda _: now_at),
            )
            session_id = session.session_id
            now_at[:] = ["127.0.0.2"]
            former.is_silent = True
            former.cut()
            await wait_until(lambda: not session._connected.is_set())
            assert await session.wait_connected(60_000)
            assert (former.unanswered, session.session_id) == (0, session_id)
            await session.close()


async def test_closing_while_zookeeper_is_away_ends(own_zookeeper: ZooKeeper) -> None:
    session = await connect(own_zookeeper.connect, session_timeout_ms=3_000)
    await asyncio.to_thread(own_zookeeper.kill)
    try:
        await asyncio.wait_for(session.close(), timeout=20)
    finally:
        await asyncio.to_thread(own_zookeeper.start)
