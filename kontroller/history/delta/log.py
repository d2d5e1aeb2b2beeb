"""Keeps Delta Lake's log beside each table of a store. The log names the files of the current generation.

The generation decides. After a change each table with other parts gets a commit that removes and adds their files; no
data is written for it. So Delta's readers see each table change atomically, and all tables within moments. If a command
was killed between the generation and its commits, the next change writes them first.

Removed files stay for the configured days, for older versions and running readers. Then the state becomes a checkpoint,
and the older log is removed.
"""

import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from kontroller.history.delta import checkpoint
from kontroller.history.delta.actions import (
    PROTOCOL,
    Info,
    State,
    columns_of,
    fingerprint,
    folders_of,
    info_of,
    lines_of,
    list_partition_columns,
    make_add,
    make_metadata,
    make_remove,
    select_expired,
    state_after,
    text_of,
)
from kontroller.history.generations.folders import File, Folders
from kontroller.history.generations.generation import Generation, Part, exclude_parts, numbers_in
from kontroller.history.generations.present import is_newest
from kontroller.history.schemas import Table

COMMITS: Final = 10
"""The number of commits after which the log gets a checkpoint, and expired files are removed."""
_COMMIT: Final = ".json"
_CHECKPOINT: Final = ".checkpoint.parquet"
_DAY_MS: Final = 86_400_000
_FILES = dict[Part, list[File]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaLog:
    """The log of one table. All methods raise `StoreError`."""

    folders: Folders
    table: Table

    @property
    def folder(self) -> str:
        return f"{self.table.name}/_delta_log"

    def publish(self, after: Generation, before: Generation) -> bool:
        """Bring the log from the parts of one generation to those of another. Start it again if it matches neither.

        Return True if the log continues, so that it records everything that has left the table.

        If another command publishes at the same time, each version is written by one of them, and the other one looks
        at the log again."""
        if self.table.name not in after.parts:
            return False
        parts, old = after.parts[self.table.name], before.parts.get(self.table.name, ())
        while True:
            versions = self._versions(_COMMIT)
            last = self._info(versions[-1]) if versions else None
            if last is not None and last.parts == fingerprint(parts):
                # Version 0 begins the log again, so it does not know what had left the table before.
                return versions[-1] > 0
            gone, new = self._files(exclude_parts(old, parts)), self._files(exclude_parts(parts, old))
            if last is not None and last.parts == fingerprint(old) and all(gone.values()):
                if self._commit(versions[-1] + 1, after, last, gone, new):
                    return True
            elif not is_newest(self.folders, after):
                # A later change has seen to the commits of this one before it wrote its own.
                return True
            else:
                if self.folders.names(self.folder):
                    self.folders.remove(self.folder)
                if self._commit(0, after, None, {}, self._files(parts)):
                    return False

    def tidy(self, days: int, used: Collection[Part]) -> None:
        """Shorten the log if it has grown by `COMMITS` commits.

        Files that left the table more than so many days ago are removed unless they are in `used` parts, and so is the
        part of the log that only older versions need."""
        versions, newest = self._versions(_COMMIT), (self._versions(_CHECKPOINT) or [-1])[-1]
        if not versions or versions[-1] - newest < COMMITS:
            return
        state = self._state(newest, versions)
        before_ms = now_ms() - days * _DAY_MS
        gone = select_expired(state, before_ms, used)
        for folder in folders_of(gone, state):
            self.folders.remove(f"{self.table.name}/{folder}")
        left = {path: line for path, line in state.items() if path not in gone}
        self.folders.create(self._file(versions[-1], _CHECKPOINT), checkpoint.encode(left))
        self._shorten(before_ms)

    def _commit(self, version: int, after: Generation, last: Info | None, gone: _FILES, new: _FILES) -> bool:
        """Write a commit. Return False if another command has written this version."""
        files, at_ms = [file for each in new.values() for file in each], now_ms()
        divided = list_partition_columns(self.table, files)
        columns = last.columns if last and not files else fingerprint([columns_of(self.table, divided)])
        info = Info(
            at_ms=at_ms,
            id=last.id if last else str(uuid.uuid4()),
            created_ms=last.created_ms if last else at_ms,
            parts=fingerprint(after.parts[self.table.name]),
            columns=columns,
        )
        lines = [info.line(after.number)]
        lines += [] if last else [PROTOCOL]
        lines += [] if last and last.columns == columns else [make_metadata(self.table, divided, info)]
        lines += [make_remove(file, at_ms) for each in gone.values() for file in each]
        lines += [make_add(file) for file in files]
        return self.folders.create(self._file(version, _COMMIT), text_of(lines))

    def _shorten(self, before_ms: int) -> None:
        """Remove the log before the newest checkpoint that is older than this time."""
        checkpoints = self._versions(_CHECKPOINT)
        kept = next((version for version in reversed(checkpoints) if self._read_time_ms(version) < before_ms), 0)
        for suffix in (_CHECKPOINT, _COMMIT):
            for version in takewhile(lambda version: version < kept, self._versions(suffix)):
                self.folders.remove(self._file(version, suffix))

    def _state(self, newest: int, versions: Sequence[int]) -> State:
        """Return the state at the last of the versions, read from the newest checkpoint on."""
        state = checkpoint.read(self.folders.read_bytes(self._file(newest, _CHECKPOINT))) if newest >= 0 else {}
        for version in versions:
            if version > newest:
                state = state_after(state, lines_of(self.folders.read(self._file(version, _COMMIT))))
        return state

    def _info(self, version: int) -> Info | None:
        return info_of(self.folders.read(self._file(version, _COMMIT)))

    def _read_time_ms(self, version: int) -> int:
        info = self._info(version)
        return 0 if info is None else info.at_ms

    def _versions(self, suffix: str) -> list[int]:
        return numbers_in(self.folders.names(self.folder), suffix)

    def _file(self, version: int, suffix: str) -> str:
        return f"{self.folder}/{version:020}{suffix}"

    def _files(self, parts: Iterable[Part]) -> _FILES:
        """Return the files of parts, named relative to the table's folder."""
        return {part: self.folders.files(self.table.name, part) for part in parts}


def now_ms() -> int:
    return time.time_ns() // 1_000_000
