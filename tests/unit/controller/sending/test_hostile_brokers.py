"""A broker that violates the protocol, at the other end of a real connection: the controller serves the others."""

import asyncio
import re
import struct
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

import pytest
from structlog.testing import capture_logs

from controller_core.controller.loop.clock import SystemClock
from controller_core.controller.loop.events import BrokerAnswered
from controller_core.controller.sending.channels import BrokerChannels, StreamEvent
from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from controller_core.model.metadata import Broker, Endpoint
from controller_core.wire.codecs.entries import make_encoded_topics
from controller_core.wire.codecs.frames import (
    encode_response,
    make_frame,
    make_frame_start,
    read_frame,
    read_request_head,
)
from controller_core.wire.link import BrokerLink
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
    UpdateMetadataResponse,
)
from controller_core.wire.tcp_link import tcp_link_factory
from devcluster.stand_ins.told_versions import API_VERSIONS, make_versions_response

DEADLINE_S: Final = 60
HOSTILE, HEALTHY = BrokerId(1), BrokerId(2)
SHORT_MS: Final = 200
"""The time for an answer of a hostile broker that gives none."""
MOST_MEMORY_BYTES: Final = 16 << 20
ITEMS: Final = 500_000
"""As objects they would take 50 MiB."""
VERSION_ITEMS: Final = struct.pack(">hi", 0, ITEMS) + struct.pack(">hhh", 6, 0, 8) * ITEMS
"""The fields of an answer to ApiVersions that could be read."""
SMALL: Final = LeaderAndIsrRequest(
    controller_id=BrokerId(1000), controller_epoch=ControllerEpoch(1), topic_states=(), live_leaders=()
)
LARGE: Final = replace(SMALL, topic_states=make_encoded_topics(LeaderAndIsrTopicState, [bytes(24 << 20)]))
"""More than the buffers of a connection hold."""
OBEYED: Final = LeaderAndIsrResponse(error_code=ErrorCode.none, topics=())
REFUSED: Final = LeaderAndIsrTopicError(
    topic_id=None,
    partition_errors=(LeaderAndIsrPartitionError(partition_index=0, error_code=ErrorCode.kafka_storage_error),),  # type: ignore[arg-type]
)

Behaviour: TypeAlias = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
"""The reaction of a broker to the content of a request. Afterwards it reads the next one."""


async def obey(content: bytes, writer: asyncio.StreamWriter) -> None:
    head = read_request_head(content)
    answer = make_versions_response() if head.api_key == API_VERSIONS else OBEYED
    writer.write(encode_response(answer, head.correlation_id))


async def stay_silent(content: bytes, writer: asyncio.StreamWriter) -> None:
    pass


async def stop_reading(content: bytes, writer: asyncio.StreamWriter) -> None:
    if read_request_head(content).api_key == API_VERSIONS:
        await obey(content, writer)
    await asyncio.Event().wait()


async def trickle(content: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(make_frame_start(1000, content[4:8]))
    while True:
        writer.write(b"\0")
        await writer.drain()
        await asyncio.sleep(0.01)


async def announce(length: int, content: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(make_frame_start(length))


async def answer_another_request(content: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(encode_response(OBEYED, read_request_head(content).correlation_id + 1))


async def answer_garbage(content: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\xa7" * 1000)


async def answer_with_other_fields(content: bytes, writer: asyncio.StreamWriter) -> None:
    answer = UpdateMetadataResponse(error_code=ErrorCode.stale_broker_epoch)
    writer.write(encode_response(answer, read_request_head(content).correlation_id))


async def answer_with_bytes_left(content: bytes, writer: asyncio.StreamWriter) -> None:
    answer = LeaderAndIsrResponse(error_code=ErrorCode.none, topics=(REFUSED,))
    writer.write(make_frame(encode_response(answer, read_request_head(content).correlation_id)[4:] + b"\0"))


async def close_halfway(content: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(make_frame_start(1000, content[4:8]))
    writer.close()


async def answer_with_items_of_nobody(content: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(make_frame_start(4 + len(VERSION_ITEMS), content[4:8]))
    writer.write(VERSION_ITEMS)


@dataclass(slots=True)
class StandIn:
    """A server that keeps to the protocol, except for `behaviour`."""

    behaviour: Behaviour = obey
    at_versions: bool = False
    """True if the behaviour is for the first request of a connection, not for the later ones."""
    port: int = 0
    connections: int = 0
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        with suppress(ConnectionError, asyncio.CancelledError):
            while (content := await read_frame(reader)) is not None:
                is_versions = read_request_head(content).api_key == API_VERSIONS
                await (self.behaviour if is_versions is self.at_versions else obey)(content, writer)
        writer.close()


@asynccontextmanager
async def run(stand_in: StandIn) -> AsyncIterator[None]:
    listening = await asyncio.start_server(stand_in.serve, "127.0.0.1", 0)
    stand_in.port = listening.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        listening.close()
        for task in stand_in.serving:
            task.cancel()
        await asyncio.gather(*stand_in.serving, return_exceptions=True)


async def wait_until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():  # noqa: ASYNC110 - some conditions are those of a log
            await asyncio.sleep(0.01)


def make_link(broker: Broker, *, of_hostile_ms: int) -> BrokerLink:
    timeout_ms = of_hostile_ms if broker.id == HOSTILE else DEADLINE_S * 1000
    return tcp_link_factory("INTERNAL", "1000", request_timeout_ms=timeout_ms)(broker)


def broker(number: BrokerId, stand_in: StandIn) -> Broker:
    endpoint = Endpoint(listener="INTERNAL", security_protocol="PLAINTEXT", host="127.0.0.1", port=stand_in.port)
    return Broker(id=number, epoch=BrokerEpoch(1), endpoints=(endpoint,))


TOO_LATE: Final = f"did not answer within {SHORT_MS} ms"
UNREADABLE: Final = "answered (LeaderAndIsrRequest|ApiVersions): .*(an array|the bytes|bytes are left)"
CASES: Final[Mapping[str, tuple[Behaviour, str]]] = {
    "never answers": (stay_silent, TOO_LATE),
    "reads nothing": (stop_reading, TOO_LATE),
    "answers a byte at a time for ever": (trickle, TOO_LATE),
    "announces a small answer": (partial(announce, 1000), TOO_LATE),
    "announces 2 GiB": (partial(announce, 2**31 - 1), "a frame claims 2147483647 bytes; the limit is"),
    "announces less than nothing": (partial(announce, -1), "a frame's length is -1"),
    "answers with items of nobody": (answer_with_items_of_nobody, f"a frame claims {4 + len(VERSION_ITEMS)} bytes"),
    "answers another request": (answer_another_request, "correlation id"),
    "answers garbage": (answer_garbage, "a frame's length is -[0-9]+"),
    "answers with the fields of another request": (answer_with_other_fields, UNREADABLE),
    "answers with bytes left over": (answer_with_bytes_left, UNREADABLE),
    "closes within an answer": (close_halfway, "the connection ended after 4 of 1000 bytes"),
}


@pytest.mark.parametrize("at_versions", [False, True], ids=["later", "at once"])
@pytest.mark.parametrize("case", CASES)
async def test_a_hostile_broker_is_tried_again_and_harms_no_other(case: str, at_versions: bool) -> None:
    behaviour, reason = CASES[case]
    hostile, healthy = StandIn(behaviour, at_versions), StandIn()
    events: list[StreamEvent] = []

    def count_answers(number: BrokerId) -> int:
        assert all(isinstance(event, BrokerAnswered) and event.response == OBEYED for event in events)
        return sum(event.broker == number for event in events if isinstance(event, BrokerAnswered))

    with capture_logs() as logs:

        def find_reasons() -> list[Any]:
            return [
                line["error"]
                for line in logs
                if line["event"] == "control request not delivered, trying again" and line["broker"] == HOSTILE
            ]

        async with run(hostile), run(healthy):
            link = partial(make_link, of_hostile_ms=SHORT_MS if reason == TOO_LATE else DEADLINE_S * 1000)
            channels = BrokerChannels(link, SystemClock(), ControllerEpoch(1), events.append)
            for number, stand_in in ((HOSTILE, hostile), (HEALTHY, healthy)):
                channels.add(broker(number, stand_in))
            tracemalloc.start()
            try:
                channels.send(HOSTILE, LARGE if behaviour is stop_reading and at_versions else SMALL)
                for count in range(1, 6):
                    channels.send(HEALTHY, SMALL)
                    await wait_until(lambda: count_answers(HEALTHY) == count)  # noqa: B023
                await wait_until(lambda: hostile.connections >= 2)
                channels.send(HEALTHY, SMALL)
                await wait_until(lambda: count_answers(HEALTHY) == 6)
                most_bytes = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert len(find_reasons()) == 1, "the log has the first of several failures"
            assert re.search(reason, find_reasons()[0])
            assert most_bytes < MOST_MEMORY_BYTES
            assert count_answers(HOSTILE) == 0
            assert channels.count_unanswered() == {HOSTILE: 1, HEALTHY: 0}

            hostile.behaviour = obey
            await wait_until(lambda: count_answers(HOSTILE) == 1)
            await channels.close()
