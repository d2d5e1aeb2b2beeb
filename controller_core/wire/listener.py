"""The controller's own port: brokers report to it here, and clients that take it for a broker are served by one.

Each connection is a task of its own (`client_connection`), so a slow or hostile one holds up nobody else; their number
is bounded. A controller that resigns closes them all: brokers stay with the controller they know until it disconnects.
"""

import asyncio
from collections.abc import Iterable

import structlog

from controller_core.wire.client_connection import ClientConnection, ListenerLimits
from controller_core.wire.owned_api import Api, LocalApi, OwnedApi, by_key
from controller_core.wire.upstream import RelayTarget, RelayTargets

__all__ = ["Api", "Listener", "ListenerLimits", "LocalApi", "OwnedApi", "RelayTarget", "RelayTargets"]

log = structlog.get_logger()


class Listener:
    """Listens on a host and port. Port 0 takes a free one, which `port` tells after `start`.

    Raises `ValueError` where two of the APIs are the same; `start` raises the `OSError` of a port that is taken."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        apis: Iterable[Api],
        relay_targets: RelayTargets,
        limits: ListenerLimits | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._apis = by_key(apis)
        self._relay_targets = relay_targets
        self._limits = limits or ListenerLimits()
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def port(self) -> int:
        """The port that is listened on."""
        if self._server is None:
            return self._port
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Begins to listen."""
        self._server = await asyncio.start_server(self._accept, self._host, self._port)
        log.info("listening", host=self._host, port=self.port)

    async def close(self) -> None:
        """Stops listening and closes every connection. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self.close_connections()
        if server is not None:
            await server.wait_closed()

    async def close_connections(self) -> None:
        """Closes every connection at once, requests under way included; goes on listening."""
        open_now = list(self._connections)
        for task in open_now:
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self._limits.max_connections:
            log.warning("connection refused: too many", max_connections=self._limits.max_connections)
            writer.transport.abort()
            return
        connection = ClientConnection(
            reader, writer, apis=self._apis, relay_targets=self._relay_targets, limits=self._limits
        )
        task = asyncio.create_task(connection.serve())
        self._connections[task] = writer
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        writer = self._connections.pop(task)
        if task.cancelled():  # perhaps before it ran at all
            writer.transport.abort()
        elif (error := task.exception()) is not None:
            log.error("a connection's task failed", exc_info=error)
