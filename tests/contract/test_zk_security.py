"""Security of ZooKeeper sessions: certificates and logins, the errors of refused clients, and the ACLs of znodes."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.security import ACL, Id

from controller_core.security.properties_file import InvalidProperties
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.secured.properties import make_zk_security_source
from controller_core.zk.session import AccessRefused, Create, SessionState, ZooKeeperUnreachable
from devcluster.clients.sessions import SESSION_TIMEOUT_MS
from devcluster.clusters.certificates import make_certificate
from devcluster.clusters.secured_zookeeper import PASSWORD, USER, SecuredZooKeeper
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from tests.contract.ensembles import States, gateway_to, wait_until

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

ALL = 31
CREATORS = {ACL(ALL, Id("sasl", USER)), ACL(ALL, Id("x509", "CN=kontroller"))}
READERS = {ACL(1, Id("world", "anyone"))}
HANDSHAKE_MS = 10_000
"""Enough for a handshake on a busy machine: the tests read the reason of its failure."""


@asynccontextmanager
async def session(
    connect: str, properties: Path | None, *, connect_timeout_ms: int = SESSION_TIMEOUT_MS
) -> AsyncIterator[KazooSession]:
    made = await KazooSession.connect(
        connect,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        connect_timeout_ms=connect_timeout_ms,
        security=make_zk_security_source(properties),
    )
    try:
        yield made
    finally:
        await made.close()


async def why_not(
    connect: str, properties: Path | None, error: type[Exception], *, connect_timeout_ms: int = 3_000
) -> str:
    """Return the error that a refused client gets. It tries for the whole timeout unless it is refused."""
    with pytest.raises(error) as caught:
        async with session(connect, properties, connect_timeout_ms=connect_timeout_ms):
            pass
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


async def test_a_wrong_password_is_said_before_the_time_is_over(secured_zookeeper: SecuredZooKeeper) -> None:
    wrong = secured_zookeeper.write_properties(
        "wrong.properties",
        zookeeper_sasl_jaas_config=secured_zookeeper.properties(password="wrong")["zookeeper.sasl.jaas.config"],
    )
    async with asyncio.timeout(60):
        with pytest.raises(AccessRefused, match=r"localhost refuses the login: .*: correct the credentials"):
            async with session(f"localhost:{secured_zookeeper.secure_port}", wrong, connect_timeout_ms=100_000):
                pass


async def test_who_does_not_trust_the_server_says_so(secured_zookeeper: SecuredZooKeeper, tmp_path: Path) -> None:
    other = make_certificate(tmp_path, "localhost")
    properties = secured_zookeeper.write_properties(
        "untrusting.properties", zookeeper_ssl_truststore_location=str(other.certificate)
    )
    said = await why_not(
        secured_zookeeper.secure_connect, properties, ZooKeeperUnreachable, connect_timeout_ms=HANDSHAKE_MS
    )
    assert "certificate verify failed" in said.lower()


async def test_a_server_of_another_name_is_not_spoken_to(secured_zookeeper: SecuredZooKeeper) -> None:
    properties = secured_zookeeper.write_properties("named.properties")
    async with gateway_to(secured_zookeeper.secure_connect, "127.0.0.2") as gateway:
        said = await why_not(gateway.address, properties, ZooKeeperUnreachable, connect_timeout_ms=HANDSHAKE_MS)
        assert "IP address mismatch" in said
        unnamed = secured_zookeeper.write_properties(
            "unnamed.properties", zookeeper_ssl_endpoint_identification_algorithm=""
        )
        async with session(gateway.address, unnamed) as made:
            assert await made.read_many(["/"]) != [None]


async def test_who_has_no_certificate_is_told_that_there_is_no_connection(secured_zookeeper: SecuredZooKeeper) -> None:
    properties = secured_zookeeper.write_properties("nobody.properties", zookeeper_ssl_keystore_location="")
    said = await why_not(secured_zookeeper.secure_connect, properties, ZooKeeperUnreachable)
    assert "within 3000 ms: " in said


async def test_who_speaks_no_tls_is_told_that_there_is_no_connection(secured_zookeeper: SecuredZooKeeper) -> None:
    await why_not(secured_zookeeper.secure_connect, None, ZooKeeperUnreachable)


async def test_a_login_at_a_server_that_knows_none_is_refused(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    file = tmp_path / "login.properties"
    module = "org.apache.zookeeper.server.auth.DigestLoginModule"
    file.write_text(f'zookeeper.sasl.jaas.config={module} required username="{USER}" password="{PASSWORD}";\n')
    said = await why_not(zookeeper.connect, file, AccessRefused, connect_timeout_ms=SESSION_TIMEOUT_MS)
    assert "login" in said


async def test_an_unreadable_file_is_said_before_anything_is_tried(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    assert "absent" in await why_not(zookeeper.connect, tmp_path / "absent", InvalidProperties)


async def test_znodes_are_the_creators_and_readable_but_for_secrets(secured_zookeeper: SecuredZooKeeper) -> None:
    everybody = {ACL(ALL, Id("world", "anyone"))}
    expected = {
        "": CREATORS | READERS,
        "/consumers": everybody,
        "/brokers": CREATORS | READERS,
        "/config": CREATORS | READERS,
        "/config/users": CREATORS,
        "/config/users/alice": CREATORS,
        "/config/brokers": CREATORS,
        "/config/topics": CREATORS | READERS,
        "/delegation_token": CREATORS | READERS,
        "/delegation_token/tokens": CREATORS,
    }
    properties = secured_zookeeper.write_properties("acls.properties")
    async with session(f"{secured_zookeeper.secure_connect}/acls", properties) as made:
        await made.transact([Create(path=path) for path in expected if path])
    files = secured_zookeeper.certificate
    known: dict[str, Any] = {
        "use_ssl": True,
        "ca": str(files.certificate),
        "certfile": str(files.certificate),
        "keyfile": str(files.key),
    }
    with open_client(f"localhost:{secured_zookeeper.secure_port}", **known) as client:
        assert {path: set(client.get_acls(f"/acls{path}")[0]) for path in expected} == expected


async def test_a_stranger_may_not_write_what_was_made_here(secured_zookeeper: SecuredZooKeeper) -> None:
    properties = secured_zookeeper.write_properties("own.properties")
    async with session(f"{secured_zookeeper.secure_connect}/own", properties) as made:
        await made.transact([Create(path="/mine")])
        async with session(f"{secured_zookeeper.connect}/own", None) as stranger:
            with pytest.raises(AccessRefused):
                await stranger.transact([Create(path="/mine/not")])
            assert await stranger.read_many(["/mine"]) != [None]


async def test_a_password_that_changes_is_taken_at_the_next_connection(secured_zookeeper: SecuredZooKeeper) -> None:
    """A server that refuses the login for a while costs the connection, not the session."""
    server = secured_zookeeper
    properties = server.write_properties("rotated.properties")
    async with gateway_to(server.secure_connect) as gateway, session(f"{gateway.address}/rotated", properties) as made:
        states, number = States(made), made.session_id
        wrong = server.properties(password="wrong")["zookeeper.sasl.jaas.config"]
        server.write_properties("rotated.properties", zookeeper_sasl_jaas_config=wrong)
        gateway.cut()
        await wait_until(lambda: made._client.refusals > 0)
        server.write_properties("rotated.properties")
        await wait_until(lambda: SessionState.CONNECTED in states.seen)
        assert (made.session_id, states.seen) == (number, [SessionState.SUSPENDED, SessionState.CONNECTED])


async def test_a_certificate_that_changes_is_shown_at_the_next_connection(
    secured_zookeeper: SecuredZooKeeper, tmp_path: Path
) -> None:
    server, store = secured_zookeeper, tmp_path / "keystore.pem"
    shutil.copy(server.store, store)
    properties = server.write_properties("renewed.properties", zookeeper_ssl_keystore_location=str(store))
    unknown = make_certificate(tmp_path, "localhost")
    async with gateway_to(server.secure_connect) as gateway, session(gateway.address, properties) as made:
        states = States(made)
        store.write_text(unknown.key.read_text() + unknown.certificate.read_text())
        gateway.cut()
        await wait_until(lambda: made._client.trouble is not None)
        assert states.seen == [SessionState.SUSPENDED]
        shutil.copy(server.store, store)
        await wait_until(lambda: SessionState.CONNECTED in states.seen)
