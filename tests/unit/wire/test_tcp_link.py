"""The link to a broker over a socket, when the broker misbehaves. The good case is in tests/contract."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from controller_core.model.metadata import Broker, Endpoint
from controller_core.wire.codecs.frames import (
    Unencodable,
    encode_response,
    make_frame,
    read_frame,
    read_request_head,
)
from controller_core.wire.link import BrokerUnreachable, NotConnected, NotSpoken, UnreadableAnswer
from controller_core.wire.messages import ErrorCode, UpdateMetadataRequest, UpdateMetadataResponse
from controller_core.wire.tcp_link import TcpBrokerLink, tcp_link_factory
from devcluster.stand_ins.told_versions import API_VERSIONS, OF_KAFKA_3_9, make_versions_response

DEADLINE_S = 10
REQUEST = UpdateMetadataRequest(
    controller_id=BrokerId(1000), controller_epoch=ControllerEpoch(1), topic_states=(), live_brokers=()
)
ANSWER = UpdateMetadataResponse(error_code=ErrorCode.none)


def right(content: bytes) -> bytes:
    return encode_response(ANSWER, read_request_head(content).correlation_id)


def answer_versions(newest: Mapping[int, int]) -> Callable[[bytes], bytes]:
    """Return a script that answers ApiVersions with these newest versions."""
    return lambda content: encode_response(make_versions_response(newest), read_request_head(content).correlation_id)


told = answer_versions(OF_KAFKA_3_9)


class Server:
    """A server that answers requests by `script`.

    None closes the connection instead, b"" sends no answer. Each connection first asks for the versions, which `tells`
    answers.
    """

    def __init__(self) -> None:
        self.script: Callable[[bytes], bytes | None] = right
        self.tells: Callable[[bytes], bytes | None] = told
        self.writers: list[asyncio.StreamWriter] = []
        self.received: asyncio.Queue[bytes] = asyncio.Queue()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        while (content := await read_frame(reader)) is not None:
            if read_request_head(content).api_key == API_VERSIONS:
                answer = self.tells(content)
            else:
                self.received.put_nowait(content)
                answer = self.script(content)
            if answer is None:
                break
            writer.write(answer)
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    yield server
    listening.close()
    for writer in server.writers:
        writer.close()


@asynccontextmanager
async def open_link(server: Server, request_timeout_ms: int = 10_000) -> AsyncIterator[TcpBrokerLink]:
    link = TcpBrokerLink("127.0.0.1", server.port, client_id="1000", request_timeout_ms=request_timeout_ms)
    yield link
    await link.close()


async def test_requests_share_one_connection_and_carry_the_controllers_id(server: Server) -> None:
    async with open_link(server) as link:
        assert [await link.send(REQUEST) for _ in range(3)] == [ANSWER] * 3
    heads = [read_request_head(server.received.get_nowait()) for _ in range(3)]
    assert len(server.writers) == 1
    assert [(head.api_key, head.api_version) for head in heads] == [(6, 8)] * 3
    assert len({head.correlation_id for head in heads}) == 3


async def test_a_request_waits_for_the_answer_to_the_one_before(server: Server) -> None:
    server.script = lambda content: b""
    async with open_link(server) as link:
        first, second = asyncio.create_task(link.send(REQUEST)), asyncio.create_task(link.send(REQUEST))
        async with asyncio.timeout(DEADLINE_S):
            content = await server.received.get()
            assert server.received.empty()
            server.script = right
            server.writers[0].write(right(content))
            assert [await first, await second] == [ANSWER, ANSWER]


BAD_ANSWERS = {
    "another request's": lambda content: encode_response(ANSWER, read_request_head(content).correlation_id + 1),
    "too short": lambda content: make_frame(b"\0\0"),
    "cut inside": lambda content: make_frame(right(content)[4:-1]),
    "too long": lambda content: make_frame(right(content)[4:] + b"\0"),
    "no error code": lambda content: make_frame(right(content)[4:9] + b"\x7f\xff\0"),
    "another protocol": lambda content: b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.parametrize("case", BAD_ANSWERS)
async def test_an_answer_that_makes_no_sense_is_unreadable_and_costs_the_connection(server: Server, case: str) -> None:
    server.script = BAD_ANSWERS[case]
    async with open_link(server) as link:
        with pytest.raises(UnreadableAnswer):
            await link.send(REQUEST)
        server.script = right
        assert await link.send(REQUEST) == ANSWER
        assert len(server.writers) == 2


@pytest.mark.parametrize("case", ["another request's", "too short", "another protocol"])
async def test_whoever_answers_as_no_broker_would_is_not_reached(server: Server, case: str) -> None:
    server.tells = BAD_ANSWERS[case]
    async with open_link(server) as link:
        with pytest.raises(UnreadableAnswer, match="ApiVersions"):
            await link.reach()
        server.tells = told
        await link.reach()


@pytest.mark.parametrize(("newest", "version"), [(7, 7), (8, 8), (9, 8)])
async def test_a_request_is_sent_in_the_newest_version_that_both_sides_know(
    server: Server, newest: int, version: int
) -> None:
    server.tells = answer_versions(OF_KAFKA_3_9 | {6: newest})
    async with open_link(server) as link:
        assert await link.send(REQUEST) == ANSWER
        assert read_request_head(server.received.get_nowait()).api_version == version


@pytest.mark.parametrize(
    ("newest", "said"),
    [
        (OF_KAFKA_3_9 | {6: 6}, r"UpdateMetadataRequest up to version 6, and 7 is needed: .* Kafka 2\.8"),
        ({0: 12}, r"LeaderAndIsrRequest up to version -1, and 5 is needed: .* and ZooKeeper"),
    ],
    ids=["an older release", "without ZooKeeper"],
)
async def test_a_broker_that_does_not_speak_as_we_do_is_not_reached_and_sent_nothing(
    server: Server, newest: dict[int, int], said: str
) -> None:
    server.tells = answer_versions(newest)
    async with open_link(server) as link:
        with pytest.raises(NotSpoken, match=said):
            await link.reach()
        with pytest.raises(NotSpoken, match=said):
            await link.send(REQUEST)
        assert server.received.empty()
        server.tells = told
        assert await link.send(REQUEST) == ANSWER, "it was upgraded"


async def test_who_does_not_say_what_he_speaks_was_sent_nothing(server: Server) -> None:
    server.tells = lambda content: None
    async with open_link(server) as link:
        with pytest.raises(NotConnected, match="without an answer"):
            await link.send(REQUEST)
        server.tells = told
        assert await link.send(REQUEST) == ANSWER


@pytest.mark.parametrize("part", [0, 3, 6], ids=["nothing", "half a length", "half an answer"])
async def test_a_connection_that_closes_instead_of_answering_is_unreachable(server: Server, part: int) -> None:
    def close_after_a_part(content: bytes) -> None:
        server.writers[-1].write(right(content)[:part])

    server.script = close_after_a_part
    async with open_link(server) as link:
        with pytest.raises(BrokerUnreachable) as raised:
            await link.send(REQUEST)
        assert not isinstance(raised.value, NotConnected), "the request may have been read"
        server.script = right
        assert await link.send(REQUEST) == ANSWER


async def test_a_broker_that_does_not_answer_in_time_is_unreachable(server: Server) -> None:
    server.script = lambda content: b""
    async with open_link(server, request_timeout_ms=300) as link:
        with pytest.raises(BrokerUnreachable, match="did not answer within 300 ms") as raised:
            await link.send(REQUEST)
        assert not isinstance(raised.value, NotConnected), "the request may be read yet"


async def test_a_late_answer_is_not_taken_for_that_of_the_next_request(server: Server) -> None:
    server.script = lambda content: b""
    async with open_link(server) as link:
        first = asyncio.create_task(link.send(REQUEST))
        async with asyncio.timeout(DEADLINE_S):
            content = await server.received.get()
            first.cancel()
            await asyncio.wait({first})
            server.writers[0].write(right(content))
            server.script = right
            assert await link.send(REQUEST) == ANSWER
        assert first.cancelled()
        assert len(server.writers) == 2


async def test_an_idle_connection_that_the_broker_closed_is_opened_again_without_a_failure(server: Server) -> None:
    async with open_link(server) as link:
        assert await link.send(REQUEST) == ANSWER
        connection = link._connection
        assert connection is not None
        server.writers[0].close()
        async with asyncio.timeout(DEADLINE_S):
            while not connection.reader.at_eof():  # noqa: ASYNC110 - a stream has no event for its end
                await asyncio.sleep(0)
        assert await link.send(REQUEST) == ANSWER


async def test_closing_the_link_fails_the_request_under_way_and_those_that_wait(server: Server) -> None:
    server.script = lambda content: b""
    async with open_link(server) as link:
        sent = [asyncio.create_task(link.send(REQUEST)) for _ in range(3)]
        async with asyncio.timeout(DEADLINE_S):
            await server.received.get()
            await link.close()
            failures = await asyncio.gather(*sent, return_exceptions=True)
        assert [type(failure) for failure in failures] == [BrokerUnreachable] * 3
        assert server.received.empty()


async def test_a_request_that_cannot_be_written_leaves_the_link_usable(server: Server) -> None:
    too_large = UpdateMetadataRequest(
        controller_id=BrokerId(2**40), controller_epoch=ControllerEpoch(1), topic_states=(), live_brokers=()
    )
    async with open_link(server) as link:
        with pytest.raises(Unencodable):
            await link.send(too_large)
        assert await link.send(REQUEST) == ANSWER


def broker(*endpoints: Endpoint) -> Broker:
    return Broker(id=BrokerId(4), epoch=BrokerEpoch(1), endpoints=endpoints)


def endpoint(listener: str, port: int, security_protocol: str = "PLAINTEXT") -> Endpoint:
    return Endpoint(listener=listener, security_protocol=security_protocol, host="127.0.0.1", port=port)


async def test_the_factory_takes_the_brokers_endpoint_on_the_listener_by_name(server: Server) -> None:
    link = tcp_link_factory("CONTROL", "1000")(broker(endpoint("CLIENTS", 1), endpoint("CONTROL", server.port)))
    assert await link.send(REQUEST) == ANSWER
    await link.close()


@pytest.mark.parametrize(
    ("endpoints", "complaint"),
    [
        ([endpoint("CLIENTS", 1), endpoint("INTERNAL", 2)], r"no listener 'CONTROL' .*it has CLIENTS, INTERNAL"),
        ([], "it has none"),
        ([endpoint("CONTROL", 1, "SASL_SSL")], "CONTROL uses SASL_SSL: give its settings by --properties"),
    ],
    ids=["another name", "no listener", "another protocol"],
)
async def test_a_broker_that_cannot_be_spoken_to_is_unreachable_and_says_what_to_change(
    endpoints: list[Endpoint], complaint: str
) -> None:
    link = tcp_link_factory("CONTROL", "1000")(broker(*endpoints))
    with pytest.raises(NotConnected, match=complaint):
        await link.send(REQUEST)
    with pytest.raises(BrokerUnreachable, match=complaint):
        await link.reach()
    await link.close()
