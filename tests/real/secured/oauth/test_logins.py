"""Brokers, our controller and clients that log in with tokens of one identity provider (OAUTHBEARER).

Everybody has Kafka's own properties: client credentials at a token endpoint, and a file of keys (JWKS).
"""

import asyncio
import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from typing import Final

import jwt
import pytest
from confluent_kafka.admin import AdminClient as LibrdkafkaAdmin
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import Refused
from controller_core.security.oauth.messages import GIVE_UP, write_first_message
from controller_core.security.oauth.token_login import MODULE
from controller_core.wire.codecs.frames import decode_response, encode_request
from devcluster.clients import tools
from devcluster.clients.requests import answer_to, open_connection
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import write_properties_file
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.stand_ins.identity_provider import AUDIENCE, ISSUER, IdentityProvider, Key
from devcluster.waiting.vocabulary import wait_until_in_sync

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

LISTENERS: Final = ListenerNames(
    inter_broker="INTERNAL", clients="CLIENT", protocols=dict.fromkeys(("INTERNAL", "CLIENT"), "SASL_PLAINTEXT")
)
CLIENTS: Final = {each: f"{each} secret" for each in ("broker", "controller", "alice", "bob")}
"""The secrets by client. Brokers and the controller are super users, and alice may create topics."""
HANDLERS: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"
SESSION_S: Final = 6
"""The controller has to renew a login in the last 15 % of this time, on a busy machine as well."""


class Site:
    """Brokers, our controller, and the provider of all tokens."""

    def __init__(self, folder: RunFolder, zookeeper: ZooKeeper, provider: IdentityProvider) -> None:
        self.provider = provider
        self.files = folder.data("oauth-files")
        self._keys = self.files / "jwks.json"
        self._keys.write_bytes(provider.jwks())
        self.kafka = KafkaCluster(
            folder,
            zookeeper,
            brokers=2,
            chroot="/oauth",
            listeners=LISTENERS,
            properties={**self.server_properties("broker"), "connections.max.reauth.ms": SESSION_S * 1000},
        )
        file = write_properties_file(
            self.files / "controller.properties",
            {
                **self.server_properties("controller"),
                "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT,CLIENT:SASL_PLAINTEXT",
                "inter.broker.listener.name": "INTERNAL",
                "zookeeper.connect": self.kafka.zookeeper_connect,
            },
        )
        self.controller = ControllerProcess(
            folder,
            self.kafka.zookeeper_connect,
            name="oauth-controller",
            settings={"properties": str(file)},
            listeners=LISTENERS,
        )

    def server_properties(self, client: str) -> dict[str, str]:
        """Return the properties of a broker or a controller that logs in as this client of the provider."""
        own = {
            "jaas.config": f'{MODULE} required clientId="{client}" clientSecret="{CLIENTS[client]}" scope="kafka";',
            "login.callback.handler.class": f"{HANDLERS}LoginCallbackHandler",
            "server.callback.handler.class": f"{HANDLERS}ValidatorCallbackHandler",
        }
        return {
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self.provider.url,
            "sasl.oauthbearer.jwks.endpoint.url": self._keys.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:broker;User:controller",
            **{
                f"listener.name.{name.lower()}.oauthbearer.sasl.{property_}": value
                for name in LISTENERS.names
                for property_, value in own.items()
            },
        }

    def client_properties(self, client: str) -> dict[str, str]:
        """Return the properties of Kafka's clients."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": f"{HANDLERS}LoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": self.provider.url,
            "sasl.jaas.config": f'{MODULE} required clientId="{client}" clientSecret="{CLIENTS[client]}";',
        }

    def client_file(self, client: str) -> str:
        return str(write_properties_file(self.files / f"{client}.properties", self.client_properties(client)))

    def admin(self, client: str, bootstrap: str | None = None) -> AdminClient:
        servers = bootstrap or f"{self.kafka.bootstrap_servers},{self.controller.address}"
        return AdminClient({"bootstrap.servers": servers, **self.client_properties(client)})

    def allow_alice(self) -> None:
        """Allow alice to create topics and to see them. Call it before the brokers start."""
        entries = [
            {"principal": "User:alice", "permissionType": "Allow", "operation": operation, "host": "*"}
            for operation in ("Create", "Describe", "DescribeConfigs")
        ]
        data = json.dumps({"version": 1, "acls": entries}).encode()
        with open_client(self.kafka.zookeeper_connect) as client:
            client.create("/kafka-acl/Topic/*", data, makepath=True)

    def isr(self, topic: str, partition: int) -> list[int]:
        """Return the ISR in ZooKeeper."""
        with open_client(self.kafka.zookeeper_connect) as client:
            state, _ = client.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
        return sorted(json.loads(state)["isr"])

    @property
    def log(self) -> str:
        return self.controller.process.log_path.read_text()


@pytest.fixture(scope="module")
def site(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Site]:
    with IdentityProvider(clients=dict(CLIENTS)) as provider:
        made = Site(servers_folder, zookeeper, provider)
        with zookeeper.client() as client:
            client.ensure_path("/oauth")
        made.allow_alice()
        with made.kafka, made.controller:
            made.kafka.start()
            yield made
            assert not any(secret in made.log for secret in (*CLIENTS.values(), "eyJ"))


def test_kafkas_own_tool_logs_in_at_the_controller_and_creates_a_topic(site: Site) -> None:
    config = ("--command-config", site.client_file("alice"))
    asked = ("--bootstrap-server", site.controller.address)
    made = tools.run_tool(
        tools.TOPICS, *asked, *config, "--create", "--topic", "by-java", "--replica-assignment", "1:2"
    )
    assert made.returncode == 0, made.stdout + made.stderr
    wait_until_in_sync(site, "by-java", 1, 2)
    described = tools.run_tool(tools.TOPICS, *asked, *config, "--describe", "--topic", "by-java")
    assert "Replicas: 1,2" in described.stdout, described.stdout + described.stderr


def test_a_tool_with_a_wrong_secret_gets_no_token(site: Site) -> None:
    wrong = {name: value.replace("alice secret", "wrong") for name, value in site.client_properties("alice").items()}
    file = write_properties_file(site.files / "wrong.properties", wrong)
    done = run_command("topics", "list", "--bootstrap-server", site.controller.address, "--command-config", str(file))
    assert done.returncode != 0
    assert "the error invalid_client: check clientId and clientSecret" in " ".join(done.stderr.split())
    assert "wrong" not in done.stderr.replace("wrong.properties", "")


def test_our_own_command_logs_in_at_brokers_and_at_the_controller(site: Site) -> None:
    servers = f"{site.kafka.bootstrap_servers},{site.controller.address}"
    config = ("--command-config", site.client_file("alice"))
    made = run_command("topics", "create", "--topic", "by-command", "--bootstrap-server", servers, *config)
    assert made.returncode == 0, made.stdout + made.stderr


def test_librdkafka_logs_in_at_the_controller(site: Site) -> None:
    admin = LibrdkafkaAdmin({
        "bootstrap.servers": site.controller.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": site.provider.url,
        "sasl.oauthbearer.client.id": "alice",
        "sasl.oauthbearer.client.secret": CLIENTS["alice"],
    })  # fmt: skip
    assert set(admin.list_topics(timeout=60).brokers) >= {1, 2}


async def test_the_name_in_a_token_has_the_rights_of_its_acls(site: Site) -> None:
    with pytest.raises(Refused) as refused:
        await site.admin("bob").create_topic("of-bob", 1, 2)
    assert refused.value.code is ErrorCode.topic_authorization_failed
    await site.admin("alice").create_topic("of-alice", 1, 2)


async def test_the_controller_leads_brokers_and_renews_its_sessions(site: Site) -> None:
    admin, loop = site.admin("alice"), asyncio.get_running_loop()
    until_s, number = loop.time() + 2.5 * SESSION_S, 0
    while loop.time() < until_s:
        number += 1
        await admin.create_topic(f"session-{number}", 1, 2)
        await asyncio.to_thread(wait_until_in_sync, site, f"session-{number}", 1, 2)
    assert "not delivered" not in site.log


def test_a_controller_without_a_provider_uses_the_token_that_it_has(site: Site) -> None:
    secret = site.provider.clients.pop("controller")
    try:
        site.kafka.broker(1).kill()
        site.kafka.broker(1).start()
        made = tools.run_tool(
            tools.TOPICS,
            *("--bootstrap-server", site.controller.address, "--command-config", site.client_file("alice")),
            *("--create", "--topic", "without-a-provider", "--replica-assignment", "1:2"),
        )
        assert made.returncode == 0, made.stdout + made.stderr
        wait_until_in_sync(site, "without-a-provider", 1, 2)
    finally:
        site.provider.clients["controller"] = secret


def sign_with_the_public_key(provider: IdentityProvider) -> str:
    """Return a token that takes the public key for a shared secret."""
    public = provider.keys[-1].private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header = json.dumps({"alg": "HS256", "kid": provider.keys[-1].kid}).encode()
    said = f"{_encode(header)}.{provider.issue('alice').split('.')[1]}"
    return f"{said}.{_encode(hmac.digest(public, said.encode(), 'sha256'))}"


def leave_unsigned(provider: IdentityProvider) -> str:
    claims = jwt.decode(provider.issue("alice"), options={"verify_signature": False})
    return jwt.encode(claims, "", algorithm="none", headers={"kid": provider.keys[-1].kid})


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


NOW_S: Final = int(time.time())
TOKENS: Final[dict[str, Callable[[IdentityProvider], str]]] = {
    "good": lambda by: by.issue("alice"),
    "for several audiences": lambda by: by.issue("alice", aud=["mail", AUDIENCE]),
    "with scopes": lambda by: by.issue("alice", scope=["kafka", "mail"]),
    "expired": lambda by: by.issue("alice", exp=NOW_S - 120),
    "without expiry": lambda by: by.issue("alice", exp=None),
    "without a time of issue": lambda by: by.issue("alice", iat=None),
    "not valid yet": lambda by: by.issue("alice", nbf=NOW_S + 7200),
    "for another audience": lambda by: by.issue("alice", aud="mail"),
    "for no audience": lambda by: by.issue("alice", aud=None),
    "of another issuer": lambda by: by.issue("alice", iss="https://other.example"),
    "without a name": lambda by: by.issue(" "),
    "by an unknown key": lambda by: by.issue("alice", key=Key("unknown")),
    "by a key of the same name": lambda by: by.issue("alice", key=Key(by.keys[-1].kid)),
    "unsigned": leave_unsigned,
    "signed with the public key": sign_with_the_public_key,
}


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_has_the_same_answers_from_brokers_and_the_controller(site: Site, kind: str) -> None:
    token = TOKENS[kind](site.provider)
    of_broker, of_controller = (present(token, port) for port in (site.kafka.broker(1).port, site.controller.port))
    assert of_controller == of_broker
    is_good = kind in ("good", "for several audiences", "with scopes")
    assert of_controller == [(ErrorCode.none, "", b"")] if is_good else len(of_controller) == 2


def present(token: str, port: int) -> list[tuple[ErrorCode, str, bytes]]:
    """Log in with a token, and return the server's answers."""
    with open_connection(("127.0.0.1", port)) as connection:
        handshake = encode_request(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1, "test")
        assert decode_response(SaslHandshakeResponse, answer_to(connection, handshake)).error_code is ErrorCode.none
        answers = []
        for message in (write_first_message(token), GIVE_UP):
            asked = encode_request(SaslAuthenticateRequest(auth_bytes=message), 2, "test")
            answer = decode_response(SaslAuthenticateResponse, answer_to(connection, asked))
            answers.append((answer.error_code, answer.error_message or "", answer.auth_bytes))
            if not answer.auth_bytes:
                break
        return answers
