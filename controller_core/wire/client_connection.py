"""One connection that a broker or a client made to the controller: its requests, answered strictly in order.

A request of an API that is answered here is decoded and answered; any other goes to a real broker (`upstream`). While an
answer is awaited, it is looked now and then whether whoever waits for it is still there. What is wrong with a request
ends this connection, with one line in the log, as Kafka does it, and touches no other. There is no better answer: where a
frame is broken nothing after it can be trusted, and an error response would need the request's format.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from controller_core.wire.decoding import Undecodable
from controller_core.wire.frames import (
    DEFAULT_MAX_FRAME_BYTES,
    FrameError,
    FrameTooLarge,
    NotKafka,
    RequestHead,
    Unencodable,
    read_frame,
    read_request_head,
    with_length,
)
from controller_core.wire.owned_api import (
    KNOWN_API_KEYS,
    REFUSED_API_KEYS,
    AnswerFailedError,
    Api,
    BrokerQuestion,
    NoAnswerNow,
)
from controller_core.wire.relay import UpstreamError
from controller_core.wire.upstream import RelayTargets, Upstream

T = TypeVar("T")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """What one connection, and all of them, may take. The defaults are Kafka's, where Kafka has one."""

    max_connections: int = 10_000
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    max_own_request_bytes: int = 8 * 1024 * 1024
    """For a request that is answered here, and so becomes many objects: it says more than 100,000 partitions."""
    idle_timeout_ms: int = 600_000
    """For the next request to arrive, or the client to take a response (`connections.max.idle.ms`)."""
    upstream_connect_timeout_ms: int = 3_000
    """For a broker to take a connection, before another is tried."""
    upstream_answer_timeout_ms: int = 5_000
    """For a broker to answer what another broker can answer as well."""
    attention_interval_ms: int = 1_000
    """How often it is looked after whether whoever awaits an answer, and whoever owes it, are still there."""


class _RefusedApiError(Exception):
    """A control request from somebody who takes the controller for a broker."""


class ClientConnection:
    """Serves one connection until it ends."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        apis: Mapping[int, Api],
        relay_targets: RelayTargets,
        limits: ListenerLimits,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._apis = apis
        self._limits = limits
        self._upstream = Upstream(
            relay_targets,
            connect_timeout_ms=limits.upstream_connect_timeout_ms,
            answer_timeout_ms=limits.upstream_answer_timeout_ms,
            max_frame_bytes=limits.max_frame_bytes,
        )
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
        except NoAnswerNow as error:
            self._log.info("connection closed: no answer", error=str(error))
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
        self._upstream.close()
        self._writer.close()

    async def _answer_all(self) -> None:
        idle_s = self._limits.idle_timeout_ms / 1000
        while True:
            async with asyncio.timeout(idle_s):
                content = await read_frame(self._reader, self._limits.max_frame_bytes)
            if content is None:
                return
            response = await self._attended(self._answer(content))
            if response is not None:
                self._writer.write(response)
                async with asyncio.timeout(idle_s):
                    await self._writer.drain()

    async def _attended(self, answering: Coroutine[Any, Any, T]) -> T:
        """The answer, unless the client or the broker is gone before: raises `OSError`, `UpstreamError`."""
        task = asyncio.create_task(answering)
        try:
            while True:
                done, _ = await asyncio.wait((task,), timeout=self._limits.attention_interval_ms / 1000)
                if done:
                    return task.result()
                if self._reader.at_eof() or self._reader.exception() is not None:
                    raise ConnectionResetError("the client left before its answer")
                self._upstream.check()
        finally:
            task.cancel()

    async def _answer(self, content: bytes) -> bytes | None:
        head = read_request_head(content)
        api = self._apis.get(head.api_key)
        if api is not None:
            return await self._own_answer(api, head, content)
        if head.api_key in REFUSED_API_KEYS:
            raise _RefusedApiError(
                f"API {head.api_key} is for brokers; the controller takes no commands from other controllers"
            )
        if head.api_key not in KNOWN_API_KEYS:
            raise NotKafka(f"there is no API {head.api_key}")
        answer = await self._upstream.exchange(head, content)
        return None if answer is None else with_length(answer)

    async def _own_answer(self, api: Api, head: RequestHead, content: bytes) -> bytes:
        if len(content) > self._limits.max_own_request_bytes:
            raise FrameTooLarge(
                f"a request of API {head.api_key} has {len(content)} bytes, the limit is "
                f"{self._limits.max_own_request_bytes}: split it"
            )
        answer = await api.respond(head, content)
        if not isinstance(answer, BrokerQuestion):
            return answer
        try:
            return answer.answered(await self._upstream.ask(head, content))
        except (UpstreamError, Undecodable) as error:
            self._log.info("answered without a broker", api_key=head.api_key, error=str(error))
            return answer.otherwise()


def _peer(writer: asyncio.StreamWriter) -> str:
    address = writer.get_extra_info("peername")
    return f"{address[0]}:{address[1]}" if address else "unknown"
