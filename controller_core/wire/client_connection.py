"""One connection that a broker or a client made to the controller: its requests, answered strictly in order.

A request of an owned API is decoded and answered here; any other goes to a real broker (`relay`). What is wrong with a
request ends this connection, with one line in the log, as Kafka does it, and touches no other. There is no better
answer: where a frame is broken nothing after it can be trusted, and an error response would need the request's format.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import structlog

from controller_core.wire.decoding import Undecodable
from controller_core.wire.frames import (
    DEFAULT_MAX_FRAME_BYTES,
    FrameError,
    NotKafka,
    Unencodable,
    read_frame,
    read_request_head,
    with_length,
)
from controller_core.wire.owned_api import KNOWN_API_KEYS, REFUSED_API_KEYS, AnswerFailedError, OwnedApi
from controller_core.wire.relay import Relay, UpstreamError, open_relay

RelayTarget: TypeAlias = Callable[[], tuple[str, int] | None]
"""The host and port of a live broker, or None where there is none. Asked once per client connection."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """What one connection, and all of them, may take. The defaults are Kafka's, where Kafka has one."""

    max_connections: int = 10_000
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    idle_timeout_ms: int = 600_000
    """For the next request to arrive, or the client to take a response (`connections.max.idle.ms`)."""
    upstream_connect_timeout_ms: int = 10_000


class _RefusedApiError(Exception):
    """A control request from somebody who takes the controller for a broker."""


class ClientConnection:
    """Serves one connection until it ends."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        apis: Mapping[int, OwnedApi[Any]],
        relay_target: RelayTarget,
        limits: ListenerLimits,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._apis = apis
        self._relay_target = relay_target
        self._limits = limits
        self._relay: Relay | None = None
        self._log = log.bind(peer=_peer(writer))
        writer.transport.set_write_buffer_limits(high=0)  # drained means sent

    async def serve(self) -> None:
        """Answers requests until the client leaves or something is wrong; the connection is closed on return."""
        try:
            await self._answer_all()
        except (FrameError, Undecodable) as error:
            self._log.warning("connection closed: bad request", kind=type(error).__name__, error=str(error))
        except _RefusedApiError as error:
            self._log.warning("connection closed: refused request", error=str(error))
        except UpstreamError as error:
            self._log.info("connection closed: no broker to relay to", error=str(error))
        except TimeoutError:
            self._log.info("connection closed: idle", idle_timeout_ms=self._limits.idle_timeout_ms)
            self._writer.transport.abort()
        except OSError as error:
            self._log.debug("connection closed by the client", error=str(error))
        except (AnswerFailedError, Unencodable):
            self._log.exception("connection closed: a request could not be answered")
        finally:
            self.close()

    def close(self) -> None:
        """Closes the connection, and the upstream one with it. Idempotent."""
        if self._relay is not None:
            self._relay.close()
        self._writer.close()

    async def _answer_all(self) -> None:
        idle_s = self._limits.idle_timeout_ms / 1000
        while True:
            async with asyncio.timeout(idle_s):
                content = await read_frame(self._reader, self._limits.max_frame_bytes)
            if content is None:
                return
            response = await self._answer(content)
            if response is not None:
                self._writer.write(response)
                async with asyncio.timeout(idle_s):
                    await self._writer.drain()

    async def _answer(self, content: bytes) -> bytes | None:
        head = read_request_head(content)
        api = self._apis.get(head.api_key)
        if api is not None:
            return await api.respond(head, content)
        if head.api_key in REFUSED_API_KEYS:
            raise _RefusedApiError(
                f"API {head.api_key} is for brokers; the controller takes no commands from other controllers"
            )
        if head.api_key not in KNOWN_API_KEYS:
            raise NotKafka(f"there is no API {head.api_key}")
        if self._relay is None:
            self._relay = await self._open_relay()
        answer = await self._relay.exchange(head, content)
        return None if answer is None else with_length(answer)

    async def _open_relay(self) -> Relay:
        target = self._relay_target()
        if target is None:
            raise UpstreamError("no live broker is known")
        return await open_relay(
            target,
            connect_timeout_ms=self._limits.upstream_connect_timeout_ms,
            max_frame_bytes=self._limits.max_frame_bytes,
            on_close=self._writer.close,
        )


def _peer(writer: asyncio.StreamWriter) -> str:
    address = writer.get_extra_info("peername")
    return f"{address[0]}:{address[1]}" if address else "unknown"
