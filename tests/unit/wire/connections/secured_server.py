"""A server in this process that requires TLS, or a login, or both, and answers accepted clients like a broker."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse
from kio.static.primitive import i64Timedelta
from kio.static.protocol import ResponsePayload

from controller_core.security.oauth.messages import read_first_message
from controller_core.wire.authentication.exchanges import InvalidLogin, ScramExchange
from controller_core.wire.codecs.frames import (
    FrameError,
    decode_request,
    encode_response,
    read_frame,
    read_request_head,
)
from controller_core.wire.messages import UpdateMetadataResponse
from devcluster.stand_ins.told_versions import make_versions_response
from tests.unit.wire.authentication.secured_site import Users, make_stored

HANDSHAKE, AUTHENTICATE, API_VERSIONS = 17, 36, 18
USERS: Final = {"alice": "alice secret", "bob": "bob secret"}


class SecuredServer:
    """A server that stops answering if it `is_silent`, and sends `says` instead of any answer."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, mechanism: str | None = None) -> None:
        self.tls = tls
        self.mechanism = mechanism
        self.passwords = dict(USERS)
        self.tokens: dict[str, str] = {}
        """The users by token."""
        self.lifetime_s = 0.0
        self.is_silent = False
        self.says: bytes | None = None
        self.knows_the_password = True
        self.iterations = 4096
        self.port = 0
        self.logins: list[str] = []
        self.shown: list[str] = []
        """The common names of the certificates that clients had, connection by connection."""
        self.asked = 0
        self.late = 0
        """Requests after the end of a session: what brokers close a connection for."""
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve until the client leaves or the connection breaks."""
        self.writers.append(writer)
        with suppress(OSError, FrameError):
            await self._serve(reader, writer)
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.tls is not None:
            self.shown.append(_common_name(writer.get_extra_info("peercert")))
        client = _Client(self)
        while (content := await read_frame(reader)) is not None:
            if self.is_silent:
                continue
            answer = client.answer(content)
            if answer is None:
                break
            correlation_id = read_request_head(content).correlation_id
            writer.write(encode_response(answer, correlation_id) if self.says is None else self.says)

    def cut(self) -> None:
        """Closes all connections."""
        for writer in self.writers:
            writer.close()
        self.writers.clear()


class _Client:
    """One connection, from the server's side."""

    def __init__(self, server: SecuredServer) -> None:
        self._server = server
        kind = {"PLAIN": _Plain, "OAUTHBEARER": _Bearer}.get(server.mechanism or "", _Scram)
        self._login: Any = kind(server)
        self._until_s: float | None = None

    def answer(self, content: bytes) -> ResponsePayload | None:
        match read_request_head(content).api_key:
            case 18:
                return make_versions_response()
            case 17:
                return self._handshake(decode_request(SaslHandshakeRequest, content).mechanism)
            case 36:
                return self._authenticate(decode_request(SaslAuthenticateRequest, content).auth_bytes)
        return self._answer()

    def _handshake(self, mechanism: str) -> SaslHandshakeResponse:
        own = self._server.mechanism
        error = ErrorCode.none if mechanism == own else ErrorCode.unsupported_sasl_mechanism
        return SaslHandshakeResponse(error_code=error, mechanisms=(own,) if own else ())

    def _authenticate(self, said: bytes) -> SaslAuthenticateResponse:
        answer = self._login.answer(said)
        if answer is None:
            return _make_authenticate_response(
                ErrorCode.sasl_authentication_failed, "Authentication failed: Invalid credentials", b""
            )
        lifetime_s = 0.0
        if self._login.user is not None:
            self._server.logins.append(self._login.user)
            lifetime_s = self._server.lifetime_s
            self._until_s = asyncio.get_running_loop().time() + (lifetime_s or 3600)
        return _make_authenticate_response(ErrorCode.none, None, answer, lifetime_s)

    def _answer(self) -> ResponsePayload | None:
        if self._server.mechanism is not None:
            if self._until_s is None:
                return None
            if asyncio.get_running_loop().time() > self._until_s:
                self._server.late += 1
                return None
        self._server.asked += 1
        return UpdateMetadataResponse(error_code=ErrorCode.none)


class _Plain:
    def __init__(self, server: SecuredServer) -> None:
        self._server = server
        self.user: str | None = None

    def answer(self, said: bytes) -> bytes | None:
        _, user, password = said.decode().split("\0")
        if self._server.passwords.get(user) != password:
            return None
        self.user = user
        return b""


class _Bearer:
    def __init__(self, server: SecuredServer) -> None:
        self._server = server
        self.user: str | None = None

    def answer(self, said: bytes) -> bytes | None:
        message = read_first_message(said)
        if message is None:
            return None
        self.user = self._server.tokens.get(message.token)
        return b'{"status":"invalid_token"}' if self.user is None else b""


class _Scram:
    def __init__(self, server: SecuredServer) -> None:
        self._server = server
        self._exchange: ScramExchange | None = None

    @property
    def user(self) -> str | None:
        return None if self._exchange is None else self._exchange.user

    def answer(self, said: bytes) -> bytes | None:
        if self._exchange is None:
            mechanism = self._server.mechanism or "SCRAM-SHA-256"
            known = {(mechanism, user): make_stored(mechanism, word) for user, word in self._server.passwords.items()}
            self._exchange = ScramExchange(mechanism, Users(known=known))
            first = _end_at_once(self._exchange.answer(said))
            return first.replace(b"i=4096", b"i=%d" % self._server.iterations)
        try:
            final = _end_at_once(self._exchange.answer(said))
        except InvalidLogin:
            return None
        return final if self._server.knows_the_password else b"v=AAAA"


def _end_at_once(answer: Coroutine[Any, Any, bytes]) -> bytes:
    """Return the result of a coroutine that waits for nothing."""
    try:
        answer.send(None)
    except StopIteration as ended:
        return bytes(ended.value)
    raise AssertionError("it waits")


def _make_authenticate_response(
    code: ErrorCode, message: str | None, said: bytes, lifetime_s: float = 0.0
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=code,
        error_message=message,
        auth_bytes=said,
        session_lifetime=i64Timedelta.parse(timedelta(seconds=lifetime_s)),
    )


def _common_name(certificate: Mapping[str, Any] | None) -> str:
    parts = [part for group in (certificate or {}).get("subject", ()) for part in group]
    return str(dict(parts).get("commonName", ""))


@asynccontextmanager
async def listen(server: SecuredServer) -> AsyncIterator[SecuredServer]:
    """The server on a port of its own."""
    listens = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=server.tls)
    server.port = listens.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listens.close()
        server.cut()
