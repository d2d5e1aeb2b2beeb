"""Secured connections: the servers that are accepted, the secrets that they see, the files that are read again, and the
renewal of sessions."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from controller_core.client.errors import AnswerUnreadable, NotAdmittedError, Unreachable
from controller_core.client.transport.request_client import Address, RequestClient
from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from controller_core.model.metadata import Broker, Endpoint
from controller_core.wire.codecs.frames import make_frame
from controller_core.wire.connections.broker_properties import SecuredBrokers
from controller_core.wire.connections.connecting import open_connection
from controller_core.wire.link import BrokerLink, BrokerUnreachable, NotConnected
from controller_core.wire.messages import ErrorCode, UpdateMetadataRequest, UpdateMetadataResponse
from controller_core.wire.tcp_link import tcp_link_factory
from devcluster.clusters.certificates import Authority
from devcluster.clusters.secured_kafka import write_properties_file
from devcluster.stand_ins.identity_provider import IdentityProvider
from replica_broker.replicas.following.tcp_leader_link import tcp_leader_links
from replica_broker.replicas.seams import LeaderEndpoint, LeaderUnreachable
from tests.unit.wire.connections.secured_server import USERS, SecuredServer, listen

DEADLINE_S: Final = 20
REQUEST: Final = UpdateMetadataRequest(
    controller_id=BrokerId(1000), controller_epoch=ControllerEpoch(1), topic_states=(), live_brokers=()
)
ANSWER: Final = UpdateMetadataResponse(error_code=ErrorCode.none)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LOCAL: Final = ("localhost", "IP:127.0.0.1")


class Files:
    """A certificate authority, a file of properties, and the files that it names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self._alice = self.authority.issue("alice").store()
        self.file = folder / "server.properties"
        self.tell()

    def tell(self, mechanism: str = "PLAIN", user: str = "alice", password: str | None = None, **changed: str) -> None:
        """Write a file in which alice logs in with her certificate, except for the given changes."""
        secret = USERS[user] if password is None else password
        properties = {
            "sasl.mechanism.inter.broker.protocol": mechanism,
            "sasl.jaas.config": f'x required username="{user}" password="{secret}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._alice),
        }
        write_properties_file(
            self.file, {**properties, **{name.replace("_", "."): value for name, value in changed.items()}}
        )

    def server_context(self, *names: str, days: int = 2) -> ssl.SSLContext:
        """Return the TLS context of a server that requires certificates of the authority."""
        made = self.authority.issue("broker", *(names or LOCAL), days=days)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.authority.certificate)
        context.load_cert_chain(made.certificate, made.key)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    @asynccontextmanager
    async def link(self, server: SecuredServer, protocol: str, timeout_ms: int = 10_000) -> AsyncIterator[BrokerLink]:
        """Open a link to a broker whose registered listener has this protocol."""
        endpoint = Endpoint(listener="INTERNAL", security_protocol=protocol, host="127.0.0.1", port=server.port)
        factory = tcp_link_factory(
            "INTERNAL", "1000", connect_timeout_ms=timeout_ms, security=SecuredBrokers(self.file).source
        )
        link = factory(Broker(id=BrokerId(4), epoch=BrokerEpoch(1), endpoints=(endpoint,)))
        yield link
        await link.close()

    def client(self, server: SecuredServer, protocol: str) -> RequestClient:
        source = SecuredBrokers(self.file).source("INTERNAL", protocol)
        return RequestClient([Address("127.0.0.1", server.port)], security=source, timeout_ms=DEADLINE_S * 1000)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("certified"))


@pytest.fixture
def files(certified: Files) -> Files:
    certified.tell()
    return certified


async def refusal(link: BrokerLink) -> str:
    """Return the reason why a link sends nothing."""
    with pytest.raises(NotConnected) as refused:
        await link.send(REQUEST)
    assert not any(secret in str(refused.value) for secret in ("secret", "wrong"))
    return str(refused.value)


@pytest.mark.parametrize("mechanism", [None, *MECHANISMS])
@pytest.mark.parametrize("is_encrypted", [False, True], ids=["in the clear", "encrypted"])
async def test_links_and_clients_are_admitted_by_what_the_file_says(
    files: Files, mechanism: str | None, is_encrypted: bool
) -> None:
    files.tell(mechanism or "PLAIN")
    protocol = ("SASL_" if mechanism else "") + ("SSL" if is_encrypted else "PLAINTEXT")
    server = SecuredServer(tls=files.server_context() if is_encrypted else None, mechanism=mechanism)
    async with listen(server), files.link(server, protocol) as link:
        assert [await link.send(REQUEST) for _ in range(2)] == [ANSWER] * 2
        assert (len(server.writers), server.logins) == (1, ["alice"] if mechanism else [])
        assert await files.client(server, protocol).ask_one(REQUEST, UpdateMetadataResponse) == ANSWER
    assert server.shown == (["alice", "alice"] if is_encrypted else [])


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_wrong_password_is_said_without_it_and_the_right_one_is_taken_at_the_next_connection(
    files: Files, mechanism: str
) -> None:
    files.tell(mechanism, password="wrong")
    server = SecuredServer(mechanism=mechanism)
    async with listen(server), files.link(server, "SASL_PLAINTEXT") as link:
        assert "does not admit alice" in await refusal(link)
        with pytest.raises(NotAdmittedError, match="alice"):
            await files.client(server, "SASL_PLAINTEXT").ask_one(REQUEST, UpdateMetadataResponse)
        files.tell(mechanism)
        assert await link.send(REQUEST) == ANSWER


async def test_a_server_that_only_pretends_to_know_the_password_is_asked_nothing(files: Files) -> None:
    files.tell("SCRAM-SHA-512")
    server = SecuredServer(mechanism="SCRAM-SHA-512")
    server.knows_the_password = False
    async with listen(server), files.link(server, "SASL_PLAINTEXT") as link:
        assert "it did not prove that it knows the password of alice" in await refusal(link)
    assert server.asked == 0


@pytest.mark.parametrize(
    ("iterations", "said"), [(1_000, "1000 iterations, fewer than 4096"), (2_000_000, "2000000 iterations")]
)
async def test_a_server_that_asks_for_too_few_iterations_or_too_many_learns_nothing(
    files: Files, iterations: int, said: str
) -> None:
    files.tell("SCRAM-SHA-256")
    server = SecuredServer(mechanism="SCRAM-SHA-256")
    server.iterations = iterations
    async with listen(server), files.link(server, "SASL_PLAINTEXT") as link:
        assert said in await refusal(link)


async def test_a_follower_hears_why_its_leader_does_not_admit_it(files: Files) -> None:
    files.tell(password="wrong")
    server = SecuredServer(mechanism="PLAIN")
    async with listen(server):
        source = SecuredBrokers(files.file).source("INTERNAL", "SASL_PLAINTEXT")
        link = tcp_leader_links(client_id="broker-3", security=source)(
            LeaderEndpoint(BrokerId(1), "127.0.0.1", server.port)
        )
        with pytest.raises(LeaderUnreachable, match=r"no connection to broker 1: .* does not admit alice"):
            await link.list_offsets({}, BrokerId(3))
        await link.close()


async def test_a_mechanism_that_the_server_does_not_take_is_said(files: Files) -> None:
    files.tell("SCRAM-SHA-256")
    server = SecuredServer(mechanism="SCRAM-SHA-512")
    async with listen(server), files.link(server, "SASL_PLAINTEXT") as link:
        assert "does not accept SASL SCRAM-SHA-256; it accepts SCRAM-SHA-512" in await refusal(link)


UNTRUSTED: Final[dict[str, tuple[Callable[[Files], ssl.SSLContext], str]]] = {
    "another authority": (lambda files: Files(files.folder / "other").server_context(), "certificate verify failed"),
    "another name": (lambda files: files.server_context("elsewhere"), "127.0.0.1"),
    "an old certificate": (lambda files: files.server_context(days=-1), "certificate has expired"),
}


@pytest.mark.parametrize("case", UNTRUSTED)
async def test_a_server_that_is_not_trusted_is_told_no_password(files: Files, case: str) -> None:
    context, said = UNTRUSTED[case]
    server = SecuredServer(tls=context(files), mechanism="PLAIN")
    async with listen(server), files.link(server, "SASL_SSL") as link:
        assert said in await refusal(link)
    assert (server.logins, server.asked) == ([], 0)


async def test_the_name_of_a_server_is_not_looked_at_where_the_file_says_so(files: Files) -> None:
    files.tell(ssl_endpoint_identification_algorithm="")
    server = SecuredServer(tls=files.server_context("elsewhere"))
    async with listen(server), files.link(server, "SSL") as link:
        assert await link.send(REQUEST) == ANSWER


async def test_who_shows_no_certificate_where_one_is_wanted_has_sent_nothing(files: Files) -> None:
    files.tell(ssl_keystore_location="")
    server = SecuredServer(tls=files.server_context())
    async with listen(server), files.link(server, "SSL") as link:
        assert "127.0.0.1" in await refusal(link)
        with pytest.raises(BrokerUnreachable):
            await link.reach()
    assert server.asked == 0


async def test_a_certificate_that_changes_is_shown_at_the_next_connection(files: Files) -> None:
    server = SecuredServer(tls=files.server_context())
    async with listen(server), files.link(server, "SSL") as link:
        assert await link.send(REQUEST) == ANSWER
        files.tell(ssl_keystore_location=str(files.authority.issue("renewed").store()))
        assert await link.send(REQUEST) == ANSWER
        assert server.shown == ["alice"]
        server.cut()
        async with asyncio.timeout(DEADLINE_S):
            while server.shown != ["alice", "renewed"]:
                with suppress(BrokerUnreachable):  # a request may be under way when it is cut
                    await link.send(REQUEST)


async def test_a_session_is_renewed_before_the_server_ends_it(files: Files) -> None:
    files.tell("SCRAM-SHA-256")
    server = SecuredServer(mechanism="SCRAM-SHA-256")
    server.lifetime_s = 1.0
    async with listen(server), files.link(server, "SASL_PLAINTEXT") as link, asyncio.timeout(DEADLINE_S):
        while len(server.logins) < 3:
            assert await link.send(REQUEST) == ANSWER
            await asyncio.sleep(0.01)
    assert server.late == 0


async def test_a_session_is_used_for_85_percent_of_its_lifetime(files: Files) -> None:
    server = SecuredServer(mechanism="PLAIN")
    server.lifetime_s = 1000.0
    read_time_s, source = asyncio.get_running_loop().time, SecuredBrokers(files.file).source("ANY", "SASL_PLAINTEXT")
    async with listen(server):
        before_s = read_time_s()
        opened = await open_connection("127.0.0.1", server.port, deadline_s=before_s + DEADLINE_S, security=source)
        assert opened.usable_until_s is not None
        assert before_s + 850 <= opened.usable_until_s <= read_time_s() + 850
        opened.abort()


async def test_a_token_admits_and_a_refused_one_is_said_without_it(files: Files) -> None:
    with IdentityProvider() as provider:
        token = files.folder / "token"
        files.tell(
            "OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=provider.url,
            sasl_jaas_config='x required clientId="admin" clientSecret="a secret" extension_trace="1";',
        )
        good = provider.issue("alice")
        server = SecuredServer(mechanism="OAUTHBEARER")
        server.tokens[good] = "alice"
        async with listen(server), files.link(server, "SASL_PLAINTEXT") as link:
            assert "does not admit admin: Authentication failed" in await refusal(link)
            token.write_text(good)
            files.tell("OAUTHBEARER", sasl_oauthbearer_token_endpoint_url=token.as_uri())
            assert [await link.send(REQUEST) for _ in range(2)] == [ANSWER] * 2
        assert server.logins == ["alice"]


async def test_a_server_is_not_connected_to_before_there_is_a_token(files: Files) -> None:
    with IdentityProvider() as provider:
        files.tell(
            "OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=provider.url,
            sasl_jaas_config='x required clientId="slow" clientSecret="a secret";',
        )
        provider.hold()
        server = SecuredServer(mechanism="OAUTHBEARER")
        async with listen(server):
            async with files.link(server, "SASL_PLAINTEXT", timeout_ms=50) as link:
                assert "needs a token, which slow did not get in time" in await refusal(link)
            assert server.writers == []
            provider.resume()
            async with files.link(server, "SASL_PLAINTEXT") as link:
                assert "needs a token: there is no token for slow" in await refusal(link)
            with pytest.raises(NotAdmittedError, match="check clientId and clientSecret"):
                await files.client(server, "SASL_PLAINTEXT").ask_one(REQUEST, UpdateMetadataResponse)


async def test_a_file_that_is_wrong_costs_the_connection_alone(files: Files) -> None:
    server = SecuredServer(mechanism="PLAIN")
    async with listen(server), files.link(server, "SASL_PLAINTEXT") as link:
        files.file.unlink()
        assert "cannot be read as properties" in await refusal(link)
        files.tell("GSSAPI")
        assert "sasl.mechanism.inter.broker.protocol is GSSAPI, which is not supported" in await refusal(link)
        with pytest.raises(NotAdmittedError, match="GSSAPI"):
            await files.client(server, "SASL_PLAINTEXT").ask_one(REQUEST, UpdateMetadataResponse)
        files.tell()
        assert await link.send(REQUEST) == ANSWER


async def test_a_server_that_says_nothing_to_a_login_is_out_of_reach(files: Files) -> None:
    server = SecuredServer(mechanism="PLAIN")
    server.is_silent = True
    async with listen(server), files.link(server, "SASL_PLAINTEXT", timeout_ms=50) as link:
        assert "cannot be reached" in await refusal(link)


async def test_a_server_that_does_not_speak_kafka_is_out_of_reach(files: Files) -> None:
    server = SecuredServer(mechanism="PLAIN")
    async with listen(server), files.link(server, "SASL_PLAINTEXT") as link:
        for server.says in (b"HTTP/1.1 400 Bad Request\r\n\r\n", make_frame(b"\0\0\0\7"), make_frame(b"\0\0\0\1\1")):
            assert "answer" in await refusal(link)
            with pytest.raises(AnswerUnreadable):
                await files.client(server, "SASL_PLAINTEXT").ask_one(REQUEST, UpdateMetadataResponse)


async def test_a_protocol_that_is_not_the_server_s_is_said(files: Files) -> None:
    server = SecuredServer(tls=files.server_context())
    async with listen(server), files.link(server, "SASL_SSL") as link:
        assert "does not accept SASL PLAIN; it accepts none" in await refusal(link)
    plain = SecuredServer()
    async with listen(plain), files.link(plain, "SSL", timeout_ms=500) as link:
        assert "127.0.0.1" in await refusal(link)
        with pytest.raises((Unreachable, NotAdmittedError)):
            await files.client(plain, "SSL").replace_timeout(500).ask_one(REQUEST, UpdateMetadataResponse)
