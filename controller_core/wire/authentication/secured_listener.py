"""The current settings of a listener, which are read again when their files have changed.

If the files cannot be used, for example because somebody is writing them, the former settings remain in force, and the
log has a warning.
"""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import structlog

from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.authentication.exchanges import ScramCredentials, TokenVerification
from controller_core.wire.authentication.listener_settings import ListenerSettings, listener_settings
from controller_core.wire.connections.broker_properties import SecuredBrokers
from controller_core.wire.limits.complaints import Complaints

if TYPE_CHECKING:
    from controller_core.security.oauth.verification import TokenVerifier

log = structlog.get_logger()

_Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class SecuredListener:
    """A listener with a protocol other than PLAINTEXT."""

    def __init__(self, file: Path, listener: str, protocol: str, credentials: ScramCredentials) -> None:
        """`file` is a property file. Raises `InvalidProperties`."""
        self.credentials: Final = credentials
        self.protocol: Final = protocol
        self._file = file
        self._listener = listener
        self._turn = asyncio.Lock()
        self._complaints = Complaints(log)
        self._settings = self._read()
        self._tokens: TokenVerifier | None = _make_verifier(self._settings)
        self._stamp = self._read_stamp()

    @property
    def has_tls(self) -> bool:
        """True if connections begin with a TLS handshake."""
        return self.protocol.endswith("SSL")

    @property
    def has_logins(self) -> bool:
        """True if clients log in by SASL."""
        return self.protocol.startswith("SASL")

    @property
    def tokens(self) -> TokenVerification | None:
        """The verification of tokens; None if clients do not log in with tokens."""
        return self._tokens

    async def settings(self) -> ListenerSettings:
        """Return the current settings."""
        async with self._turn:
            if (stamp := self._read_stamp()) != self._stamp:
                self._stamp = stamp  # taken before the files are read, so that later changes are noticed the next time
                await self._renew()
        return self._settings

    async def _renew(self) -> None:
        try:
            self._settings = await asyncio.to_thread(self._read)
        except InvalidProperties as error:
            self._complaints.warn(
                str(error),
                "a listener keeps its former settings, because its properties or certificates cannot be used now",
                listener=self._listener,
                error=str(error),
            )
        else:
            self._renew_tokens()
            log.info("a listener's properties or certificates were read again", listener=self._listener)

    def _renew_tokens(self) -> None:
        """Keep the known keys, unless they come from another place."""
        if self._tokens is None or self._tokens.rules != self._settings.tokens:
            self._tokens = _make_verifier(self._settings)
        else:
            self._tokens.expire_keys()

    def _read(self) -> ListenerSettings:
        return listener_settings(SecuredBrokers(self._file).read(), self._listener, self.protocol)

    def _read_stamp(self) -> _Stamp:
        return tuple(_stamps((self._file, *self._settings.files)))


def _make_verifier(settings: ListenerSettings) -> "TokenVerifier | None":
    if settings.tokens is None:
        return None
    # Only listeners that accept tokens need the libraries, which take time to import.
    from controller_core.security.oauth.verification import TokenVerifier

    return TokenVerifier(settings.tokens)


def _stamps(files: Iterable[Path]) -> Iterable[tuple[int, int, int] | None]:
    for file in files:
        try:
            status = os.stat(file)
            yield status.st_mtime_ns, status.st_size, status.st_ino
        except OSError:
            yield None
