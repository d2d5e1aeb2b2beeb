"""Tokens for served journals: one for a certain journal, or one for all others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from controller_core.security.token_file import TokenFile, UnusableToken

_SERVED: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalTokens:
    """The files of tokens, by the address of their journal."""

    of_journals: Mapping[str, TokenFile] = field(default_factory=dict)
    of_others: TokenFile | None = None

    @classmethod
    def parse(cls, options: Iterable[str], journals: Iterable[str]) -> Self:
        """Parse options of the form `FILE` or `URL=FILE`. Tokens are only for the given journals.

        Raises `ValueError` for a URL that is not among the journals, and for a file that cannot be used."""
        of_journals: dict[str, TokenFile] = {}
        of_others = None
        known = {_plain(journal) for journal in journals}
        for option in options:
            url, _, path = option.partition("=") if option.startswith(_SERVED) else ("", "", option)
            file = _usable(path, option)
            if not url:
                of_others = file
            elif _plain(url) in known:
                of_journals[_plain(url)] = file
            else:
                raise ValueError(f"{url} is not one of the journals: give the token to an address that --journal has")
        return cls(of_journals=of_journals, of_others=of_others)

    def headers(self, journal: str) -> dict[str, str]:
        """Return the authorization headers for a request to a journal. Raises `UnusableToken`."""
        file = self.of_journals.get(_plain(journal), self.of_others)
        return {} if file is None else {"Authorization": file.authorization()}


def _plain(url: str) -> str:
    return url.rstrip("/")


def _usable(path: str, option: str) -> TokenFile:
    if not path:
        raise ValueError(f"{option} names no file: give FILE, or URL=FILE")
    file = TokenFile(path=Path(path))
    try:
        file.require_usable()
    except UnusableToken as error:
        raise ValueError(str(error)) from error
    return file
