"""Tokens that whoever reads something over HTTP shows, in a file with one on each line.

All of them are taken, and who shows one shows the first: so a token is changed by a new first line, and the old one goes
when everybody has the new one. The file is read again at each use, so nothing is restarted for that.
"""

import hmac
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SCHEME: Final = "Bearer"
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{16,1024}")
_MAX_BYTES: Final = 1 << 16


class UnusableToken(Exception):
    """A file of tokens that cannot be used; the message names the file, never what is in it. Nobody is let in meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile:
    """Shows a token, or looks whether one of them is shown, as `Authorization: Bearer TOKEN` (RFC 6750)."""

    path: Path

    def authorization(self) -> str:
        """The header of who reads. Raises `UnusableToken`."""
        return f"{_SCHEME} {self._tokens()[0]}"

    def admits(self, authorization: str) -> bool:
        """Whether a header shows a token; how long that takes tells nothing of it. Raises `UnusableToken`."""
        scheme, _, shown = authorization.partition(" ")
        given = shown.strip().encode(errors="surrogateescape")
        same = [hmac.compare_digest(given, token.encode()) for token in self._tokens()]
        return any(same) and scheme.lower() == _SCHEME.lower()

    def require_usable(self) -> None:
        """Raises `UnusableToken`."""
        self._tokens()

    def _tokens(self) -> list[str]:
        tokens = [line.strip() for line in self._read().splitlines() if line.strip()]
        if not tokens or not all(_TOKEN.fullmatch(token) for token in tokens):
            raise UnusableToken(
                f"{self.path} has no token, or one that cannot be shown: write one on each line, of 16 to 1024 of the "
                "characters A-Z a-z 0-9 . _ ~ + / = -"
            )
        return tokens

    def _read(self) -> str:
        try:
            if os.path.getsize(self.path) > _MAX_BYTES:
                raise UnusableToken(f"{self.path} is larger than {_MAX_BYTES} bytes: it is no file of tokens")
            return self.path.read_text(encoding="ascii")
        except UnicodeDecodeError:
            # Without a cause: that of a decoding error has what was read.
            raise UnusableToken(f"{self.path} is no text of ASCII: it is no file of tokens") from None
        except OSError as error:
            raise UnusableToken(f"{self.path} cannot be read: {error.strerror}") from error
