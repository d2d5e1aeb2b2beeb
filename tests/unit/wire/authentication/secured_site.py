"""A listener with certificates and users, and clients of it, over real sockets."""

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kio.schema.api_versions.v3 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload
from prometheus_client import CollectorRegistry

from controller_core.model.authorization.principal import Caller, Principal
from controller_core.model.scram import (
    SCRAM_MECHANISMS,
    CredentialsOutOfReach,
    SaltedPassword,
    StoredCredential,
    make_credential,
    read_credential,
)
from controller_core.security.oauth.token_login import TokenLogin
from controller_core.wire.authentication.secured_listener import SecuredListener
from controller_core.wire.codecs.frames import encode_request
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.connections.connecting import open_connection
from controller_core.wire.connections.security import Login, Security
from controller_core.wire.limits.gate import Gate
from controller_core.wire.listener.listener import Acceptor, Api, Listener, ListenerLimits, LocalApi, OwnedApi
from controller_core.wire.listener.refusals import Refusals
from controller_core.wire.messages import NO_THROTTLE, ControlledShutdownRequest, ControlledShutdownResponse
from devcluster.clusters.certificates import Authority, CertificateFiles

DEADLINE_S: Final = 10
PASSWORD: Final = "a secret"
ALICE: Final = "alice"


def make_stored(
    mechanism_name: str, password: str = PASSWORD, *, salt: bytes = b"salt for a test", iterations: int = 4096
) -> StoredCredential:
    """Return the credential as Kafka stores it."""
    (mechanism,) = (each for each in SCRAM_MECHANISMS.values() if each.name == mechanism_name)
    salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)
    return read_credential(make_credential(mechanism, SaltedPassword(salt=salt, salted=salted, iterations=iterations)))


@dataclass
class Users:
    """The users that log in by SCRAM."""

    known: dict[tuple[str, str], StoredCredential] = field(default_factory=dict)
    is_out_of_reach: bool = False
    asked: list[str] = field(default_factory=list)

    async def find_credential(self, mechanism: str, user: str) -> StoredCredential | None:
        self.asked.append(user)
        if self.is_out_of_reach:
            raise CredentialsOutOfReach("ZooKeeper is gone")
        return self.known.get((mechanism, user))


@dataclass
class Judge(Gate):
    """Allows everything, or nothing with a refusal, and remembers the callers."""

    seen: list[Caller] = field(default_factory=list)
    refusal: ErrorCode | None = None

    def is_broker(self, caller: Caller) -> bool:
        return False

    def is_administrator(self, caller: Caller) -> bool:
        return False

    async def why_not(self, api_key: int, caller: Caller) -> ErrorCode | None:
        self.seen.append(caller)
        return self.refusal


async def _agree(_: ControlledShutdownRequest) -> ControlledShutdownResponse:
    return ControlledShutdownResponse(error_code=ErrorCode.none, remaining_partitions=())


async def _versions(_: RequestPayload) -> ResponsePayload:
    return ApiVersionsResponse(error_code=ErrorCode.none, api_keys=(), throttle_time=NO_THROTTLE)


class Site:
    """The settings of a listener named SECURE, and its clients."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.folder = folder
        self.authority = authority
        self.file = folder / "server.properties"
        self.users = Users()
        self.judge = Judge()
        self.registry = CollectorRegistry()
        self.refusals = Refusals(self.registry)

    def write(self, properties: Mapping[str, str]) -> None:
        """Replace the properties atomically, like a mounted Secret."""
        new = self.file.with_suffix(".new")
        new.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        new.replace(self.file)

    def tls(self, shown: CertificateFiles) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(shown.store()),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
        }

    def make_secured(self, protocol: str) -> SecuredListener:
        return SecuredListener(self.file, "SECURE", protocol, self.users)

    @asynccontextmanager
    async def listen(self, protocol: str, *apis: Api, **limits: int) -> AsyncIterator[Listener]:
        """Run a listener with ApiVersions and with ControlledShutdown, which agrees to all requests."""
        acceptor = Acceptor(
            host="127.0.0.1",
            port=0,
            apis=[
                OwnedApi(Versions(ControlledShutdownRequest), _agree),
                LocalApi(versions=Versions(ApiVersionsRequest, oldest=0), answer=_versions),
                *apis,
            ],
            relay_targets=None,
            secured=self.make_secured(protocol),
        )
        listener = Listener([acceptor], limits=ListenerLimits(**limits), gate=self.judge, refusals=self.refusals)
        await listener.start()
        try:
            yield listener
        finally:
            await listener.close()

    def client_tls(self, shown: CertificateFiles | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority.certificate)
        if shown is not None:
            context.load_cert_chain(shown.certificate, shown.key)
        return context

    async def ask(
        self, listener: Listener, *, tls: ssl.SSLContext | None = None, login: Login | TokenLogin | None = None
    ) -> Principal:
        """Connect, request a controlled shutdown, and return the principal that the listener saw."""
        connection = await open_connection(
            "localhost" if tls else "127.0.0.1",
            listener.port,
            deadline_s=asyncio.get_running_loop().time() + DEADLINE_S,
            security=lambda: Security(tls=tls, login=login),
        )
        try:
            connection.writer.write(SHUTDOWN)
            async with asyncio.timeout(DEADLINE_S):
                await connection.reader.readexactly(4)
        finally:
            connection.abort()
        return self.judge.seen[-1].principal


SHUTDOWN: Final = encode_request(ControlledShutdownRequest(broker_id=1, broker_epoch=2), 7, "1")  # type: ignore[arg-type]
