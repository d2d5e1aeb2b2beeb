"""A listener with logins: the accepted users and mechanisms, the lifetime of a session, and the answers before a
login."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.api_versions.v3 import ApiVersionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v0 import FindCoordinatorRequest
from kio.schema.metadata.v9 import MetadataRequest
from kio.schema.sasl_authenticate.v0 import SaslAuthenticateRequest as SaslAuthenticateRequest0
from kio.schema.sasl_authenticate.v0 import SaslAuthenticateResponse as SaslAuthenticateResponse0
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v0 import SaslHandshakeRequest as SaslHandshakeRequest0
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse
from kio.static.protocol import RequestPayload

from controller_core.model.authorization.principal import Principal
from controller_core.wire.authentication import login as login_module
from controller_core.wire.codecs.frames import decode_response, encode_request, make_frame, read_frame
from controller_core.wire.connections.connecting import CannotConnect, NotAdmitted, OutOfReach
from controller_core.wire.connections.security import PASSWORD_MECHANISMS, Login
from controller_core.wire.listener.listener import Listener
from devcluster.clusters.certificates import CertificateFiles
from tests.unit.wire.authentication.secured_site import ALICE, DEADLINE_S, PASSWORD, SHUTDOWN, Site, make_stored

PLAIN_LOGIN = b"\0alice\0a secret"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="broker" password="b" user_alice="a secret" user_bob="b secret";'
)
PROPERTIES = {
    "sasl.enabled.mechanisms": ",".join(PASSWORD_MECHANISMS),
    "listener.name.secure.plain.sasl.jaas.config": JAAS,
    "connection.failed.authentication.delay.ms": "1",
}
FIND_COORDINATOR = FindCoordinatorRequest(key="group")
METADATA = MetadataRequest(
    topics=(),
    allow_auto_topic_creation=False,
    include_cluster_authorized_operations=False,
    include_topic_authorized_operations=False,
)


def login(mechanism: str, user: str = ALICE, password: str = PASSWORD) -> Login:
    return Login(mechanism=mechanism, username=user, password=password)


@pytest.fixture
def open_site(site: Site) -> Site:
    """Return a site at which alice can log in by every mechanism."""
    site.write(PROPERTIES)
    for mechanism in PASSWORD_MECHANISMS[1:]:
        site.users.known[mechanism, ALICE] = make_stored(mechanism)
    return site


class Talk:
    """A connection on which a client sends what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, request: RequestPayload) -> bytes | None:
        """Return the answer, or None if the connection was closed instead."""
        return await self.say_bytes(encode_request(request, 3, "client"))

    async def say_bytes(self, data: bytes) -> bytes | None:
        self.writer.write(data)
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await read_frame(self.reader)
            except OSError:
                return None

    async def handshake(self, mechanism: str = "PLAIN") -> SaslHandshakeResponse:
        answer = await self.say(SaslHandshakeRequest(mechanism=mechanism))
        assert answer is not None
        return decode_response(SaslHandshakeResponse, answer)

    async def authenticate(self, message: bytes = PLAIN_LOGIN) -> SaslAuthenticateResponse:
        answer = await self.say(SaslAuthenticateRequest(auth_bytes=message))
        assert answer is not None
        return decode_response(SaslAuthenticateResponse, answer)

    async def is_served(self) -> bool:
        return await self.say_bytes(SHUTDOWN) is not None


@asynccontextmanager
async def open_talk(listener: Listener) -> AsyncIterator[Talk]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    try:
        yield Talk(reader, writer)
    finally:
        writer.close()


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
async def test_who_knows_the_password_is_known_by_his_name(open_site: Site, mechanism: str) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        assert await open_site.ask(listener, login=login(mechanism)) == Principal.user(ALICE)
        assert open_site.judge.seen[-1].is_authenticated


async def test_logins_of_one_address_have_so_many_places_and_who_has_logged_in_takes_none(open_site: Site) -> None:
    async with (
        open_site.listen("SASL_PLAINTEXT", max_unauthenticated_connections_per_address=2) as listener,
        open_talk(listener) as one,
        open_talk(listener) as two,
    ):
        await one.handshake()
        await two.handshake()
        async with open_talk(listener) as three:
            assert await three.say(SaslHandshakeRequest(mechanism="PLAIN")) is None
        await one.authenticate()
        async with open_talk(listener) as four:
            await four.handshake()
            await four.authenticate()
            assert [await four.is_served(), await one.is_served()] == [True, True]


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
async def test_a_login_goes_before_a_certificate(
    open_site: Site, server: CertificateFiles, client: CertificateFiles, mechanism: str
) -> None:
    open_site.write({
        **PROPERTIES,
        **open_site.tls(server),
        "listener.name.secure.ssl.client.auth": "required",
    })  # fmt: skip
    async with open_site.listen("SASL_SSL") as listener:
        asking = open_site.ask(listener, tls=open_site.client_tls(client), login=login(mechanism))
        assert await asking == Principal.user(ALICE)
        with pytest.raises(CannotConnect):
            await open_site.ask(listener, tls=open_site.client_tls(), login=login(mechanism))


async def test_a_certificate_before_a_login_needs_no_rule_that_names_it(
    open_site: Site, server: CertificateFiles, client: CertificateFiles
) -> None:
    open_site.write({
        **PROPERTIES,
        **open_site.tls(server),
        "listener.name.secure.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=other$/x/",
    })  # fmt: skip
    async with open_site.listen("SASL_SSL") as listener:
        asking = open_site.ask(listener, tls=open_site.client_tls(client), login=login("PLAIN"))
        assert await asking == Principal.user(ALICE)


async def test_who_logs_in_needs_no_certificate_unless_that_is_said_of_the_listener_alone(
    open_site: Site, server: CertificateFiles
) -> None:
    open_site.write({**PROPERTIES, **open_site.tls(server), "ssl.client.auth": "required"})
    async with open_site.listen("SASL_SSL") as listener:
        asking = open_site.ask(listener, tls=open_site.client_tls(), login=login("PLAIN"))
        assert await asking == Principal.user(ALICE)


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [(ALICE, "wrong"), ("nobody", PASSWORD)])
async def test_who_does_not_know_the_password_is_told_so_and_so_is_who_is_not_known(
    open_site: Site, mechanism: str, user: str, password: str, logged: list[Any]
) -> None:
    words = (
        "Authentication failed: Invalid username or password"
        if mechanism == "PLAIN"
        else f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        for _ in range(3):
            with pytest.raises(NotAdmitted, match=words):
                await open_site.ask(listener, login=login(mechanism, user, password))
    lines = [line for line in logged if line["event"] == "connection closed: login failed"]
    assert [line["error"] for line in lines] == [f"{mechanism}: wrong name or password"]
    assert not any(secret in str(logged) for secret in (PASSWORD, "wrong'", "nobody's"))
    assert not open_site.judge.seen


async def test_the_answer_to_a_failed_login_is_delayed_and_no_other(
    open_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays_s: list[float] = []

    async def note_delay(delay_s: float) -> None:
        delays_s.append(delay_s)

    monkeypatch.setattr(login_module, "asyncio", SimpleNamespace(sleep=note_delay, timeout=asyncio.timeout))
    open_site.write({**PROPERTIES, "connection.failed.authentication.delay.ms": "700"})
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        await open_site.ask(listener, login=login("PLAIN"))
        assert delays_s == []
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            with pytest.raises(NotAdmitted):
                await open_site.ask(listener, login=login(mechanism, password="wrong"))
        async with open_talk(listener) as talk:
            await talk.handshake("GSSAPI")
    assert delays_s == [0.7] * 3


async def test_a_user_of_one_scram_mechanism_does_not_log_in_by_the_other(open_site: Site) -> None:
    del open_site.users.known["SCRAM-SHA-256", ALICE]
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        assert await open_site.ask(listener, login=login("SCRAM-SHA-512")) == Principal.user(ALICE)
        with pytest.raises(NotAdmitted):
            await open_site.ask(listener, login=login("SCRAM-SHA-256"))


async def test_passwords_that_change_are_needed_at_the_next_login(open_site: Site) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        open_site.users.known["SCRAM-SHA-256", ALICE] = make_stored("SCRAM-SHA-256", "another")
        open_site.write(
            {**PROPERTIES, "listener.name.secure.plain.sasl.jaas.config": JAAS.replace(PASSWORD, "another")}
        )
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            with pytest.raises(NotAdmitted):
                await open_site.ask(listener, login=login(mechanism))
            asking = open_site.ask(listener, login=login(mechanism, password="another"))
            assert await asking == Principal.user(ALICE)


async def test_where_credentials_are_out_of_reach_nobody_is_told_that_he_is_wrong(
    open_site: Site, logged: list[Any]
) -> None:
    open_site.users.is_out_of_reach = True
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        with pytest.raises(OutOfReach):
            await open_site.ask(listener, login=login("SCRAM-SHA-256"))
    assert [line["error"] for line in logged if line["log_level"] == "warning"] == ["ZooKeeper is gone"]


async def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(open_site: Site) -> None:
    open_site.write({**PROPERTIES, "listener.name.secure.sasl.enabled.mechanisms": "SCRAM-SHA-512, SCRAM-SHA-256"})
    async with open_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        answer = await talk.handshake("PLAIN")
        assert answer.error_code is ErrorCode.unsupported_sasl_mechanism
        assert answer.mechanisms == ("SCRAM-SHA-512", "SCRAM-SHA-256")
        assert not await talk.is_served()


async def test_before_a_login_versions_are_told_and_nothing_else_is_done(open_site: Site, logged: list[Any]) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        async with open_talk(listener) as talk:
            asked = ApiVersionsRequest(client_software_name="a", client_software_version="1")
            assert await talk.say(asked) is not None
            assert await talk.say(asked) is not None
            assert await talk.say(METADATA) is None
        async with open_talk(listener) as talk:
            assert not await talk.is_served()
        async with open_talk(listener) as talk:
            await talk.handshake()
            assert await talk.say(METADATA) is None
        async with open_talk(listener) as talk:
            assert await talk.say(SaslAuthenticateRequest(auth_bytes=PLAIN_LOGIN)) is None
    errors = [line["error"] for line in logged if line["event"] == "connection closed: login failed"]
    assert errors[0] == "API 3 was requested before a login: the client is not configured for SASL"
    assert not open_site.judge.seen


async def test_a_handshake_in_the_middle_of_a_login_is_told_to_be_out_of_place(open_site: Site) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        await talk.handshake()
        assert (await talk.handshake()).error_code is ErrorCode.illegal_sasl_state
        assert not await talk.is_served()


async def test_clients_of_before_2018_log_in_by_frames_that_are_no_requests(open_site: Site) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        async with open_talk(listener) as talk:
            assert await talk.say(SaslHandshakeRequest0(mechanism="PLAIN")) is not None
            assert await talk.say_bytes(make_frame(PLAIN_LOGIN)) == b""
            assert await talk.is_served()
            assert open_site.judge.seen[-1].principal == Principal.user(ALICE)
        async with open_talk(listener) as talk:
            assert await talk.say(SaslHandshakeRequest0(mechanism="PLAIN")) is not None
            assert await talk.say_bytes(make_frame(b"\0alice\0wrong")) is None


async def test_oldest_requests_of_a_login_are_answered_in_their_version(open_site: Site) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        await talk.handshake()
        answer = await talk.say(SaslAuthenticateRequest0(auth_bytes=PLAIN_LOGIN))
        assert answer is not None
        assert decode_response(SaslAuthenticateResponse0, answer).error_code is ErrorCode.none
        assert await talk.is_served()


async def test_who_wants_to_be_taken_for_somebody_else_is_not(open_site: Site) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        await talk.handshake()
        answer = await talk.authenticate(b"bob\0alice\0a secret")
        assert answer.error_code is ErrorCode.sasl_authentication_failed
        assert answer.error_message is not None
        assert "different from username" in answer.error_message


# KIP-368

LIMITED = {**PROPERTIES, "connections.max.reauth.ms": "60000"}


async def test_a_session_without_a_limit_lasts_for_ever(open_site: Site) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        await talk.handshake()
        assert (await talk.authenticate()).session_lifetime.total_seconds() == 0
        assert await talk.is_served()


@pytest.mark.parametrize(
    ("further", "seconds"),
    [
        ({}, 60),
        ({"listener.name.secure.connections.max.reauth.ms": "30000"}, 30),
        ({"listener.name.secure.plain.connections.max.reauth.ms": "10000"}, 10),
    ],
)
async def test_a_session_is_told_how_long_it_lasts(open_site: Site, further: dict[str, str], seconds: int) -> None:
    open_site.write({**LIMITED, **further})
    async with open_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        await talk.handshake()
        assert (await talk.authenticate()).session_lifetime.total_seconds() == seconds


async def test_a_session_is_renewed_on_its_connection(open_site: Site) -> None:
    open_site.write(LIMITED)
    async with open_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        for _ in range(3):
            await talk.handshake()
            assert (await talk.authenticate()).error_code is ErrorCode.none
            assert await talk.is_served()
        assert {caller.principal for caller in open_site.judge.seen} == {Principal.user(ALICE)}


@pytest.mark.parametrize(
    ("mechanism", "message", "words"),
    [
        ("PLAIN", b"\0bob\0b secret", "Cannot change principals during re-authentication from User.alice: User.bob"),
        ("PLAIN", b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", b"n,,n=alice,r=nonce", "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported"),
        ("SCRAM-SHA-512", b"", "SASL mechanism 'SCRAM-SHA-512' requested by client is not supported"),
    ],
)
async def test_a_session_is_renewed_by_the_same_mechanism_for_the_same_principal_or_ends(
    open_site: Site, mechanism: str, message: bytes, words: str
) -> None:
    open_site.write(LIMITED)
    async with open_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        await talk.handshake()
        await talk.authenticate()
        await talk.handshake(mechanism)
        answer = await talk.authenticate(message)
        assert answer.error_code is ErrorCode.sasl_authentication_failed
        assert answer.error_message is not None
        assert words in answer.error_message
        assert not await talk.is_served()


async def test_a_session_that_is_over_ends_with_the_next_request_unless_that_renews_it(open_site: Site) -> None:
    open_site.write({**PROPERTIES, "connections.max.reauth.ms": "1"})
    async with open_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        await talk.handshake()
        await talk.authenticate()
        await asyncio.sleep(0.01)  # a lifetime of a millisecond is over then
        await talk.handshake()
        assert (await talk.authenticate()).error_code is ErrorCode.none
        await asyncio.sleep(0.01)
        assert not await talk.is_served()


# Requests of strangers


async def test_a_message_of_a_login_may_not_be_large(open_site: Site) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        async with open_talk(listener) as talk:
            assert await talk.say_bytes(struct.pack(">i", login_module.MAX_BYTES + 1)) is None
        async with open_talk(listener) as talk:
            await talk.handshake()
            assert await talk.say(SaslAuthenticateRequest(auth_bytes=bytes(login_module.MAX_BYTES))) is None


async def test_who_does_not_log_in_in_time_is_disconnected(open_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_module, "TIMEOUT_S", 0.1)
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        async with open_talk(listener) as silent:
            assert await silent.say_bytes(b"") is None
        async with open_talk(listener) as slow:
            await slow.handshake()
            assert await slow.say_bytes(b"\0") is None


_FRAMES = st.one_of(
    st.binary(max_size=64).map(make_frame),
    st.binary(max_size=64),
    st.builds(
        lambda key, version, rest: make_frame(struct.pack(">hhi", key, version, 1) + rest),
        st.sampled_from([17, 18, 36, 3, -1]),
        st.integers(-1, 4),
        st.binary(max_size=64),
    ),
    st.sampled_from(PASSWORD_MECHANISMS).map(lambda name: encode_request(SaslHandshakeRequest(mechanism=name), 1, "c")),
    st.one_of(
        st.binary(max_size=64),
        st.text(max_size=30).map(str.encode),
        st.text("nya=,r:pc123", max_size=40).map(str.encode),
        st.text(max_size=20).map(lambda name: f"n,,n={name},r=nonce".encode()),
        st.lists(st.text(max_size=8), min_size=1, max_size=4).map(lambda parts: "\0".join(parts).encode()),
    ).map(lambda message: encode_request(SaslAuthenticateRequest(auth_bytes=message), 1, "c")),
)


@given(frames=st.lists(_FRAMES, max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_strangers_send_nobody_is_admitted_and_nothing_fails(
    open_site: Site, frames: list[bytes], logged: list[Any]
) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        async with open_talk(listener) as talk:
            talk.writer.write(b"".join(frames))
            talk.writer.write_eof()
            async with asyncio.timeout(DEADLINE_S):
                with suppress(OSError):
                    await talk.reader.read()
        assert await open_site.ask(listener, login=login("PLAIN")) == Principal.user(ALICE)
        assert len(open_site.judge.seen) == 1
        open_site.judge.seen.clear()
    assert not [line for line in logged if line["log_level"] == "error"]


async def test_what_is_not_passed_on_ends_the_connection_and_is_said_once(open_site: Site, logged: list[Any]) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        for _ in range(3):
            async with open_talk(listener) as talk:
                await talk.handshake()
                await talk.authenticate()
                assert await talk.say(FIND_COORDINATOR) is None
    lines = [line for line in logged if line["event"] == "connection closed: request is not relayed"]
    assert [line["error"].split(" is")[0] for line in lines] == ["API 10"]


async def test_what_strangers_send_again_and_again_is_said_once(open_site: Site, logged: list[Any]) -> None:
    async with open_site.listen("SASL_PLAINTEXT") as listener:
        for number in range(3):
            async with open_talk(listener) as talk:
                assert await talk.say_bytes(struct.pack(">i", login_module.MAX_BYTES + 1 + number)) is None
    assert [line["kind"] for line in logged if line["log_level"] == "warning"] == ["FrameTooLarge"]
