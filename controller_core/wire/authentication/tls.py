"""The TLS handshake on a connection that is already accepted and counted.

asyncio's TLS servers report a connection after its handshake, so one that never ends would escape all limits. So
connections are accepted without TLS, nothing is read from them (`hold`), and the handshake comes first, with a timeout.
It needs a new stream: the old one would pause the wrong transport if a client sends faster than it is read.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

from controller_core.model.authorization.principal import Caller, Principal
from controller_core.security.distinguished_names import read_subject
from controller_core.security.principal_mapping import NoRuleApplies, PrincipalMapping
from controller_core.security.tls_alerts import send_alerts_on
from controller_core.wire.authentication.secured_listener import SecuredListener

GOODBYE_S: Final = 1.0
"""Seconds for the other side's closing message before the connection is cut."""
_PLAINTEXT: Final = "it does not speak TLS: a client configured for PLAINTEXT, or not a Kafka client"
_WORDS: Final = {
    "HTTP_REQUEST": _PLAINTEXT,
    "WRONG_VERSION_NUMBER": _PLAINTEXT,
    "UNKNOWN_PROTOCOL": _PLAINTEXT,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it sent no certificate, and ssl.client.auth is required",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the server's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not trust the server's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not trust the server's certificate",
    "UNSUPPORTED_PROTOCOL": "it supports none of the enabled TLS versions",
    "NO_SHARED_CIPHER": "it supports none of the server's ciphers",
}
"""Messages by OpenSSL's reasons."""


class HandshakeFailed(Exception):
    """The TLS handshake failed. The message tells the probable reason."""


@dataclass(frozen=True, slots=True)
class TlsStream:
    """The two ends of a TLS stream, and the caller."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    caller: Caller


def hold(writer: asyncio.StreamWriter) -> None:
    """Stop reading from a connection, so that its data waits for the handshake. Call it when the connection is
    accepted."""
    writer.transport.pause_reading()  # type: ignore[attr-defined]


@asynccontextmanager
async def open_tls_stream(
    writer: asyncio.StreamWriter, caller: Caller, secured: SecuredListener, *, timeout_s: float, read_ahead_bytes: int
) -> AsyncIterator[TlsStream]:
    """Open a TLS stream on a held connection, and close it at the end. `caller` is the caller as known before.

    Raises `HandshakeFailed`.
    """
    try:
        settings = await secured.settings()
        assert settings.tls is not None, "only for a listener that has TLS"
        reader, secret = await _handshake(writer, settings.tls, timeout_s, read_ahead_bytes)
        try:
            yield TlsStream(reader, secret, _identify(caller, secret, settings.mapping))
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            await _say_goodbye(secret)
    finally:
        writer.transport.abort()


async def _handshake(
    writer: asyncio.StreamWriter, context: ssl.SSLContext, timeout_s: float, read_ahead_bytes: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=read_ahead_bytes, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    writer.transport.set_write_buffer_limits(
        high=1
    )  # writes must empty the lower buffer before more is taken from the upper one
    try:
        with send_alerts_on(writer.transport):
            transport = await loop.start_tls(
                writer.transport,
                protocol,
                context,
                server_side=True,
                ssl_handshake_timeout=timeout_s,
                ssl_shutdown_timeout=GOODBYE_S,
            )
    except ssl.SSLCertVerificationError as error:
        raise HandshakeFailed(f"its certificate is not accepted: {error.verify_message}") from error
    except ssl.SSLError as error:
        raise HandshakeFailed(_WORDS.get(error.reason or "", f"TLS failed: {error.reason or error}")) from error
    except OSError as error:
        raise HandshakeFailed("it left during its handshake, or took too long") from error
    if transport is None:
        raise HandshakeFailed("it left before its handshake")
    protocol.connection_made(transport)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _identify(caller: Caller, writer: asyncio.StreamWriter, mapping: PrincipalMapping) -> Caller:
    """Return the caller named by its certificate. Without a certificate it remains the same."""
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    if certificate is None:
        return caller
    try:
        principal = Principal.user(mapping.find_name(read_subject(certificate)))
    except (NoRuleApplies, ValueError) as error:
        raise HandshakeFailed(f"its certificate has no usable name: {error}") from error
    return replace(caller, principal=principal, is_authenticated=True)


async def _say_goodbye(writer: asyncio.StreamWriter) -> None:
    """Close the stream with TLS's closing message, and wait a moment for that of the other side."""
    writer.close()
    with suppress(OSError):  # a TimeoutError is one
        async with asyncio.timeout(GOODBYE_S):
            await writer.wait_closed()
