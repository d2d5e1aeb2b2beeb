"""Bearer tokens for HTTP requests, in a file with one token a line.

A server accepts all of them, and a client sends the first. To rotate a token, add the new one as the first line, and
remove the old one when every client has the new one. The file is read at each use, so no restart is needed.
"""

import hmac
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SCHEME: Final = "Bearer"
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{16,4096}")
_MAX_BYTES: Final = 1 << 16


class UnusableToken(Exception):
    """A token file that cannot be used. The message names the file but never its content. Requests are refused until it
    is mended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile:
    """A token file that sends or checks tokens as `Authorization: Bearer TOKEN` (RFC 6750)."""

    path: Path

    def authorization(self) -> str:
        """Return the header that a client sends. Raises `UnusableToken`."""
        return f"{_SCHEME} {self._tokens()[0]}"

    def admits(self, authorization: str) -> bool:
        """Return True if a header has one of the tokens. Takes constant time. Raises `UnusableToken`."""
        scheme, _, shown = authorization.partition(" ")
        given = shown.strip().encode(errors="surrogateescape")
        # Compare with every token, so that the time does not show which one matched.
        same = [hmac.compare_digest(given, token.encode()) for token in self._tokens()]
        return any(same) and scheme.lower() == _SCHEME.lower()

    def require_usable(self) -> None:
        """Check that the file can be used. Raises `UnusableToken`."""
        self._tokens()

    def _tokens(self) -> list[str]:
        tokens = [line.strip() for line in self._read().splitlines() if line.strip()]
        if not tokens or not all(_TOKEN.fullmatch(token) for token in tokens):
            raise UnusableToken(
                f"{self.path} has no token or an invalid one: write one token a line, each with 16 to 4096 of the "
                "characters A-Z a-z 0-9 . _ ~ + / = -"
            )
        return tokens

    def _read(self) -> str:
        try:
            if os.path.getsize(self.path) > _MAX_BYTES:
                raise UnusableToken(f"{self.path} is larger than {_MAX_BYTES} bytes: it is not a token file")
            return self.path.read_text(encoding="ascii")
        except UnicodeDecodeError:
            # Drop the cause, because a decoding error contains the bytes of the file.
            raise UnusableToken(f"{self.path} is not ASCII text: it is not a token file") from None
        except OSError as error:
            raise UnusableToken(f"{self.path} cannot be read: {error.strerror}") from error
