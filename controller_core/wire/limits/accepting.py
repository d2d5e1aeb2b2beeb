"""Accept the connections of a port, so that a flood of them costs neither descriptors nor log lines.

asyncio's own servers accept a whole backlog at once, show a connection only after its transport exists, and log each
failed attempt with a traceback. Here few connections are accepted at a time, each is shown as a bare socket that can be
refused at once, and failed attempts are logged once a minute, with their number.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import structlog

from controller_core.wire.limits.complaints import Complaints

log = structlog.get_logger()

Take: TypeAlias = Callable[[socket.socket, str], object]
"""Gets an accepted socket and its address, and must close the socket in the end."""

BACKLOG: Final = 128
"""Connections that may wait to be accepted."""
_AT_ONCE: Final = 8
"""Connections that are accepted in one round of the event loop, which also closes those that were refused."""
_PAUSE_S: Final = 0.25
"""Pause after an attempt that failed for want of descriptors or memory."""
_SHORT_OF: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class AcceptingPort:
    """A port whose connections are accepted until it is closed."""

    def __init__(self, listening: list[socket.socket], take: Take) -> None:
        self.sockets: Final = tuple(listening)
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._complaints = Complaints(log)
        self._failures = 0
        self._paused: dict[socket.socket, asyncio.TimerHandle] = {}
        self._is_closed = False
        for each in self.sockets:
            self._loop.add_reader(each, self._accept, each)

    @property
    def port(self) -> int:
        """The number of the port."""
        return int(self.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop accepting. The accepted connections stay open. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        for paused in self._paused.values():
            paused.cancel()
        for each in self.sockets:
            self._loop.remove_reader(each)
            each.close()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, peer = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # All other errors are about one connection: its client has left, or a firewall refuses it.
                self._report(error)
                if error.errno in _SHORT_OF:
                    self._pause(listening)
                return
            accepted.setblocking(False)
            self._take(accepted, str(peer[0]) if peer else "unknown")

    def _report(self, error: OSError) -> None:
        self._failures += 1
        if self._complaints.warn(
            (),
            "connections could not be accepted: if files are short, raise the limit of open files",
            reason=os.strerror(error.errno or 0),
            port=self.port,
            times=self._failures,
        ):
            self._failures = 0

    def _pause(self, listening: socket.socket) -> None:
        self._loop.remove_reader(listening)
        resume = partial(self._loop.add_reader, listening, self._accept, listening)
        self._paused[listening] = self._loop.call_later(_PAUSE_S, resume)


async def open_port(host: str | None, port: int, take: Take) -> AcceptingPort:
    """Listen on all addresses of a host; None: on all addresses of this machine. Raises `OSError` if the port is
    taken."""
    # asyncio resolves and binds, but these sockets do not listen yet.
    bound = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port, start_serving=False)
    listening = [each.dup() for each in bound.sockets]
    bound.close()
    for each in listening:
        each.setblocking(False)
        each.listen(BACKLOG)
    return AcceptingPort(listening, take)
