"""The reason that a session gives while it has no connection."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.connection import ConnectionDropped

from controller_core.security.properties_file import InvalidProperties
from controller_core.zk.kazoo.bridge import BridgedClient, Mailbox
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.secured.acls import OPEN_ACLS
from controller_core.zk.secured.properties import NO_ZK_SECURITY, ZkSecurity
from controller_core.zk.session import ConnectionLost, Create, CreateMode


def make_session(trouble: str | None) -> KazooSession:
    """Return a session without a connection."""

    def lose(requests: list[Any]) -> list[asyncio.Future[Any]]:
        futures = [asyncio.get_running_loop().create_future() for _ in requests]
        for each in futures:
            each.set_exception(ConnectionLoss())
        return futures

    client: Any = SimpleNamespace(chroot="", trouble=trouble, submit=lose, add_listener=lambda _: None)
    return KazooSession(client, Mailbox(asyncio.get_running_loop()), 1 << 20, OPEN_ACLS)


async def test_a_read_and_a_write_say_why_there_is_no_connection() -> None:
    session = make_session("zookeeper.auth.digest is not USER:PASSWORD")
    with pytest.raises(ConnectionLost, match=r"ConnectionLoss: zookeeper\.auth\.digest is not USER"):
        await session.read_many(["/a"])
    (answer,) = await session.transact_many([[Create(path="/a", mode=CreateMode.PERSISTENT)]])
    assert isinstance(answer, ConnectionLost)
    assert "zookeeper.auth.digest" in str(answer)


async def test_without_a_known_reason_the_loss_is_reported() -> None:
    with pytest.raises(ConnectionLost, match=r"ConnectionLoss$"):
        await make_session(None).read_many(["/a"])


async def test_a_connection_ends_the_reason_why_there_was_none() -> None:
    errors: list[Exception] = [InvalidProperties("the digest is wrong")]

    def security() -> ZkSecurity:
        if errors:
            raise errors.pop()
        return NO_ZK_SECURITY

    mailbox = Mailbox(asyncio.get_running_loop())
    client = BridgedClient("zk:2181", session_timeout_ms=6_000, mailbox=mailbox, security=security)
    with pytest.raises(ConnectionDropped):
        client._be_admitted(lambda: (1, 1))
    assert client.trouble == "the digest is wrong"
    client._be_admitted(lambda: (1, 1))
    assert client.trouble is None
