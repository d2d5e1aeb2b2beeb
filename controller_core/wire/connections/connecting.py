"""Opens connections that are ready for Kafka's protocol: TCP, then TLS, then SASL, as the server requires.

Errors here occur before any request, and their type tells what to do. With TLS 1.3, a server that rejects a client
certificate says so only after the handshake. So a client without a login asks for the server's versions first.

A server may end a session some time after its login (KIP-368). A connection knows when it needs renewal, and its owner
then opens a new one between two requests. That also picks up new certificates and passwords, unlike a second login on
the same connection.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from kio.schema.api_versions.v0 import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.metadata import format_address
from controller_core.security.oauth.token_login import TokenLogin
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import (
    FrameCut,
    FrameError,
    decode_response,
    encode_request,
    read_correlation_id,
    read_frame,
)
from controller_core.wire.connections.security import (
    Login,
    LoginFailed,
    Security,
    SecuritySource,
    exchange_token,
)
from controller_core.wire.connections.sockets import connect_socket
from controller_core.wire.requests.api_versions import BASIC_SERVER_VERSIONS

_CLIENT_ID: Final = "kontroller"
_CORRELATION_ID: Final = 1
_MAX_ANSWER_BYTES: Final = 1 << 20
_USABLE_SHARE: Final = 0.85
"""The share of a session's lifetime that is used. Kafka's clients renew their logins no earlier."""

Response = TypeVar("Response", bound=ResponsePayload)


class CannotConnect(Exception):
    """There is no connection, and nothing was sent. The subclass tells whether a retry can help."""


class OutOfReach(CannotConnect):
    """Nobody answered, or not in time. Retriable."""


class NotAdmitted(CannotConnect):
    """One side does not accept the other's identity. Somebody has to change the configuration of one of them."""


class NoSuchProtocol(CannotConnect):
    """The bytes are not an answer: the server does not speak Kafka's protocol."""


@dataclass(frozen=True, slots=True)
class Connection:
    """An open connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    usable_until_s: float | None = None
    """The time for a renewal, by the event loop's clock. None means never."""

    @property
    def is_spent(self) -> bool:
        """True if the connection has ended, as brokers close idle ones, or its session is about to end."""
        until_s = self.usable_until_s
        return self.reader.at_eof() or (until_s is not None and asyncio.get_running_loop().time() >= until_s)

    def abort(self) -> None:
        """Close the connection at once, even during a request."""
        self.writer.transport.abort()


async def open_connection(
    host: str, port: int, *, deadline_s: float, security: SecuritySource | None = None
) -> Connection:
    """Open a connection. `deadline_s` is by the event loop's clock. `security` is None for PLAINTEXT. Raises
    `CannotConnect`."""
    server = format_address(host, port)
    try:
        async with asyncio.timeout_at(deadline_s):
            wanted = await _read(security, server)
    except TimeoutError as error:
        raise OutOfReach(f"the security settings for {server} were not read in time") from error
    identity = await _identify(wanted.login, server, deadline_s)
    try:
        async with asyncio.timeout_at(deadline_s):
            reader, writer = await _connect(host, port, wanted, server)
            async with _abort_unless_done(writer):
                usable_s = await _introduce(_Dialogue(server, reader, writer), wanted, identity)
    except TimeoutError as error:
        raise OutOfReach(f"{server} cannot be reached: it did not answer in time") from error
    return Connection(reader, writer, usable_s)


async def _read(security: SecuritySource | None, server: str) -> Security:
    if security is None:
        return Security()
    try:
        return await asyncio.to_thread(security)
    except InvalidProperties as error:
        raise NotAdmitted(f"the security settings for {server} cannot be used: {error}") from error


@dataclass(frozen=True, slots=True)
class _Identity:
    """A login that is ready: its token, if it needs one, is there."""

    mechanism: str
    name: str
    messages: Generator[bytes, bytes, None]
    note_refusal: Callable[[], None] = lambda: None


async def _identify(login: Login | TokenLogin | None, server: str, deadline_s: float) -> _Identity | None:
    if login is None:
        return None
    if isinstance(login, Login):
        return _Identity(login.mechanism, login.username, login.messages())
    # Only logins with tokens need these libraries, which take time to import.
    from controller_core.security.oauth.access_tokens import TOKENS, NoToken

    try:
        async with asyncio.timeout_at(deadline_s):
            token = await TOKENS.find_token(login)
    except TimeoutError as error:
        raise OutOfReach(f"{server} needs a token, which {login.username} did not get in time") from error
    except NoToken as error:
        kind = OutOfReach if error.is_transient else NotAdmitted
        raise kind(f"{server} needs a token: {error}") from error
    messages = exchange_token(token, login.extensions)
    return _Identity(login.mechanism, login.username, messages, lambda: TOKENS.forget_refused(login))


async def _connect(
    host: str, port: int, security: Security, server: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(
            sock=await connect_socket(host, port),
            ssl=security.tls,
            server_hostname=host if security.tls is not None else None,
        )
    except ssl.SSLEOFError as error:  # the server may be shutting down
        raise OutOfReach(f"{server} closed the connection in its TLS handshake") from error
    except ssl.SSLError as error:
        raise NotAdmitted(f"{server} cannot be reached by TLS, see ssl.truststore.*: {error}") from error
    except (OSError, UnicodeError) as error:
        raise OutOfReach(f"{server} cannot be reached: {str(error) or type(error).__name__}") from error


@asynccontextmanager
async def _abort_unless_done(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    except BaseException:
        writer.transport.abort()
        raise


@dataclass(frozen=True, slots=True)
class _Dialogue:
    """The requests before the connection is ready."""

    server: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def answer_to(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """Return the answer to a request. Raises `CannotConnect`."""
        try:
            self.writer.write(encode_request(request, _CORRELATION_ID, _CLIENT_ID))
            await self.writer.drain()
            content = await read_frame(self.reader, _MAX_ANSWER_BYTES)
        except ssl.SSLError as error:
            raise NotAdmitted(f"{self.server} ended the connection by TLS, see ssl.keystore.*: {error}") from error
        except (OSError, FrameCut) as error:
            raise OutOfReach(f"{self.server} did not answer the login: {error}") from error
        except FrameError as error:
            raise NoSuchProtocol(f"{self.server} does not answer by Kafka's protocol: {error}") from error
        if content is None:
            raise OutOfReach(f"{self.server} closed the connection and did not answer the login")
        return self._decode(content, response_type)

    def _decode(self, content: bytes, response_type: type[Response]) -> Response:
        try:
            if read_correlation_id(content) != _CORRELATION_ID:
                raise NoSuchProtocol(f"{self.server} answered another request")
            return decode_response(response_type, content)
        except (FrameError, Undecodable) as error:
            raise NoSuchProtocol(
                f"{self.server} sent an answer that is not a {response_type.__name__}: {error}"
            ) from error


async def _introduce(dialogue: _Dialogue, security: Security, identity: _Identity | None) -> float | None:
    """Make the server accept the client. Return the time for a renewal by the event loop's clock, or None."""
    if identity is not None:
        began_s = asyncio.get_running_loop().time()
        lifetime_s = await _log_in(dialogue, identity)
        return began_s + lifetime_s * _USABLE_SHARE if lifetime_s > 0 else None
    if security.tls is not None:
        await dialogue.answer_to(BASIC_SERVER_VERSIONS, ApiVersionsResponse)
    return None


async def _log_in(dialogue: _Dialogue, login: _Identity) -> float:
    """Log in by SASL (KIP-43, KIP-152). Return the lifetime of the session in seconds; 0 means unlimited (KIP-368)."""
    handshake = await dialogue.answer_to(SaslHandshakeRequest(mechanism=login.mechanism), SaslHandshakeResponse)
    if handshake.error_code is not ErrorCode.none:
        offered = ", ".join(handshake.mechanisms) or "none"
        raise NotAdmitted(f"{dialogue.server} does not accept SASL {login.mechanism}; it accepts {offered}")
    message: bytes | None = next(login.messages)
    lifetime_s = 0.0
    while message is not None:
        request = SaslAuthenticateRequest(auth_bytes=message)
        answer = await dialogue.answer_to(request, SaslAuthenticateResponse)
        if answer.error_code is not ErrorCode.none:
            login.note_refusal()
            raise NotAdmitted(f"{dialogue.server} does not admit {login.name}: {answer.error_message}")
        lifetime_s = answer.session_lifetime.total_seconds()
        try:
            message = await asyncio.to_thread(_next_message, login.messages, answer.auth_bytes)
        except LoginFailed as error:
            raise NotAdmitted(f"{dialogue.server} did not complete the login of {login.name}: {error}") from error
    return lifetime_s


def _next_message(exchange: Generator[bytes, bytes, None], said: bytes) -> bytes | None:
    """Return the next message, or None after the last one."""
    try:
        return exchange.send(said)
    except StopIteration:
        return None
