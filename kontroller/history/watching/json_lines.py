"""Alarms as lines of JSON in a file or on standard output. Each raise and each clear is one line."""

import asyncio
import os
from typing import Final

import orjson
import structlog

from kontroller.history.watching.alarm_words import row
from kontroller.history.watching.board import Notice
from kontroller.history.watching.threads import run_to_end

log = structlog.get_logger()

_MOST_PENDING_BYTES: Final = 16 << 20
_PAUSE_S: Final = 1.0


class JsonLines:
    """Writes to an open file. If a write fails, up to 16 MiB wait; further alarms are dropped and counted."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self.sent = self.failures = self.dropped = 0
        self._descriptor = descriptor
        self._pending = bytearray()
        self._is_failing = False

    @property
    def pending(self) -> int:
        return self._pending.count(b"\n")

    def receive(self, notice: Notice) -> None:
        line = orjson.dumps(row(notice), option=orjson.OPT_APPEND_NEWLINE)
        if len(self._pending) + len(line) > _MOST_PENDING_BYTES:
            self.dropped += 1
            return
        self._pending += line

    async def run(self) -> None:
        while True:
            if self._pending:
                await run_to_end(self.write)
            await asyncio.sleep(_PAUSE_S)

    def write(self) -> None:
        """Write as many waiting lines as the file takes."""
        try:
            while self._pending:
                data = bytes(self._pending)
                written = os.write(self._descriptor, data)
                self.sent += data.count(b"\n", 0, written)
                del self._pending[:written]
            self._is_failing = False
        except OSError as error:
            self.failures += 1
            if not self._is_failing:
                log.warning("alarms could not be written and will be retried", output=self.name, reason=str(error))
            self._is_failing = True
