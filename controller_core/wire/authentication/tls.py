"""The handshake of TLS on a connection that was accepted and counted already.

asyncio's own servers tell of a connection when its handshake is done: one that never ends would be nobody's, and counted by
no limit. So connections are accepted without TLS, nothing is read of them (`hold`), and the handshake is the first that is
done with one, within a time. The stream is then made anew: the old one would hold up the wrong transport where a client
sends faster than it is read.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

from controller_core.model.authorization.principal import Caller, Principal
from controller_core.security.distinguished_names import subject_of
from controller_core.security.principal_mapping import NoRuleApplies, PrincipalMapping
from controller_core.security.tls_alerts import alerting
from controller_core.wire.authentication.secured_listener import SecuredListener

GOODBYE_S: Final = 1.0
"""So long the other side may take to say goodbye, before the connection is cut."""
_PLAINTEXT: Final = "it does not speak TLS: a client that is set up for PLAINTEXT, or no client of Kafka"
_WORDS: Final = {
    "HTTP_REQUEST": _PLAINTEXT,
    "WRONG_VERSION_NUMBER": _PLAINTEXT,
    "UNKNOWN_PROTOCOL": _PLAINTEXT,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, and ssl.client.auth is required",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the certificate that is shown to it",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not trust the certificate that is shown to it",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not trust the certificate that is shown to it",
    "UNSUPPORTED_PROTOCOL": "it has no version of TLS that is served",
    "NO_SHARED_CIPHER": "it has no cipher that is served",
}
"""By OpenSSL's reasons."""


class HandshakeFailed(Exception):
    """There is no connection by TLS; the message says what the other side seems to be."""


@dataclass(frozen=True, slots=True)
class TlsStream:
    """Both ends of what is read and written by TLS, and who is there."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    caller: Caller


def hold(writer: asyncio.StreamWriter) -> None:
    """Keeps what arrives on a connection for the handshake. To be called in the moment that it is accepted."""
    writer.transport.pause_reading()  # type: ignore[attr-defined]


@asynccontextmanager
async def by_tls(
    writer: asyncio.StreamWriter, caller: Caller, secured: SecuredListener, *, timeout_s: float, read_ahead_bytes: int
) -> AsyncIterator[TlsStream]:
    """A stream on a connection that is held, which is closed at the end. `caller`: what is known of him before.

    Raises `HandshakeFailed`."""
    try:
        settings = await secured.settings()
        assert settings.tls is not None, "only of a listener that has TLS"
        reader, secret = await _handshake(writer, settings.tls, timeout_s, read_ahead_bytes)
        try:
            yield TlsStream(reader, secret, _named(caller, secret, settings.mapping))
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
    writer.transport.set_write_buffer_limits(high=1)  # what is below is empty before more is taken from above
    try:
        with alerting(writer.transport):
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
        raise HandshakeFailed("it left in the middle of its handshake, or took too long") from error
    if transport is None:
        raise HandshakeFailed("it left before its handshake")
    protocol.connection_made(transport)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _named(caller: Caller, writer: asyncio.StreamWriter, mapping: PrincipalMapping) -> Caller:
    """Who has shown a certificate; where none was asked for or shown, he is who he was."""
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    if certificate is None:
        return caller
    try:
        principal = Principal.user(mapping.name_of(subject_of(certificate)))
    except (NoRuleApplies, ValueError) as error:
        raise HandshakeFailed(f"its certificate names nobody: {error}") from error
    return replace(caller, principal=principal, is_authenticated=True)


async def _say_goodbye(writer: asyncio.StreamWriter) -> None:
    """As TLS has it, and waits a moment for the other side's."""
    writer.close()
    with suppress(OSError):  # a TimeoutError is one
        async with asyncio.timeout(GOODBYE_S):
            await writer.wait_closed()
