"""One attempt to log in, and the resulting session (KIP-368)."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateResponse
from kio.static.primitive import i64Timedelta

from controller_core.model.authorization.principal import Principal
from controller_core.security.oauth.token_login import OAUTHBEARER
from controller_core.wire.authentication.exchanges import (
    Exchange,
    InvalidLogin,
    PlainExchange,
    ScramCredentials,
    ScramExchange,
    TokenExchange,
    TokenVerification,
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
        self,
        settings: ListenerSettings,
        mechanism: str,
        credentials: ScramCredentials,
        tokens: TokenVerification | None,
        before: Session | None,
    ) -> None:
        """`mechanism` is one of the settings' mechanisms. `tokens` is None if tokens are not among them. `before` is
        the session to renew."""
        self.mechanism = mechanism
        self.session: Session | None = None
        self._lifetime_ms = settings.sessions_ms[mechanism]
        self._before = before
        self._exchange = self._begin(settings, credentials, tokens)

    def _begin(
        self, settings: ListenerSettings, credentials: ScramCredentials, tokens: TokenVerification | None
    ) -> Exchange:
        if self.mechanism == PLAIN:
            return PlainExchange(settings.users)
        if self.mechanism == OAUTHBEARER:
            assert tokens is not None, "the listener has rules for them"
            return TokenExchange(tokens)
        return ScramExchange(self.mechanism, credentials)

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
        # As in Kafka, a session never outlives its token, whatever `connections.max.reauth.ms` is.
        limits_s = [each for each in (self._lifetime_ms / 1000 or None, self._exchange.lifetime_s) if each is not None]
        self._lifetime_ms = max(1, int(min(limits_s) * 1000)) if limits_s else 0
        until_s = asyncio.get_running_loop().time() + min(limits_s) if limits_s else None
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
