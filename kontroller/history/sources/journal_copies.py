"""Copies of served journals.

A segment only grows, except that its writer may cut off a torn or failed last write. So a copy is cut to its last whole
line, and continues only if its end still matches the server's. Otherwise the segment is fetched again.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
from yarl import URL

from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_http import CHUNK_BYTES, JournalUnreadable, ServedSegments
from kontroller.history.sources.journal_tls import JournalTls
from kontroller.history.sources.journal_tokens import JournalTokens

_OVERLAP_BYTES: Final = 4096
_LONGEST_S: Final = 1800.0
"""The seconds after which a fetch leaves the rest to the next one, so that a slow server delays the others no longer."""
_OF_OUR_SERVERS: Final = "/journal"
_OLD_PORT: Final = 80


class Copied(NamedTuple):
    """The folder of a copy, and an error for each part of the journal that is missing in it."""

    folder: Path
    problems: list[str]


def fetch(
    url: str,
    below: Path,
    tokens: JournalTokens | None = None,
    tls: JournalTls | None = None,
    caps: Caps | None = None,
    *,
    monotonic_s: Callable[[], float] = time.monotonic,
) -> Copied:
    """Update the copy of the journal at `url` in its folder below `below` (`find_place`).

    Segments that the server has removed are kept. Raises `JournalUnreadable` if there is no list of segments, and
    `OSError` for the copy's own disk.
    """
    address, caps = _parse(url), caps or Caps()
    end_s = monotonic_s() + _LONGEST_S
    with asyncio.Runner() as runner:
        session = runner.run(_open_session())
        try:
            served = ServedSegments(address, session, tokens or JournalTokens(), tls, caps)
            listed = runner.run(served.list_segments())
            folder = find_place(address, below)
            folder.mkdir(parents=True, exist_ok=True)
            chosen, problems = _choose(served, listed, caps)
            for name, size in chosen.items():
                if monotonic_s() > end_s:
                    problems.append(f"{served.name} is slow: the next ingest fetches the rest from {name} on")
                    break
                try:
                    _update(runner, served, folder / name, size)
                except JournalUnreadable as error:
                    problems.append(str(error))
                    break
        finally:
            runner.run(session.close())
    return Copied(folder, problems)


def find_place(address: URL, below: Path) -> Path:
    """Return the folder for copies of the journal at an address. No two journals share one.

    It is `HOST-PORT` for the path of our own servers, otherwise `HOST-PORT-DIGEST`. Older versions had `HOST-PORT` for
    all paths: such a folder stays with the first of its journals that asks. A file beside each folder says whose it is.
    The scheme does not count, so a journal keeps its folder when its server begins to use TLS.
    """
    path = address.path.rstrip("/") + (f"?{address.query_string}" if address.query_string else "")
    whose = f"{address.host}:{address.port}{path}\n"
    short = f"{address.host}-{address.port}"
    long = f"{short}-{hashlib.sha256(path.encode()).hexdigest()[:12]}"
    own = short if path == _OF_OUR_SERVERS else long
    old = f"{address.host}-{address.explicit_port or _OLD_PORT}"
    is_old = not (below / own).is_dir() and (below / old).is_dir()
    for name in (*((old,) if is_old else ()), own):
        owner = below / f"{name}.address"
        if not owner.exists():
            below.mkdir(parents=True, exist_ok=True)
            owner.write_text(whose)
        if owner.read_text() == whose:
            return below.joinpath(name)
    return below.joinpath(long)


def _parse(url: str) -> URL:
    try:
        address = URL(url)
    except ValueError as error:
        raise JournalUnreadable(f"{url} is not an address: give one such as http://HOST:9404/journal") from error
    if not address.host:
        raise JournalUnreadable(f"{url} names no host: give an address such as http://HOST:9404/journal")
    return address


async def _open_session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession()


def _choose(served: ServedSegments, listed: dict[str, int], caps: Caps) -> tuple[dict[str, int], list[str]]:
    """Return the segments to copy, and an error for each other one."""
    chosen: dict[str, int] = {}
    problems: list[str] = []
    total = 0
    for name, size in listed.items():
        if size > caps.file_bytes:
            problems.append(served.word_too_large(name, size))
            continue
        total += size
        if total > caps.journal_bytes:
            problems.append(
                f"{served.name} is left out from {name} on: it has more than --max-journal-bytes {caps.journal_bytes}. "
                "Raise that if its controller keeps so much"
            )
            break
        chosen[name] = size
    return chosen, problems


def _update(runner: asyncio.Runner, served: ServedSegments, copy: Path, size: int) -> None:
    with copy.open("ab+") as file:
        have = _cut_to_whole_lines(file.fileno())
        if have == size:
            return
        start = max(have - _OVERLAP_BYTES, 0)
        end = os.pread(file.fileno(), have - start, start)
        if have > size or (end and runner.run(served.part(copy.name, start, len(end))) != end):
            file.truncate(0)
            have = 0
        while have < size and (data := runner.run(served.part(copy.name, have, min(CHUNK_BYTES, size - have)))):
            file.write(data)
            have += len(data)


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
