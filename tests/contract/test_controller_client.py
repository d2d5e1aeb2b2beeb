"""The guarantees of a client of a cluster's controller, for the simulation and the client over TCP alike.

The controllers here only say that they are it; `tests/real` shows that Kafka's own and ours are found.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Protocol

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponseBroker
from kio.schema.types import BrokerId
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import OutcomeUnknown, Unreachable
from controller_core.client.transport import request_client
from controller_core.client.transport.request_client import Address, ControllerClient, RequestClient
from controller_core.wire.codecs.frames import decode_request, encode_response, read_frame, read_request_head
from controller_core.wire.messages import NO_THROTTLE
from devcluster.running.ports import release_port, reserve_port
from simulation.controller_client import Answer, SimulatedControllerClient

TIMEOUT_MS = 60_000
QUESTION = ListPartitionReassignmentsRequest(topics=None)


def says(text: str, error_code: ErrorCode = ErrorCode.none) -> Answer:
    async def answer(_: RequestPayload) -> ResponsePayload:
        return ListPartitionReassignmentsResponse(
            throttle_time=NO_THROTTLE, error_code=error_code, error_message=text, topics=()
        )

    return answer


class Subject(Protocol):
    """A cluster of two members, 1 and 2, and the way to its controller."""

    requests: ControllerClient
    asked: list[str]
    """The requests that the members received, except those that only find the controller."""

    async def set_controller(self, member: int | None, answer: Answer | None = None) -> None:
        """Set the controller and its answer; a member without an answer is unreachable."""
        ...

    def lose_answer(self) -> None:
        """Lose the next answer of the controller."""
        ...


class SimulatedSubject:
    def __init__(self) -> None:
        self._answer: Answer | None = None
        self.asked: list[str] = []
        self.simulated = SimulatedControllerClient(lambda: self._answer)
        self.requests: ControllerClient = self.simulated

    async def set_controller(self, member: int | None, answer: Answer | None = None) -> None:
        async def note_request(request: RequestPayload) -> ResponsePayload:
            assert answer is not None
            self.asked.append(type(request).__name__)
            return await answer(request)

        self._answer = note_request if answer else None

    def lose_answer(self) -> None:
        self.simulated.answers_to_lose = 1


class TcpSubject:
    """Two servers that know each other, and a client that knows both of them and one that is down."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.controller: int | None = None
        self._answers: dict[int, Answer] = {}
        self._loses_answer = False
        self._ports: dict[int, int] = {}

    async def start(self, cleanup: AsyncExitStack) -> None:
        for member in (1, 2):
            server = await asyncio.start_server(self._make_server(member), "127.0.0.1", 0)
            cleanup.callback(server.close)
            self._ports[member] = server.sockets[0].getsockname()[1]
        down = reserve_port()
        cleanup.callback(release_port, down)
        self.requests: ControllerClient = RequestClient(
            [Address("127.0.0.1", port) for port in (down, *self._ports.values())],
            timeout_ms=TIMEOUT_MS,
            connect_timeout_ms=TIMEOUT_MS,
        )
        self._down = down

    async def set_controller(self, member: int | None, answer: Answer | None = None) -> None:
        self.controller, self._answers = member, {member: answer} if member and answer else {}

    def lose_answer(self) -> None:
        self._loses_answer = True

    def _make_server(self, member: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while (frame := await read_frame(reader)) is not None:
                    head = read_request_head(frame)
                    request = decode_request(load_request_schema(head.api_key, head.api_version), frame)
                    response = await self._answer(member, request)
                    if response is None:
                        return
                    writer.write(encode_response(response, head.correlation_id))
            finally:
                writer.close()

        return serve

    async def _answer(self, member: int, request: RequestPayload) -> ResponsePayload | None:
        if isinstance(request, MetadataRequest):
            return self._metadata()
        self.asked.append(type(request).__name__)
        answer = self._answers.get(member, says("I am not", ErrorCode.not_controller))
        if self._loses_answer:
            self._loses_answer = False
            return None
        return await answer(request)

    def _metadata(self) -> MetadataResponse:
        is_reachable = self.controller in self._answers
        return MetadataResponse(
            throttle_time=NO_THROTTLE,
            brokers=tuple(
                MetadataResponseBroker(
                    node_id=BrokerId(member),
                    host="127.0.0.1",
                    port=i32(port if is_reachable or member != self.controller else self._down),
                    rack=None,
                )
                for member, port in self._ports.items()
            ),
            cluster_id="test",
            controller_id=BrokerId(self.controller or -1),
            topics=(),
        )


@pytest.fixture(params=["simulated", "tcp"])
async def subject(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Subject]:
    if request.param == "simulated":
        yield SimulatedSubject()
        return
    # The pause is as long as the timeout, so a failed attempt is the last one. The test does not wait for the timeout,
    # which can then be too long for even a slow machine to miss.
    monkeypatch.setattr(request_client, "_PAUSE_S", TIMEOUT_MS / 1000)
    async with AsyncExitStack() as cleanup:
        tcp = TcpSubject()
        await tcp.start(cleanup)
        yield tcp


async def ask_question(subject: Subject) -> str | None:
    return (await subject.requests.ask(QUESTION, ListPartitionReassignmentsResponse)).error_message


async def test_the_controller_answers(subject: Subject) -> None:
    await subject.set_controller(2, says("I am 2"))
    assert await ask_question(subject) == "I am 2"
    assert subject.asked == ["ListPartitionReassignmentsRequest"]


async def test_the_next_controller_answers_the_next_request(subject: Subject) -> None:
    await subject.set_controller(1, says("I am 1"))
    assert await ask_question(subject) == "I am 1"
    await subject.set_controller(2, says("I am 2"))
    assert await ask_question(subject) == "I am 2"


async def test_an_error_code_is_an_answer(subject: Subject) -> None:
    await subject.set_controller(1, says("no", ErrorCode.cluster_authorization_failed))
    response = await subject.requests.ask(QUESTION, ListPartitionReassignmentsResponse)
    assert response.error_code is ErrorCode.cluster_authorization_failed


@pytest.mark.parametrize("member", [None, 1], ids=["there is none", "it does not listen"])
async def test_without_a_controller_nothing_is_done_and_the_error_says_so(subject: Subject, member: int | None) -> None:
    await subject.set_controller(member)
    with pytest.raises(Unreachable):
        await ask_question(subject)
    assert subject.asked == []


async def test_who_is_not_the_controller_any_more_is_not_taken_for_it(subject: Subject) -> None:
    await subject.set_controller(1, says("not me", ErrorCode.not_controller))
    with pytest.raises(Unreachable, match="not the controller"):
        await ask_question(subject)


async def test_a_request_whose_answer_is_lost_is_not_sent_again(subject: Subject) -> None:
    await subject.set_controller(1, says("I am 1"))
    subject.lose_answer()
    with pytest.raises(OutcomeUnknown):
        await ask_question(subject)
    assert subject.asked == ["ListPartitionReassignmentsRequest"]
    assert await ask_question(subject) == "I am 1"
