"""What readers of journals show to whoever serves them: a token of its own for a journal, or one for all others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from controller_core.security.token_file import TokenFile, UnusableToken

_SERVED: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalTokens:
    """Files of tokens by the address of their journal."""

    of_journals: Mapping[str, TokenFile] = field(default_factory=dict)
    of_others: TokenFile | None = None

    @classmethod
    def named(cls, options: Iterable[str], journals: Iterable[str]) -> Self:
        """As options name them, `FILE` or `URL=FILE`; no token goes to somebody who is no journal of those.

        Raises `ValueError` for a journal that is not read, and for a file that cannot be used."""
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
                raise ValueError(f"{url} is no journal that is read: give its token to the address that --journal has")
        return cls(of_journals=of_journals, of_others=of_others)

    def headers(self, journal: str) -> dict[str, str]:
        """What a request to that journal shows. Raises `UnusableToken`."""
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
