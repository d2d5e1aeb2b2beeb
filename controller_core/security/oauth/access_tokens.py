"""The access tokens of this process's clients: requested once for all connections, and replaced before they expire.

No background task asks for tokens that nobody needs. A connection that finds its token near its end waits a moment for
the next one. If that does not come, the connection uses the former token as long as it is valid.
"""

import asyncio
import os
import random
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeGuard
from urllib.parse import quote_plus

import jwt
import orjson
import structlog

from controller_core.security.oauth.endpoints import EndpointFailed, ask
from controller_core.security.oauth.messages import MOST_TOKEN_BYTES
from controller_core.security.oauth.token_login import Endpoint, TokenLogin
from controller_core.security.properties_file import InvalidProperties
from controller_core.supervision import start_task

log = structlog.get_logger()

_PATIENCE_S: Final = 2.0
"""Seconds that a connection waits for the next token while its own is valid."""
_AGAIN_AFTER_S: Final = 10.0
"""Seconds after a failure, or after a token's arrival, in which no other one is requested. As in Kafka's login."""
_MOST_LOGINS: Final = 64
"""Limit of remembered logins. Files that change make new ones."""
_LONGEST_S: Final = 365 * 24 * 3600.0
"""Limit of a token's believed lifetime."""


class NoToken(Exception):
    """There is no valid token. The message says what to change, and has no secret."""

    def __init__(self, why: str, *, is_transient: bool) -> None:
        """`is_transient` is True if it is worth a retry without a change of the settings."""
        super().__init__(why)
        self.is_transient = is_transient


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A token, by the monotonic clock."""

    value: str = field(repr=False)
    fetched_at_s: float
    expires_at_s: float
    refresh_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    why: NoToken
    until_s: float


Clock: TypeAlias = Callable[[], float]


class AccessTokens:
    """The tokens by login."""

    def __init__(self, *, monotonic_s: Clock = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._kept: dict[TokenLogin, AccessToken] = {}
        self._failed: dict[TokenLogin, _Failure] = {}
        self._underway: dict[TokenLogin, asyncio.Task[None]] = {}

    async def find_token(self, login: TokenLogin) -> str:
        """Return a valid token. Raises `NoToken`."""
        if isinstance(login.source, Path):
            return await asyncio.to_thread(self._read_file, login.source)
        kept = self._find_valid(login)
        if kept is not None and self._monotonic_s() < kept.refresh_at_s:
            return kept.value
        if not self._has_just_failed(login):
            refresh = self._start_refresh(login)
            if kept is None:
                await asyncio.shield(refresh)
            else:
                await asyncio.wait((refresh,), timeout=_PATIENCE_S)
            kept = self._find_valid(login)
        if kept is not None:
            return kept.value
        if login not in self._failed:
            raise NoToken(f"the token of {login.username} expired at once", is_transient=True)
        failed = self._failed[login].why
        raise NoToken(str(failed), is_transient=failed.is_transient) from failed

    def forget_refused(self, login: TokenLogin) -> None:
        """Request another token next time, because a server refused this one. A new one is kept for some seconds, so
        that the identity provider is not asked again and again."""
        kept = self._kept.get(login)
        if kept is not None and self._monotonic_s() >= kept.fetched_at_s + _AGAIN_AFTER_S:
            self._kept.pop(login, None)

    def _find_valid(self, login: TokenLogin) -> AccessToken | None:
        kept = self._kept.get(login)
        return kept if kept is not None and self._monotonic_s() < kept.expires_at_s else None

    def _has_just_failed(self, login: TokenLogin) -> bool:
        failed = self._failed.get(login)
        return failed is not None and self._monotonic_s() < failed.until_s

    def _start_refresh(self, login: TokenLogin) -> asyncio.Task[None]:
        """Return the task that requests a token; all connections of an event loop wait for the same."""
        task = self._underway.get(login)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = start_task(self._refresh(login), name="request a token")
            _remember(self._underway, login, task)
        return task

    async def _refresh(self, login: TokenLogin) -> None:
        assert isinstance(login.source, Endpoint), "files are read"
        try:
            token = await self._request(login, login.source)
        except (EndpointFailed, NoToken, InvalidProperties) as error:
            is_transient = not isinstance(error, InvalidProperties) and error.is_transient
            why = NoToken(f"there is no token for {login.username}: {error}", is_transient=is_transient)
            _remember(self._failed, login, _Failure(why=why, until_s=self._monotonic_s() + _AGAIN_AFTER_S))
            log.warning("no new token for logins", client=login.username, error=str(error))
        else:
            self._failed.pop(login, None)
            _remember(self._kept, login, token)

    async def _request(self, login: TokenLogin, endpoint: Endpoint) -> AccessToken:
        form = {"grant_type": "client_credentials", **({"scope": login.scope} if login.scope else {})}
        answer = _read_object(
            await ask(
                endpoint,
                headers={"Authorization": _authorization(login), "Cache-Control": "no-cache"},
                form=form,
                most_bytes=2 * MOST_TOKEN_BYTES,
            )
        )
        value = answer.get("access_token")
        if not isinstance(value, str) or not value.strip():
            raise NoToken(
                "the answer of the token endpoint has no access_token: check the URL and the grant type of the client",
                is_transient=False,
            )
        lifetime_s = self._find_lifetime_s(value.strip(), answer.get("expires_in"))
        now_s = self._monotonic_s()
        jitter = random.random()  # noqa: S311 - spreads requests over time
        return AccessToken(
            value=value.strip(),
            fetched_at_s=now_s,
            expires_at_s=now_s + lifetime_s,
            refresh_at_s=now_s + login.refresh.find_age_s(lifetime_s, jitter),
        )

    def _read_file(self, file: Path) -> str:
        try:
            if os.path.getsize(file) > MOST_TOKEN_BYTES:
                raise NoToken(f"{file} is larger than {MOST_TOKEN_BYTES} bytes: it is not a token", is_transient=False)
            value = file.read_text(encoding="ascii").strip()
        except UnicodeDecodeError:
            # Drop the cause, because a decoding error contains the bytes of the file.
            raise NoToken(f"{file} is not ASCII text: it is not a token", is_transient=False) from None
        except OSError as error:
            raise NoToken(f"the token in {file} cannot be read: {error.strerror}", is_transient=False) from error
        self._find_lifetime_s(value)
        return value

    def _find_lifetime_s(self, value: str, expires_in: object = None) -> float:
        """Return the rest of a token's lifetime. Raises `NoToken` if it is over or unknown."""
        if len(value) > MOST_TOKEN_BYTES:
            raise NoToken(f"the token has more than {MOST_TOKEN_BYTES} bytes", is_transient=False)
        expires_s = _read_expiry_s(value)
        if expires_s is None and _is_number(expires_in):
            lifetime_s = float(expires_in)
        elif expires_s is not None:
            lifetime_s = expires_s - time.time()
        else:
            raise NoToken(
                "the token is not a JWT with the claim exp, and the answer has no expires_in: make the identity "
                "provider issue JWTs",
                is_transient=False,
            )
        if lifetime_s <= 0:
            raise NoToken(
                f"the token expired {-lifetime_s:.0f} s ago by this machine's clock: check the clock, or renew the "
                "token",
                is_transient=True,
            )
        return min(lifetime_s, _LONGEST_S)


TOKENS: Final = AccessTokens()
"""The tokens of this process."""


def _authorization(login: TokenLogin) -> str:
    parts = (login.client_id, login.client_secret)
    shown = ":".join(map(quote_plus, parts) if login.encodes_header else parts)
    return f"Basic {b64encode(shown.encode()).decode()}"


def _read_object(content: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(content)
    except orjson.JSONDecodeError:
        answer = None  # the content is not shown, because it may hold a token
    if not isinstance(answer, dict):
        raise NoToken("the answer of the token endpoint is not a JSON object: check its URL", is_transient=False)
    return answer


def _read_expiry_s(value: str) -> float | None:
    """Return the expiry of a JWT, or None if it is no JWT or has none. The server checks the signature."""
    try:
        claims = jwt.decode(value, options={"verify_signature": False})
    except (jwt.PyJWTError, RecursionError):
        return None
    expiry = claims.get("exp")
    return float(expiry) if _is_number(expiry) else None


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _remember(known: dict[TokenLogin, Any], login: TokenLogin, value: object) -> None:
    known.pop(login, None)
    known[login] = value
    if len(known) > _MOST_LOGINS:
        del known[next(iter(known))]
