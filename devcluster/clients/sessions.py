"""Ends other clients' ZooKeeper sessions, by their ids and passwords.

Servers have sessions of `SESSION_TIMEOUT_MS`, because shorter ones also expire on a slow machine, and a test then sees
unexpected failovers. A test that kills a server, or expires the session of a living one, does not wait for the expiry:
another client takes the session over and closes it. To everybody else this looks like an expiry.
"""

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

SESSION_TIMEOUT_MS: Final = 30_000
"""Milliseconds of silence after which ZooKeeper expires a session, unless a server sets another timeout."""
_TIMEOUT_S: Final = 15
_PASSWORD_SEED: Final = 0xB3415C00
_MULTIPLIER: Final = 0x5DEECE66D
_MASK: Final = (1 << 48) - 1


def end_sessions(client: KazooClient, ids: Collection[int]) -> None:
    """End the sessions in which brokers or controllers with these ids are registered below the client's chroot."""
    servers = ",".join(f"{host}:{port}" for host, port in client.hosts)
    for session_id in set(_sessions_of(client, ids)):
        other = KazooClient(hosts=servers, timeout=_TIMEOUT_S, client_id=(session_id, session_password(session_id)))
        try:
            other.start(timeout=_TIMEOUT_S)
        finally:
            other.stop()  # closes the session
            other.close()


def session_password(session_id: int) -> bytes:
    """Return ZooKeeper's password of a session: 16 bytes of `java.util.Random`, whose seed is made of the session's id."""
    state = (session_id ^ _PASSWORD_SEED ^ _MULTIPLIER) & _MASK
    password = b""
    for _ in range(4):
        state = (state * _MULTIPLIER + 0xB) & _MASK
        password += (state >> 16).to_bytes(4, "little")
    return password


def _sessions_of(client: KazooClient, ids: Collection[int]) -> Iterator[int]:
    with suppress(NoNodeError):
        holder, stat = client.get("/controller")
        if json.loads(holder)["brokerid"] in ids:
            yield stat.ephemeralOwner
    for folder in ("/brokers/ids", "/kontroller/processes"):
        for each in ids:
            stat = client.exists(f"{folder}/{each}")
            if stat is not None and stat.ephemeralOwner:
                yield stat.ephemeralOwner
