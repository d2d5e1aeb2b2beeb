"""The places to which audit records are exported: a file of JSON lines, and syslog.

Both are handlers of Python's `logging`, which rotate the file and speak to syslog. Here their errors are raised.
"""

import errno
import json
import logging
import os
import socket
from contextlib import suppress
from logging.handlers import RotatingFileHandler, SysLogHandler
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol
from urllib.parse import urlsplit

from controller_core.journal.segments import Unwritable

_TIMEOUT_S: Final = 5.0
SYSLOG_FORM: Final = r"^(udp|tcp)://[^:/\s]+:\d{1,5}$|^/\S+$"
_RECORD: Final = logging.makeLogRecord({"levelno": logging.INFO, "levelname": "INFO"})


class Sink(Protocol):
    """A place for records. The methods are called in one thread, and may wait."""

    name: str

    def write(self, record: dict[str, Any]) -> None:
        """Write a record. Raises `OSError` if it may be tried again, and `Unwritable`."""
        ...

    def close(self) -> None: ...


class FileSink:
    """An append-only file of JSON lines, which is rotated by its size. Each record is flushed."""

    name = "file"

    def __init__(self, path: Path, *, file_bytes: int, files: int) -> None:
        self._handler = _RaisingFile(path, maxBytes=file_bytes, backupCount=files, delay=True, encoding="utf-8")
        self._path = path
        self._is_torn = False

    def write(self, record: dict[str, Any]) -> None:
        """See `Sink`. After a failed write a line end ends what may be a part of a line."""
        line = json.dumps(record, ensure_ascii=False)
        try:
            if self._handler.stream is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            self._handler.emit(_make_log_record(f"\n{line}" if self._is_torn else line))
        except OSError:
            self._is_torn = True
            self.close()
            raise
        self._is_torn = False

    def close(self) -> None:
        """See `Sink`."""
        stream, self._handler.stream = self._handler.stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()


class SyslogSink:
    """Syslog by RFC 5424, over UDP, TCP (each message ends with a line end, RFC 6587), or a socket in a file."""

    name = "syslog"

    def __init__(self, target: str) -> None:
        """`target`: udp://HOST:PORT, tcp://HOST:PORT, or the path of a socket."""
        self._target = target
        self._handler: _RaisingSyslog | None = None
        self._host = socket.gethostname() or "-"

    def write(self, record: dict[str, Any]) -> None:
        """See `Sink`."""
        try:
            if self._handler is None:
                self._handler = self._open()
            self._handler.emit(_make_log_record(self._format(record)))
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                raise Unwritable("the record is too large for syslog's datagrams: use tcp://") from error
            self.close()
            raise

    def close(self) -> None:
        """See `Sink`."""
        handler, self._handler = self._handler, None
        if handler is not None:
            with suppress(OSError):
                handler.close()

    def _open(self) -> "_RaisingSyslog":
        if self._target.startswith("/"):
            return _RaisingSyslog(self._target, SysLogHandler.LOG_AUTHPRIV)
        parts = urlsplit(self._target)
        kind = socket.SOCK_STREAM if parts.scheme == "tcp" else socket.SOCK_DGRAM
        return _RaisingSyslog((parts.hostname or "", parts.port or 0), SysLogHandler.LOG_AUTHPRIV, kind)

    def _format(self, record: dict[str, Any]) -> str:
        head = f"1 {record['time']} {self._host} kontroller {os.getpid()} audit -"
        end = "\n" if self._target.startswith("tcp:") else ""
        return f"{head} {json.dumps(record)}{end}"


class _RaisingFile(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> NoReturn:  # noqa: N802 - logging's name
        raise


class _RaisingSyslog(SysLogHandler):
    append_nul = False

    def createSocket(self) -> None:  # noqa: N802 - logging's name
        """Connect. Over TCP, neither that nor a write waits for longer than the timeout."""
        if isinstance(self.address, str) or self.socktype != socket.SOCK_STREAM:
            super().createSocket()
            return
        self.unixsocket = False
        self.socket = socket.create_connection(self.address, timeout=_TIMEOUT_S)

    def handleError(self, record: logging.LogRecord) -> NoReturn:  # noqa: N802 - logging's name
        raise


def _make_log_record(text: str) -> logging.LogRecord:
    record = logging.makeLogRecord(_RECORD.__dict__)
    record.msg = text
    return record
