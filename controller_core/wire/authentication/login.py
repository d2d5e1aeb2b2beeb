"""SASL on one connection: the client authenticates before its first request (KIP-43, KIP-152).

Only ApiVersions is allowed before a login; any other request ends the connection. A login may have a limited lifetime
(KIP-368). The client then renews it on the same connection, by the same mechanism and for the same principal. Otherwise
the next request ends the connection.

The answer to a failed login is delayed, which slows down guessing. The log has the address, and quotes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.access import Address
from controller_core.model.authorization.principal import Caller
from controller_core.wire.authentication.exchanges import InvalidLogin
from controller_core.wire.authentication.listener_settings import ListenerSettings
from controller_core.wire.authentication.secured_listener import SecuredListener
from controller_core.wire.authentication.session import Attempt, Session
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import (
    FrameCut,
    FrameTooLarge,
    RequestHead,
    RequestStart,
    make_frame,
    read_length,
    read_pieces,
    read_request_start,
    read_rest,
)
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.budget import ByteBudget

HANDSHAKE: Final = Versions(SaslHandshakeRequest, oldest=0)
AUTHENTICATE: Final = Versions(SaslAuthenticateRequest, oldest=0)
API_VERSIONS: Final = 18

MAX_BYTES: Final = 64 * 1024
"""Size limit of each request before a login. Kafka's is 512 KiB, which Kerberos needs."""
TIMEOUT_S: Final = 30.0
"""Seconds for a whole login."""
_FIRST_WITH_HEADERS: Final = 1
"""The first version of the handshake after which SASL messages are requests. Before, they are bare frames."""

_CUT: Final = "the connection ended during a login"

Send = Callable[[bytes], Awaitable[None]]
Answer = Callable[[RequestHead, bytes], Awaitable[bytes]]


class ClientNotLoggedIn(Exception):
    """The client was refused, or did not log in. The message is for the log."""


class Logins:
    """The logins on one connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        send: Send,
        *,
        address: Address | None,
        listener: SecuredListener,
        api_versions: Answer,
        budget: ByteBudget,
    ) -> None:
        """`send` sends a whole frame. `api_versions` returns the response frame to an ApiVersions request. `budget` is
        that of strangers' requests."""
        self._reader = reader
        self._send = send
        self._address = address
        self._listener = listener
        self._api_versions = api_versions
        self._budget = budget
        self._session: Session | None = None

    @property
    def caller(self) -> Caller:
        """The logged-in caller."""
        if self._session is None:
            return Caller(address=self._address)
        return Caller(address=self._address, principal=self._session.principal, is_authenticated=True)

    async def begin(self) -> bool:
        """Run the first login. Return False if the connection ended before it began.

        Raises `ClientNotLoggedIn`, `CredentialsOutOfReach`, `FrameError`, `Undecodable`, `TimeoutError`, and the `OSError`
        of a connection.
        """
        async with asyncio.timeout(TIMEOUT_S):
            while (start := await read_request_start(self._reader, MAX_BYTES)) is not None:
                content = await self._rest(start)
                if start.head.api_key == HANDSHAKE.key:
                    self._session = await self._log_in(start.head, content)
                    return True
                if start.head.api_key != API_VERSIONS:
                    raise ClientNotLoggedIn(
                        f"API {start.head.api_key} was requested before a login: the client is not configured for SASL"
                    )
                await self._send(await self._api_versions(start.head, content))
        return False

    async def handle_renewal(self, start: RequestStart) -> bool:
        """Renew the login if the request begins a renewal. Return True if it did.

        Raises the errors of `begin`, also if the login has expired and the request does not renew it.
        """
        if self._session is None or self._session.lasts_until_s is None:
            return False
        if start.head.api_key != HANDSHAKE.key:
            if self._session.is_over:
                raise ClientNotLoggedIn("its login has expired, and the client did not renew it")
            return False
        async with asyncio.timeout(TIMEOUT_S):
            self._session = await self._log_in(start.head, await self._rest(start))
        return True

    async def _rest(self, start: RequestStart) -> bytes:
        if start.length > MAX_BYTES:
            raise FrameTooLarge(f"a message of a login has {start.length} bytes, the limit is {MAX_BYTES}")
        async with self._budget.share(start.length):
            return bytes(await read_rest(self._reader, start))

    async def _frame(self) -> bytes:
        length = await read_length(self._reader, MAX_BYTES)
        if length is None:
            raise FrameCut(_CUT)
        async with self._budget.share(length):
            return b"".join([piece async for piece in read_pieces(self._reader, length)])

    async def _log_in(self, head: RequestHead, content: bytes) -> Session:
        settings = await self._listener.settings()
        mechanism = HANDSHAKE.lift(_decode(HANDSHAKE, head, content)).mechanism
        offered = tuple(settings.sessions_ms)
        if mechanism not in offered:
            refused = SaslHandshakeResponse(error_code=ErrorCode.unsupported_sasl_mechanism, mechanisms=offered)
            await self._refuse(settings, HANDSHAKE, head, refused)
            raise ClientNotLoggedIn(f"the client's mechanism is not one of {', '.join(offered)}")
        agreed = SaslHandshakeResponse(error_code=ErrorCode.none, mechanisms=offered)
        await self._send(_frame(HANDSHAKE, head, agreed))
        attempt = Attempt(settings, mechanism, self._listener.credentials, self._listener.tokens, self._session)
        speak = self._exchange_in_frames if head.api_version < _FIRST_WITH_HEADERS else self._exchange_in_requests
        try:
            return await speak(attempt, settings)
        except InvalidLogin as error:
            raise ClientNotLoggedIn(f"{mechanism}: {error}") from error

    async def _exchange_in_requests(self, attempt: Attempt, settings: ListenerSettings) -> Session:
        while attempt.session is None:
            start = await read_request_start(self._reader, MAX_BYTES)
            if start is None:
                raise FrameCut(_CUT)
            head, content = start.head, await self._rest(start)
            if head.api_key != AUTHENTICATE.key:
                await self._refuse_other(head, settings)
                raise ClientNotLoggedIn(f"API {head.api_key} was requested during a login")
            request = AUTHENTICATE.lift(_decode(AUTHENTICATE, head, content))
            try:
                said = await attempt.answer(request.auth_bytes)
            except InvalidLogin as error:
                await self._refuse(settings, AUTHENTICATE, head, attempt.refusal(error))
                raise
            await self._send(_frame(AUTHENTICATE, head, attempt.response(said)))
        return attempt.session

    async def _exchange_in_frames(self, attempt: Attempt, settings: ListenerSettings) -> Session:
        while attempt.session is None:
            message = await self._frame()
            try:
                said = await attempt.answer(message)
            except InvalidLogin:
                await asyncio.sleep(settings.failure_delay_ms / 1000)
                raise
            await self._send(make_frame(said))
        return attempt.session

    async def _refuse_other(self, head: RequestHead, settings: ListenerSettings) -> None:
        """Refuse a request during a login. Only another handshake gets an answer; other requests are not decoded."""
        if head.api_key == HANDSHAKE.key and head.api_version in HANDSHAKE:
            response = SaslHandshakeResponse(error_code=ErrorCode.illegal_sasl_state, mechanisms=())
            await self._refuse(settings, HANDSHAKE, head, response)

    async def _refuse(
        self, settings: ListenerSettings, versions: Versions[Any], head: RequestHead, response: ResponsePayload
    ) -> None:
        await asyncio.sleep(settings.failure_delay_ms / 1000)
        await self._send(_frame(versions, head, response))


def _decode(versions: Versions[Any], head: RequestHead, content: bytes) -> RequestPayload:
    if head.api_version not in versions:
        raise Undecodable(f"version {head.api_version} of API {head.api_key} is not served")
    return versions.decode(content, head.api_version, most_items=1)


def _frame(versions: Versions[Any], head: RequestHead, response: ResponsePayload) -> bytes:
    return versions.encode(versions.lower(response, head.api_version), head.correlation_id)
