"""Requests to an identity provider: bounded in size and time, repeated as Kafka does, and never redirected.

An error names the server and what to change. It quotes the provider's error code, and nothing else of its answer.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import orjson

from controller_core.security.oauth.token_login import Endpoint
from controller_core.security.tls_files import TlsFiles

_FINAL_STATUSES: Final = frozenset(
    {301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505}
)
"""Answers that a repetition does not change."""
_ERROR_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HINTS: Final = {
    400: "the identity provider does not accept the request: check the scope and the client",
    401: "check clientId and clientSecret",
    403: "check clientId and clientSecret, and the rights of this client",
    404: "check the path of the URL",
    405: "check the path of the URL",
}


class EndpointFailed(Exception):
    """A server gave no usable answer. The message says what to change, and has no secret."""

    def __init__(self, why: str, *, is_transient: bool) -> None:
        """`is_transient` is True if a repetition can help."""
        super().__init__(why)
        self.is_transient = is_transient


async def ask(
    endpoint: Endpoint, *, headers: Mapping[str, str], form: Mapping[str, str] | None = None, most_bytes: int
) -> bytes:
    """Return the answer to a GET, or to a POST of a form. Raises `EndpointFailed`, and `InvalidProperties` for unusable
    certificates.

    Transient failures are repeated until the longest backoff has passed.
    """
    context = await asyncio.to_thread((endpoint.tls or TlsFiles()).make_client_context)
    connect_s, read_s = endpoint.connect_timeout_ms / 1000, endpoint.read_timeout_ms / 1000
    async with aiohttp.ClientSession(
        auto_decompress=False,  # a small answer could expand to a huge one
        connector=aiohttp.TCPConnector(ssl=context),
        headers={"Accept": "application/json", "Accept-Encoding": "identity", **headers},
        timeout=aiohttp.ClientTimeout(total=connect_s + read_s, sock_connect=connect_s, sock_read=read_s),
    ) as session:
        return await _repeat(session, endpoint, form, most_bytes)


async def _repeat(
    session: aiohttp.ClientSession, endpoint: Endpoint, form: Mapping[str, str] | None, most_bytes: int
) -> bytes:
    loop = asyncio.get_running_loop()
    until_s = loop.time() + endpoint.retry_backoff_max_ms / 1000
    pause_s = endpoint.retry_backoff_ms / 1000
    while True:
        try:
            return await _ask_once(session, endpoint.url, form, most_bytes)
        except EndpointFailed as error:
            if not error.is_transient or loop.time() + pause_s >= until_s:
                raise
        await asyncio.sleep(pause_s)
        pause_s *= 2


async def _ask_once(session: aiohttp.ClientSession, url: str, form: Mapping[str, str] | None, most_bytes: int) -> bytes:
    server = urlsplit(url).netloc
    method = "GET" if form is None else "POST"
    try:
        async with session.request(method, url, data=form, allow_redirects=False) as answer:
            content = await read_at_most(answer.content, most_bytes)
            status = answer.status
    except aiohttp.ClientSSLError as error:
        raise EndpointFailed(
            f"{server} is not trusted: set ssl.truststore.location among the options of sasl.jaas.config: {error}",
            is_transient=False,
        ) from error
    except TimeoutError as error:
        raise EndpointFailed(
            f"{server} did not answer in time: see sasl.login.connect.timeout.ms and sasl.login.read.timeout.ms",
            is_transient=True,
        ) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise EndpointFailed(f"{server} cannot be asked: {type(error).__name__}: {error}", is_transient=True) from error
    if len(content) > most_bytes:
        raise EndpointFailed(f"{server} answers with more than {most_bytes} bytes", is_transient=False)
    if status not in (200, 201):
        raise EndpointFailed(
            f"{server} answers with HTTP status {status}{_find_code(content)}"
            f"{': ' + _HINTS[status] if status in _HINTS else ''}",
            is_transient=status not in _FINAL_STATUSES,
        )
    return content


async def read_at_most(stream: aiohttp.StreamReader, most_bytes: int) -> bytes:
    """Return the content, or one byte more than the limit if it is larger."""
    content = bytearray()
    while len(content) <= most_bytes and (piece := await stream.read(most_bytes + 1 - len(content))):
        content += piece
    return bytes(content)


def _find_code(content: bytes) -> str:
    """Return the error code of an answer (RFC 6749, 5.2) in words, or nothing."""
    try:
        answer = orjson.loads(content)
    except orjson.JSONDecodeError:
        return ""
    code = answer.get("error") if isinstance(answer, dict) else None
    return f" and the error {code}" if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""
