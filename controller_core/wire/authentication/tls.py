"""The TLS handshake on a connection that is already accepted and counted.

asyncio's TLS servers report a connection after its handshake, so one that never ends would escape all limits. Here the
handshake of an accepted socket has a timeout, and its memory is counted (`limits.ledger`).
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from controller_core.model.authorization.principal import Caller, Principal
from controller_core.security.distinguished_names import read_subject
from controller_core.security.principal_mapping import NoRuleApplies, PrincipalMapping
from controller_core.wire.authentication.secured_listener import SecuredListener
from controller_core.wire.connections.small_reads import READ_AHEAD_BYTES
from controller_core.wire.connections.tls_transport import TlsTransport

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


class HandshakeCut(HandshakeFailed):
    """The client left during its handshake, or took too long."""


@dataclass(frozen=True, slots=True)
class TlsStream:
    """The two ends of a TLS stream, and the caller as known after the handshake."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    caller: Caller


@asynccontextmanager
async def open_tls_stream(
    accepted: socket.socket, caller: Caller, secured: SecuredListener, *, timeout_s: float
) -> AsyncIterator[TlsStream]:
    """Open a TLS stream on an accepted socket, and close it at the end. `caller` is the caller as known before.

    Raises `HandshakeFailed`.
    """
    try:
        settings = await secured.settings()
    except BaseException:
        accepted.close()
        raise
    assert settings.tls is not None, "only for a listener that has TLS"
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_AHEAD_BYTES, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    tls = TlsTransport(settings.tls, protocol)
    await loop.connect_accepted_socket(lambda: tls, accepted)
    try:
        await _shake_hands(tls, timeout_s)
        writer = asyncio.StreamWriter(tls, protocol, reader, loop)
        # If a login names the caller, the certificate before it may have any subject, as with Kafka.
        if settings.mapping is not None:
            caller = _identify(caller, writer, settings.mapping)
        yield TlsStream(reader, writer, caller)
    except asyncio.CancelledError:
        tls.abort()
        raise
    finally:
        await _say_goodbye(tls)


async def _shake_hands(tls: TlsTransport, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await tls.shake_hands()
    except ssl.SSLCertVerificationError as error:
        raise HandshakeFailed(f"its certificate is not accepted: {error.verify_message}") from error
    except ssl.SSLError as error:
        raise HandshakeFailed(_WORDS.get(error.reason or "", f"TLS failed: {error.reason or error}")) from error
    except OSError as error:  # a TimeoutError is one
        raise HandshakeCut("it left during its handshake, or took too long") from error


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


async def _say_goodbye(tls: TlsTransport) -> None:
    """Close the stream with TLS's closing message, and wait a moment for that of the other side."""
    tls.close()
    try:
        async with asyncio.timeout(GOODBYE_S):
            await tls.wait_lost()
    except TimeoutError:
        pass
    finally:
        tls.abort()
