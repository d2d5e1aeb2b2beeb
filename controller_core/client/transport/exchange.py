"""One request and its answer over a connection. The type of an error tells whether the request may have been done."""

import asyncio
import ssl
from typing import Final, TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import (
    AnswerUnreadable,
    InvalidArgument,
    NotAdmittedError,
    NotAnsweredError,
    OutcomeUnknown,
    Unreachable,
)
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import (
    DEFAULT_MAX_FRAME_BYTES,
    FrameCut,
    FrameError,
    Unencodable,
    decode_response,
    encode_request,
    read_correlation_id,
    read_frame,
)
from controller_core.wire.connections import connecting
from controller_core.wire.connections.connecting import Connection
from controller_core.wire.connections.security import SecuritySource

_CORRELATION_ID: Final = 1

Response = TypeVar("Response", bound=ResponsePayload)


async def connect(host: str, port: int, security: SecuritySource | None, deadline_s: float) -> Connection:
    """Open a connection. Raises `Unreachable`, `NotAdmittedError` and `AnswerUnreadable`."""
    try:
        return await connecting.open_connection(host, port, deadline_s=deadline_s, security=security)
    except connecting.OutOfReach as error:
        raise Unreachable(str(error)) from error
    except connecting.NotAdmitted as error:
        raise NotAdmittedError(str(error)) from error
    except connecting.NoSuchProtocol as error:
        raise AnswerUnreadable(str(error)) from error


def encode(request: RequestPayload, client_id: str) -> bytes:
    """Encode a request as a whole frame. Raises `InvalidArgument`."""
    try:
        return encode_request(request, _CORRELATION_ID, client_id)
    except Unencodable as error:
        raise InvalidArgument(f"the request cannot be encoded: {error}") from error


async def exchange(
    connection: Connection,
    server: object,
    frame: bytes,
    deadline_s: float,
    most_bytes: int = DEFAULT_MAX_FRAME_BYTES,
) -> bytes:
    """Send a request, and return the content of its answer. `server`: its name for messages. Raises
    `OutcomeUnknown`, `NotAdmittedError` and `AnswerUnreadable`."""
    try:
        async with asyncio.timeout_at(deadline_s):
            connection.writer.write(frame)
            await connection.writer.drain()
            content = await read_frame(connection.reader, most_bytes)
        answered = None if content is None else read_correlation_id(content)
    except TimeoutError as error:
        raise OutcomeUnknown(f"{server} did not answer in time") from error
    except (ConnectionError, ssl.SSLEOFError) as error:
        raise NotAnsweredError(f"{server} closed the connection and did not answer: {error}") from error
    except ssl.SSLError as error:  # with TLS 1.3 the server refuses a certificate after the handshake
        raise NotAdmittedError(f"{server} ended the connection by TLS, see ssl.keystore.*: {error}") from error
    except (OSError, FrameCut) as error:
        raise OutcomeUnknown(f"{server} did not answer: {error}") from error
    except FrameError as error:
        raise AnswerUnreadable(f"{server} does not answer by Kafka's protocol: {error}") from error
    if content is None:
        raise NotAnsweredError(f"{server} closed the connection and did not answer")
    if answered != _CORRELATION_ID:
        raise AnswerUnreadable(f"{server} answered another request")
    return content


def decode(server: object, content: bytes, response_type: type[Response]) -> Response:
    """Decode an answer. Raises `AnswerUnreadable`."""
    try:
        return decode_response(response_type, content)
    except (FrameError, Undecodable) as error:
        raise AnswerUnreadable(f"{server} sent an answer that is not a {response_type.__name__}: {error}") from error
