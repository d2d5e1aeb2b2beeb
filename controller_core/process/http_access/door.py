"""Admits the readers of metrics and journal: those that show a token, or a certificate of the clients' authority."""

import asyncio
from typing import Final

import structlog
from aiohttp import web

from controller_core.process.http_access.places import OPEN_PLACES
from controller_core.security.token_file import TokenFile, UnusableToken
from controller_core.wire.limits.complaints import Complaints

log = structlog.get_logger()

_NOBODY_NOW: Final = "the server cannot read its token, so nobody is admitted by one: see its log\n"


class TokenUnreadable(web.HTTPServiceUnavailable):
    """Nobody is admitted by a token, because the server cannot read its own."""


def mark_known(request: web.Request) -> None:
    """Let the connection of a caller who has shown who it is keep its place longest."""
    if (place := OPEN_PLACES.get(request.protocol)) is not None:
        place.is_known = True


class Door:
    """Admits everybody if it has neither a token nor an authority; otherwise those that show one of them.

    It logs refused readers once a minute for each address, and only once that nobody is admitted, because any client
    could otherwise fill the log."""

    def __init__(self, token: TokenFile | None = None, *, option: str = "", takes_certificates: bool = False) -> None:
        """`option`: the one that sets the token."""
        self._token = token
        self._takes_certificates = takes_certificates
        self._is_shut = False
        self._complaints = Complaints(log)
        ways = [f"its token, as Authorization: Bearer TOKEN ({option})"] if token is not None else []
        ways += ["a client's certificate (--metrics-client-ca)"] if takes_certificates else []
        self._refusal = f"this page requires {' or '.join(ways)}\n"

    async def admit(self, request: web.Request) -> None:
        """Raise the HTTP error for a reader that may not read: 401, or 503 while the token cannot be read."""
        if self._token is None and not self._takes_certificates:
            return
        if not (self._has_certificate(request) or await self._has_token(request)):
            headers = {"WWW-Authenticate": "Bearer"} if self._token is not None else {}
            self._complaints.warn(
                request.remote,
                "HTTP reader refused",
                address=request.remote,
                page=request.path,
                why=self._refusal.strip(),
            )
            raise web.HTTPUnauthorized(text=self._refusal, headers=headers)
        mark_known(request)

    def _has_certificate(self, request: web.Request) -> bool:
        # The handshake has verified it: one of another authority ends the connection.
        return self._takes_certificates and bool(request.get_extra_info("peercert"))

    async def _has_token(self, request: web.Request) -> bool:
        if self._token is None:
            return False
        try:
            is_admitted = await asyncio.to_thread(self._token.admits, request.headers.get("Authorization", ""))
        except UnusableToken as error:
            if not self._is_shut:
                log.warning("nobody may read over HTTP: the token cannot be read", reason=str(error))
            self._is_shut = True
            raise TokenUnreadable(text=_NOBODY_NOW) from error
        self._is_shut = False
        return is_admitted


OPEN: Final = Door()
"""Admits everybody."""
