"""Single requests in Kafka's protocol, by a client that hides nothing.

They are for tests that must see the exact answer: every version, every error code, and a closed connection. To ask a
server of any release, use `ask_in_its_version`, which picks a version that the server supports.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from kio.index import load_response_schema
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.transport.negotiation import Ranges, response_type_of
from controller_core.wire.codecs.encoding import control_request_pieces
from controller_core.wire.codecs.frames import decode_response, encode_request
from controller_core.wire.codecs.versions import convert
from controller_core.wire.connections.security import Login
from controller_core.wire.messages import ControlRequest
from controller_core.wire.requests.api_versions import SERVER_VERSIONS
from devcluster.clients.identity import NOBODY, Identity

CLIENT_ID = "devcluster"


class ConnectionClosed(Exception):
    """The server closed the connection without an answer, which is how Kafka refuses requests that it cannot read."""


def send_request(
    address: tuple[str, int],
    request: RequestPayload,
    *,
    response_type: type[ResponsePayload] | None = None,
    identity: Identity = NOBODY,
    source: str = "",
    timeout_s: float = 60,
) -> Any:
    """Return the answer to one request, on a new connection. Messages that kio lacks need their `response_type`.

    `source`: the address to connect from; by default the system chooses. Raises `ConnectionClosed`, `TimeoutError`.
    """
    if response_type is None:
        response_type = load_response_schema(int(request.__api_key__), int(request.__version__))
    frame = encode_request(request, 1, CLIENT_ID)
    with open_connection(address, identity=identity, source=source, timeout_s=timeout_s) as connection:
        return decode_response(response_type, answer_to(connection, frame))


def ask_in_its_version(
    address: tuple[str, int],
    request: RequestPayload,
    *,
    response_type: type[ResponsePayload] | None = None,
    identity: Identity = NOBODY,
    timeout_s: float = 60,
) -> Any:
    """Return the answer of a server of any release, converted to the version of the request.

    The server's supported versions are read on the same connection. `response_type`: for messages that kio lacks, whose
    answers are the same in all versions. Raises `ConnectionClosed`, `TimeoutError`, `Unsupported`.
    """
    with open_connection(address, identity=identity, timeout_s=timeout_s) as connection:
        told = answer_to(connection, encode_request(SERVER_VERSIONS, 1, CLIENT_ID))
        ranges = Ranges.read(decode_response(ApiVersionsResponse, told))
        if response_type is not None:
            return decode_response(response_type, answer_to(connection, _encode_control_request(request, ranges)))
        fitting = ranges.fit(request)
        answer = decode_response(
            response_type_of(fitting), answer_to(connection, encode_request(fitting, 2, CLIENT_ID))
        )
    return answer if fitting is request else convert(answer, response_type_of(request))


def _encode_control_request(request: RequestPayload, ranges: Ranges) -> bytes:
    """Return the frame of a request that a controller sends to brokers."""
    if not isinstance(request, ControlRequest):
        return encode_request(request, 2, CLIENT_ID)
    _, newest = ranges.of[int(request.__api_key__)]
    return b"".join(control_request_pieces(request, 2, CLIENT_ID, version=min(newest, int(request.__version__))))


def send_frame(address: tuple[str, int], frame: bytes, *, identity: Identity = NOBODY, timeout_s: float = 60) -> bytes:
    """Send a frame unchanged, and return the content of the answer. Raises `ConnectionClosed`, `TimeoutError`."""
    with open_connection(address, identity=identity, timeout_s=timeout_s) as connection:
        return answer_to(connection, frame)


@contextmanager
def open_connection(
    address: tuple[str, int], *, identity: Identity = NOBODY, source: str = "", timeout_s: float = 60
) -> Iterator[socket.socket]:
    """Open a connection for requests, and log in if the identity has a login. `source`: see `send_request`."""
    with (
        socket.create_connection(address, timeout=timeout_s, source_address=(source, 0)) as opened,
        identity.wrap_connection(opened, address[0]) as connection,
    ):
        if identity.login is not None:
            log_in(connection, identity.login)
        yield connection


def answer_to(connection: socket.socket, frame: bytes) -> bytes:
    """Send a frame on a connection, and return the content of the answer. Raises `ConnectionClosed`, `TimeoutError`."""
    connection.sendall(frame)
    length = cast(int, struct.unpack(">i", _read(connection, 4))[0])
    return _read(connection, length)


def log_in(connection: socket.socket, login: Login) -> None:
    """Log in on a connection. Raises `ConnectionClosed`, `TimeoutError`."""

    def ask(request: RequestPayload) -> Any:
        content = answer_to(connection, encode_request(request, 1, CLIENT_ID))
        answer: Any = decode_response(load_response_schema(int(request.__api_key__), int(request.__version__)), content)
        assert answer.error_code is ErrorCode.none, answer
        return answer

    ask(SaslHandshakeRequest(mechanism=login.mechanism))
    messages = login.messages()
    said = next(messages)
    with suppress(StopIteration):
        while True:
            said = messages.send(ask(SaslAuthenticateRequest(auth_bytes=said)).auth_bytes)


def _read(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        try:
            chunk = connection.recv(count - len(received))
        except ConnectionResetError as error:
            raise ConnectionClosed("the connection was reset") from error
        if not chunk:
            raise ConnectionClosed(f"closed after {len(received)} of {count} bytes")
        received += chunk
    return bytes(received)
