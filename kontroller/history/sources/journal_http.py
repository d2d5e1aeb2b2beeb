"""Copies of the journals that controllers serve over HTTP. An update fetches only new data.

A segment only grows, except that its writer may cut off a torn or failed last write. So a copy is cut to its last whole
line, and continues only if its end still matches the server's. Otherwise the segment is fetched again.
"""

import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from controller_core.security.token_file import UnusableToken
from kontroller.history.sources.journal_tokens import JournalTokens

TIMEOUT_S: Final = 30
_OVERLAP_BYTES: Final = 4096
_UNAUTHORIZED: Final = 401
_SEGMENT: Final = r"^[0-9]+-[0-9]+\.jsonl$"
"""The names that may become local files, whatever a server sends."""


class JournalUnreachable(Exception):
    """A journal could not be fetched; earlier copies are unchanged. A retry may succeed."""


class Segment(BaseModel):
    name: str = Field(pattern=_SEGMENT)
    bytes: int = Field(ge=0)


class Index(BaseModel):
    segments: list[Segment]


def fetch(url: str, below: Path, tokens: JournalTokens | None = None) -> Path:
    """Update the copy of the journal at `url`, and return its folder below `below`. Each server has its own.

    Segments that the server has removed are kept. Raises `JournalUnreachable`, and `OSError` for the copy's own disk.
    """
    address = urlsplit(url)
    folder = below / f"{address.hostname}-{address.port or 80}"
    folder.mkdir(parents=True, exist_ok=True)
    shown = _read_headers(url, tokens)
    for segment in _index(url, shown).segments:
        _update(f"{url.rstrip('/')}/{segment.name}", folder / segment.name, segment.bytes, shown)
    return folder


def _read_headers(url: str, tokens: JournalTokens | None) -> dict[str, str]:
    try:
        return tokens.headers(url) if tokens is not None else {}
    except UnusableToken as error:
        raise JournalUnreachable(f"{url} cannot be read: {error}") from error


def _index(url: str, shown: dict[str, str]) -> Index:
    with _open(url, shown) as answer:
        try:
            return Index.model_validate_json(answer.read())
        except ValidationError as error:
            raise JournalUnreachable(f"{url} is not a journal: give the address that ends in /journal") from error


def _update(url: str, copy: Path, size: int, shown: dict[str, str]) -> None:
    with copy.open("ab+") as file:
        have = _cut_to_whole_lines(file.fileno())
        if have == size:
            return
        start = max(have - _OVERLAP_BYTES, 0)
        if have < size and _went_on(url, file, start, have, shown):
            return
    copy.unlink()
    with copy.open("ab+") as file:
        _went_on(url, file, 0, 0, shown)


def _went_on(url: str, file: BinaryIO, start: int, have: int, shown: dict[str, str]) -> bool:
    """Append the server's new data, unless the copy differs from the server's data from `start` on. Return False if it
    does."""
    with _open(url, shown, {"Range": f"bytes={start}-"} if start else {}) as answer:
        if answer.read(have - start) != os.pread(file.fileno(), have - start, start):
            return False
        shutil.copyfileobj(answer, file)
        return True


def _cut_to_whole_lines(descriptor: int) -> int:
    end = os.fstat(descriptor).st_size
    while end:
        start = max(end - _OVERLAP_BYTES, 0)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    os.ftruncate(descriptor, end)
    return end


def what_to_do(status: int) -> str:
    """Return advice for a response that is not a journal."""
    if status == _UNAUTHORIZED:
        return "it requires a token: give it with --journal-token-file"
    return "is a journal kept there?"


@contextmanager
def _open(url: str, shown: dict[str, str], headers: dict[str, str] | None = None) -> Iterator[HTTPResponse]:
    """Open a URL. The headers `shown` go to this server only, and not to a redirect's target."""
    request = urllib.request.Request(url, headers=headers or {})  # noqa: S310  # the scheme was asked for by the user
    for name, value in shown.items():
        request.add_unredirected_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310  # as above
            yield answer
    except urllib.error.HTTPError as error:
        raise JournalUnreachable(f"{url} answers {error.code} {error.reason}: {what_to_do(error.code)}") from error
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        raise JournalUnreachable(f"{url} cannot be read: {getattr(error, 'reason', error)}") from error
