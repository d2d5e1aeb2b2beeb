"""Checks of files on this machine before Spark reads them.

One damaged compressed file would end Spark's whole job, and Spark would expand any amount. So such files are set aside:
Spark gets the other files, and the user an error for each. Lines above the cap stay out of Java's memory, because its
reader skips them (`limit_lines`); here they are found and named. A check reads a hundred times as fast as Spark parses.
"""

import bz2
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from io import BufferedIOBase
from pathlib import Path
from typing import Final, NamedTuple

from kontroller.history.sources.caps import Caps

_BLOCK_BYTES: Final = 1 << 20
_EXPANDING: Final[dict[str, type[gzip.GzipFile | bz2.BZ2File]]] = {".gz": gzip.GzipFile, ".bz2": bz2.BZ2File}
_ESCAPED: Final = str.maketrans({each: f"\\{each}" for each in "\\{}[]*?"})
LONGEST_LINE_OPTION: Final = "mapreduce.input.linerecordreader.line.maxlength"
"""Hadoop's reader of lines skips those that have so many bytes with their ends, and holds no more of them."""
_END_BYTES: Final = 2
_IGNORED: Final = ("_", ".")


class Checked(NamedTuple):
    """The places for Spark to read instead of a folder, and an error for each file or line that is left out."""

    places: list[str]
    """Patterns of Spark, each of which matches one place."""
    problems: list[str]


def limit_lines(caps: Caps | None = None) -> dict[str, str]:
    """Return the option of Spark's reader of text that keeps lines above the cap out of its memory."""
    return {LONGEST_LINE_OPTION: str((caps or Caps()).line_bytes + _END_BYTES)}


def check_files(folder: str, patterns: Iterable[str], caps: Caps) -> Checked:
    """Check the files below a folder whose names match, as Spark would choose them.

    The folder itself is returned unless a file has to be set aside. A folder with no other file is left out."""
    good: list[str] = []
    problems: list[str] = []
    is_whole = True
    for path in _list_files(folder, tuple(patterns)):
        try:
            long_line = _find_long_line(path, caps)
        except _Unusable as error:
            problems.append(f"{path} is left out: {error}")
            is_whole = False
            continue
        good.append(_escape(path))
        if long_line is not None:
            problems.append(
                f"{path} has a line of more than --max-line-bytes {caps.line_bytes}, which is left out: it begins at "
                f"byte {long_line:,} of the contents. Remove it, or raise the option if it is a record"
            )
    return Checked([_escape(Path(folder))] if is_whole else good, problems)


def _escape(path: Path) -> str:
    return str(path.absolute()).translate(_ESCAPED)


def _list_files(folder: str, patterns: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files that Spark reads: it follows links, and ignores names that begin with a dot or underscore."""
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith(_IGNORED))
        for name in sorted(names):
            if not name.startswith(_IGNORED) and any(fnmatch(name, each) for each in patterns):
                yield Path(parent, name)


class _Unusable(Exception):
    """A file that Spark must not read."""


def _find_long_line(path: Path, caps: Caps) -> int | None:
    """Return the place of the first line above the cap. Raises `_Unusable`."""
    expand = _EXPANDING.get(path.suffix)
    try:
        if expand is None:
            # Only a file above the cap can have a line above it.
            with path.open("rb") as plain:
                return _scan(plain, caps.line_bytes, None) if path.stat().st_size > caps.line_bytes else None
        with expand(path) as expanded:
            return _scan(expanded, caps.line_bytes, caps.file_bytes)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _Unusable(f"it is damaged or not complete ({error}). Copy it again, or remove it") from error
    except OSError as error:
        raise _Unusable(f"it cannot be read: {error.strerror or error}") from error


def _scan(file: BufferedIOBase, line_bytes: int, file_bytes: int | None) -> int | None:
    found: int | None = None
    size = begin = 0
    block_bytes = min(_BLOCK_BYTES, line_bytes)
    # No line within a block is above the cap, so only lines that go on from one block into the next are measured.
    while block := file.read(block_bytes):
        first = block.find(b"\n")
        end = size + (first if first >= 0 else len(block))
        if found is None and end - begin > line_bytes:
            found = begin
        if first >= 0:
            begin = size + block.rfind(b"\n") + 1
        size += len(block)
        if file_bytes is not None and size > file_bytes:
            raise _Unusable(
                f"it expands to more than --max-file-bytes {file_bytes}. Raise that if its contents are a journal or log"
            )
        if found is not None and file_bytes is None:
            break
    return found
