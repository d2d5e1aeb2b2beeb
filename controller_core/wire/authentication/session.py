"""One attempt to log in, and the resulting session (KIP-368)."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateResponse
from kio.static.primitive import i64Timedelta

from controller_core.model.authorization.principal import Principal
from controller_core.wire.authentication.exchanges import (
    Exchange,
    InvalidLogin,
    PlainExchange,
    ScramCredentials,
    ScramExchange,
)
from controller_core.wire.authentication.listener_settings import ListenerSettings
from controller_core.wire.connections.security import PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A successful login."""

    principal: Principal
    mechanism: str
    lasts_until_s: float | None = None
    """The end of the session by the event loop's clock; None if it is unlimited."""

    @property
    def is_over(self) -> bool:
        return self.lasts_until_s is not None and asyncio.get_running_loop().time() >= self.lasts_until_s


class Attempt:
    """One login, which may become a session."""

    def __init__(
        self, settings: ListenerSettings, mechanism: str, credentials: ScramCredentials, before: Session | None
    ) -> None:
        """`mechanism` is one of the settings' mechanisms. `before` is the session to renew."""
        self.mechanism = mechanism
        self.session: Session | None = None
        self._lifetime_ms = settings.sessions_ms[mechanism]
        self._before = before
        self._exchange: Exchange = (
            PlainExchange(settings.users) if mechanism == PLAIN else ScramExchange(mechanism, credentials)
        )

    async def answer(self, message: bytes) -> bytes:
        """Return the server's answer to a message. Raises `InvalidLogin`."""
        before = self._before
        if before is not None and before.mechanism != self.mechanism:
            told = (
                f"SASL mechanism '{self.mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{before.mechanism}'"
            )
            raise InvalidLogin("the client renews its login by another mechanism", told=told)
        said = await self._exchange.answer(message)
        if self._exchange.user is not None:
            self.session = self._session(Principal.user(self._exchange.user))
        return said

    def _session(self, principal: Principal) -> Session:
        before = self._before
        if before is not None and before.principal != principal:
            told = (
                "Cannot change principals during re-authentication from "
                f"{before.principal.kind}.{before.principal.name}: {principal.kind}.{principal.name}"
            )
            raise InvalidLogin("the client renews its login as another user", told=told)
        now_s = asyncio.get_running_loop().time()
        until_s = now_s + self._lifetime_ms / 1000 if self._lifetime_ms else None
        return Session(principal=principal, mechanism=self.mechanism, lasts_until_s=until_s)

    def response(self, said: bytes) -> SaslAuthenticateResponse:
        """Return the response to a successful step. The last one has the lifetime of the session."""
        lifetime_ms = self._lifetime_ms if self.session is not None else 0
        return SaslAuthenticateResponse(
            error_code=ErrorCode.none,
            error_message=None,
            auth_bytes=said,
            session_lifetime=i64Timedelta.parse(timedelta(milliseconds=lifetime_ms)),
        )

    def refusal(self, why: InvalidLogin) -> SaslAuthenticateResponse:
        """Return the response to a failed login, in Kafka's words, which users can search for."""
        doing = "authentication" if self._before is None else "re-authentication"
        general = (
            f"Authentication failed during {doing} due to invalid credentials with SASL mechanism {self.mechanism}"
        )
        return SaslAuthenticateResponse(
            error_code=ErrorCode.sasl_authentication_failed, error_message=why.told or general, auth_bytes=b""
        )
