"""Refused logins while a session starts."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.protocol.states import KeeperState

from controller_core.zk.kazoo import session as session_module
from controller_core.zk.kazoo.bridge import Mailbox
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.secured.acls import OPEN_ACLS
from controller_core.zk.session import AccessRefused, ZooKeeperUnreachable


async def start(refusals: int, timeout_ms: int) -> None:
    """Start a session with a client that has been refused so often."""
    client: Any = SimpleNamespace(
        chroot="",
        client_state=KeeperState.CONNECTING,
        refusals=refusals,
        trouble="zk refuses the login: wrong",
        add_listener=lambda _: None,
    )
    session = KazooSession(client, Mailbox(asyncio.get_running_loop()), 1 << 20, OPEN_ACLS)
    await session._open("zk:2181", timeout_ms, makes_chroot=False)


async def test_the_third_refusal_ends_the_start_and_earlier_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "_LOOK_MS", 1)
    with pytest.raises(AccessRefused, match="ZooKeeper at zk:2181: zk refuses the login: wrong: correct the credent"):
        await start(3, timeout_ms=60_000)
    with pytest.raises(ZooKeeperUnreachable, match="within 50 ms: zk refuses the login: wrong"):
        await start(2, timeout_ms=50)
