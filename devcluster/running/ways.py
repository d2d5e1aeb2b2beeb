"""A proxy to a server that drops one direction of the traffic: connections stay open, and one side is silent.

To both ends it looks like a network that drops packets one way, until they time out.
"""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto

from devcluster.running.ports import release_port, reserve_port
from devcluster.running.servers import Startable

_CHUNK_BYTES = 65_536


class Silence(Enum):
    """The direction that a way drops."""

    NONE = auto()
    REQUESTS = auto()
    """From the client to the server."""
    ANSWERS = auto()
    """From the server to the client."""


class Way(Startable):
    """Listens on its own loopback port and forwards everything to another port, except the direction that it drops."""

    def __init__(self, to_port: int) -> None:
        self.port = reserve_port()
        self.swallows = Silence.NONE
        self._to_port = to_port
        self._listening: socket.socket | None = None
        self._open: list[socket.socket] = []

    @property
    def connect(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Accept connections from now on."""
        self._listening = socket.create_server(("127.0.0.1", self.port))
        self._spawn(self._accept, self._listening)

    def close(self) -> None:
        """Cut all connections and give the port back."""
        if self._listening is not None:
            with suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
        self.cut()
        release_port(self.port)

    def cut(self) -> None:
        """Cut all connections, and accept others."""
        cut, self._open = self._open, []
        for one in cut:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = listening.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._to_port), timeout=5)
                except OSError:
                    client.close()
                    continue
                server.settimeout(None)
                self._open += client, server
                self._spawn(self._pass_on, client, server, Silence.REQUESTS)
                self._spawn(self._pass_on, server, client, Silence.ANSWERS)

    def _pass_on(self, source: socket.socket, sink: socket.socket, direction: Silence) -> None:
        with suppress(OSError), source, sink:
            while data := source.recv(_CHUNK_BYTES):
                if self.swallows is not direction:
                    sink.sendall(data)
            with suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)

    def _spawn(self, work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True, name=f"way-{self.port}").start()
