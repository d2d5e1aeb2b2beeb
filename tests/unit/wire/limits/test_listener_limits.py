"""The limits of requests and connections at the controller's port, over real sockets, with the production tables."""

import asyncio
import struct
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsResponse
from kio.schema.alter_user_scram_credentials.v0 import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kio.schema.alter_user_scram_credentials.v0.request import ScramCredentialUpsertion
from kio.schema.create_topics.v7 import CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v0 import MetadataRequest as MetadataRequest0
from kio.schema.metadata.v0.request import MetadataRequestTopic as MetadataRequestTopic0
from kio.schema.metadata.v9 import MetadataRequest
from kio.schema.produce.v9 import ProduceRequest
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32
from kio.static.protocol import RequestPayload, ResponsePayload
from structlog.testing import capture_logs

from controller_core.admin.apis import CLIENT_APIS
from controller_core.controller.serving.broker_apis import BROKER_APIS
from controller_core.model.access import parse_address
from controller_core.model.authorization.principal import Caller
from controller_core.wire.codecs.entries import encode_unsigned_varint
from controller_core.wire.codecs.frames import decode_response, encode_request, make_frame
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.gate import OpenGate
from controller_core.wire.listener.listener import Acceptor, Listener, ListenerLimits, LocalApi, OwnedApi
from controller_core.wire.listener.owned_api import AskBroker
from controller_core.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse
from tests.unit.wire.listener.test_client_connections import (
    METADATA,
    Peer,
    ask_broker,
    connect,
    metadata_of,
    produce,
    shutdown,
    start_broker,
    start_listener,
    warnings,
)

MB = 1024 * 1024
DEADLINE_S = 20
CREATE_TOPICS, DELETE_TOPICS, ALTER_REASSIGNMENTS, CONTROLLED_SHUTDOWN, UPDATE_METADATA = 19, 20, 45, 7, 6


class Answered:
    """Answers all APIs of the controller, and counts the requests that arrive."""

    def __init__(self) -> None:
        self.requests: list[RequestPayload] = []

    async def answer(self, request: Any) -> ResponsePayload:
        self.requests.append(request)
        (api,) = (api for api in (*CLIENT_APIS, *BROKER_APIS) if api.versions.newest is type(request))
        return api.refuse(request, ErrorCode.none)

    @asynccontextmanager
    async def listen(self, **limits: int) -> AsyncIterator[Listener]:
        apis = [OwnedApi(api.versions, self.answer, api.refuse) for api in (*CLIENT_APIS, *BROKER_APIS)]
        acceptor = Acceptor(host="127.0.0.1", port=0, apis=apis, relay_targets=lambda: ())
        listener = Listener([acceptor], limits=ListenerLimits(**limits))
        await listener.start()
        try:
            yield listener
        finally:
            await listener.close()


def frame(api_key: int, version: int, body: bytes) -> bytes:
    """A request with a flexible header."""
    return make_frame(struct.pack(">hhih", api_key, version, 5, -1) + b"\0" + body)


def delete_nameless(count: int) -> bytes:
    """DeleteTopics with so many empty names: a byte each."""
    return frame(
        DELETE_TOPICS, 5, encode_unsigned_varint(count + 1) + b"\x01" * count + struct.pack(">i", 1000) + b"\0"
    )


def validate_nameless(count: int) -> bytes:
    """CreateTopics, validate only, with so many topics that say nothing: ten bytes each."""
    topic = b"\x01" + struct.pack(">ih", 1, 1) + b"\x01\x01\x00"
    return frame(
        CREATE_TOPICS, 7, encode_unsigned_varint(count + 1) + topic * count + struct.pack(">i?", 1000, True) + b"\0"
    )


def reassign(partitions: int, replicas: tuple[int, ...] = (1, 2, 3)) -> bytes:
    """AlterPartitionReassignments of so many partitions of one topic."""
    brokers = encode_unsigned_varint(len(replicas) + 1) + b"".join(struct.pack(">i", broker) for broker in replicas)
    each = b"".join(struct.pack(">i", number) + brokers + b"\0" for number in range(partitions))
    topic = b"\x02t" + encode_unsigned_varint(partitions + 1) + each + b"\0"
    return frame(ALTER_REASSIGNMENTS, 0, struct.pack(">i", 1000) + b"\x02" + topic + b"\0")


async def read_reassign_error(peer: Peer, partitions: int) -> ErrorCode:
    """The error of the answer to `reassign`."""
    peer.send(reassign(partitions))
    return decode_response(AlterPartitionReassignmentsResponse, await peer.answer()).error_code


@asynccontextmanager
async def peak_memory() -> AsyncIterator[Callable[[], int]]:
    """The most bytes that Python has allocated since the beginning of the block."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "request_frame", [delete_nameless(2_000_000), validate_nameless(250_000)], ids=["DeleteTopics", "CreateTopics"]
)
async def test_millions_of_items_are_refused_before_any_of_them_is_made(request_frame: bytes) -> None:
    answered = Answered()
    with capture_logs() as logged:
        async with answered.listen() as listener, connect(listener) as peer, peak_memory() as peak:
            peer.send(request_frame)
            assert await peer.receive() is None
            assert peak() < 10 * len(request_frame)
    assert warnings(logged) == [("connection closed: bad request", "TooManyItems")]
    assert answered.requests == []


async def test_an_api_with_an_error_for_the_whole_request_refuses_too_many_items_in_its_own_words() -> None:
    answered = Answered()
    async with answered.listen() as listener, connect(listener) as peer:
        assert await read_reassign_error(peer, 200_000) is ErrorCode.invalid_request
        await read_reassign_error(peer, 1)
        assert len(answered.requests) == 1, "the connection goes on"


async def test_what_a_client_does_again_and_again_is_in_the_log_once() -> None:
    command = make_frame(struct.pack(">hhih", UPDATE_METADATA, 0, 5, -1))
    with capture_logs() as logged:
        async with Answered().listen() as listener:
            for _ in range(3):
                async with connect(listener) as peer:
                    await read_reassign_error(peer, 200_000)
                    peer.send(command)
                    assert await peer.receive() is None
        async with Answered().listen(idle_timeout_ms=50) as listener:
            for _ in range(3):
                async with connect(listener) as idle:
                    assert await idle.receive() is None
    assert [line["event"] for line in logged if line["event"] != "listening"] == [
        "request refused: too large",
        "connection closed: refused request",
        "connection closed: idle, or the client did not read its answer",
    ]


@pytest.mark.parametrize("is_of_any_broker", [True, False], ids=["of any broker", "of each broker for itself"])
async def test_only_what_any_broker_answers_alike_is_put_to_one_when_it_is_too_much_for_us(
    is_of_any_broker: bool,
) -> None:
    async def never(_: RequestPayload) -> ResponsePayload:
        raise AssertionError("it has too many items to be answered here")

    api = LocalApi(versions=Versions(MetadataRequest0), answer=never, is_of_any_broker=is_of_any_broker)
    request = encode_request(
        MetadataRequest0(topics=tuple(MetadataRequestTopic0(name=TopicName("t" * 60)) for _ in range(30_000))),
        11,
        "client",
    )
    async with start_broker() as broker:
        async with start_listener(broker, apis=(api,)) as listener, connect(listener) as peer:
            peer.send(request)
            assert (await peer.receive() is not None) is is_of_any_broker
        assert len(broker.received) == is_of_any_broker


async def test_more_entries_than_an_api_takes_are_refused_one_by_one() -> None:
    answered = Answered()
    async with answered.listen() as listener, connect(listener) as peer:
        peer.send(validate_nameless(5_001))
        response = decode_response(CreateTopicsResponse, await peer.answer())
        assert [topic.error_code for topic in response.topics] == [ErrorCode.invalid_request] * 5_001
        assert answered.requests == []


async def test_the_largest_reassignment_of_tools_is_served() -> None:
    answered = Answered()
    async with answered.listen() as listener, connect(listener) as peer:
        assert await read_reassign_error(peer, 100_000) is ErrorCode.none
        assert len(answered.requests) == 1


async def test_what_tools_send_at_the_most_is_served() -> None:
    answered = Answered()
    async with answered.listen() as listener, connect(listener) as peer:
        names = b"".join(b"\x08" + b"t%06d" % number for number in range(20_000))
        peer.send(frame(DELETE_TOPICS, 5, encode_unsigned_varint(20_001) + names + struct.pack(">i", 1000) + b"\0"))
        await peer.answer()
        assignments = b"".join(struct.pack(">iBiii", number, 4, 1, 2, 3) + b"\0" for number in range(10_000))
        topic = b"\x02t" + struct.pack(">ih", -1, -1) + encode_unsigned_varint(10_001) + assignments + b"\x01\0"
        peer.send(frame(CREATE_TOPICS, 7, b"\x02" + topic + struct.pack(">i?", 1000, False) + b"\0"))
        await peer.answer()
        assert len(answered.requests) == 2


async def test_a_request_that_is_too_large_for_its_api_is_refused_before_its_body_is_there() -> None:
    cases = {CONTROLLED_SHUTDOWN: 64 * 1024, CREATE_TOPICS: 8 * MB}
    for api_key, limit in cases.items():
        with capture_logs() as logged:
            async with Answered().listen() as listener, connect(listener) as peer:
                peer.send(struct.pack(">ihhi", limit + 1, api_key, 3, 5))
                assert await peer.receive() is None
        assert warnings(logged) == [("connection closed: bad request", "FrameTooLarge")]


async def test_only_records_may_be_passed_on_in_the_largest_frames() -> None:
    async with start_listener(max_passed_on_bytes=1000, max_frame_bytes=1100, frame_timeout_ms=1) as listener:
        for head, kind in ((METADATA[4:12], "FrameTooLarge"), (produce(ProduceRequest, 1, 5)[4:12], "FrameCut")):
            with capture_logs() as logged:
                async with connect(listener) as peer:
                    peer.send(struct.pack(">i", 1100) + head)
                    assert await peer.receive() is None
            assert warnings(logged) == [("connection closed: bad request", kind)]


async def test_a_request_that_does_not_arrive_gives_its_memory_back_after_a_while() -> None:
    head = struct.pack(">ihhi", 60_000, CONTROLLED_SHUTDOWN, 3, 5)
    large = make_frame(shutdown()[4:] + bytes(50_000))
    async with (
        start_listener(brokers_bytes=60_000, frame_timeout_ms=50) as listener,
        connect(listener) as slow,
        connect(listener) as patient,
    ):
        slow.send(head + bytes(1000))
        assert await slow.receive() is None
        patient.send(large)
        assert await patient.answer()


async def test_requests_wait_for_memory_unread_until_others_are_answered() -> None:
    begun, third_begun, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()
    served: list[int] = []

    async def slowly(request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        served.append(int(request.broker_id))
        (third_begun if request.broker_id == 3 else begun).set()
        await may_end.wait()
        return ControlledShutdownResponse(error_code=ErrorCode.none, remaining_partitions=())

    def pad_shutdown(broker: int) -> bytes:
        return make_frame(shutdown(broker)[4:] + bytes(50_000))

    async with (
        start_listener(answer=slowly, brokers_bytes=60_000) as listener,
        connect(listener) as first,
        connect(listener) as second,
        connect(listener) as third,
    ):
        first.send(pad_shutdown(1))
        await begun.wait()
        second.send(pad_shutdown(2))
        third.send(shutdown(3))
        await third_begun.wait()
        assert served == [1, 3]
        may_end.set()
        assert await first.answer()
        assert await second.answer()
        assert served == [1, 3, 2]


async def test_so_many_requests_of_a_kind_are_in_flight_and_more_wait_unread() -> None:
    begun, may_end = asyncio.Semaphore(0), asyncio.Event()
    served: list[int] = []

    async def slowly(request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        served.append(int(request.broker_id))
        begun.release()
        await may_end.wait()
        return ControlledShutdownResponse(error_code=ErrorCode.none, remaining_partitions=())

    async with (
        start_broker() as broker,
        start_listener(broker, answer=slowly, max_requests_in_flight=2) as listener,
        AsyncExitStack() as stack,
    ):
        peers = [await stack.enter_async_context(connect(listener)) for _ in range(4)]
        for number, peer in enumerate(peers[:3], start=1):
            peer.send(shutdown(number))
            if number <= 2:
                await begun.acquire()
        peers[3].send(METADATA)
        assert await peers[3].receive() is not None, "what others ask has places of its own"
        assert served == [1, 2]
        may_end.set()
        for peer in peers[:3]:
            assert await peer.answer()
        assert served == [1, 2, 3]


async def test_strangers_who_take_their_time_to_send_hold_up_no_broker_and_no_administrator() -> None:
    answered = Answered()
    async with (
        answered.listen(strangers_bytes=60_000) as listener,
        connect(listener) as slow,
        connect(listener) as patient,
    ):
        slow.send(struct.pack(">ihhi", 60_000, 0, 9, 5))  # Produce
        patient.send(make_frame(shutdown()[4:] + bytes(50_000)))
        await patient.answer()
        patient.send(reassign(1_000))
        await patient.answer()


class _BrokersElsewhere(OpenGate):
    """Permits everything to everybody, and knows a broker at another address than the strangers'."""

    def is_broker(self, caller: Caller) -> bool:
        return caller.address == parse_address("127.0.0.2")


async def test_what_a_broker_asks_does_not_wait_for_strangers_either() -> None:
    """A broker's fetches are requests that everybody may send."""

    async def answer(_: RequestPayload) -> ResponsePayload:
        return metadata_of("orders")

    api = LocalApi(versions=Versions(MetadataRequest), answer=answer)
    async with (
        start_listener(apis=(api,), gate=_BrokersElsewhere(), strangers_bytes=60_000) as listener,
        connect(listener) as slow,
        connect(listener, source="127.0.0.2") as broker,
    ):
        slow.send(struct.pack(">ihhi", 60_000, 3, 9, 5))
        broker.send(make_frame(METADATA[4:] + bytes(50_000)))
        await broker.answer()


async def test_an_answer_that_is_not_taken_gives_its_memory_back_after_a_while() -> None:
    async def large(_: RequestPayload) -> ResponsePayload:
        return metadata_of("x" * 32_000)

    api = LocalApi(versions=Versions(MetadataRequest), answer=large)
    async with (
        start_listener(apis=(api,), frame_timeout_ms=50, max_connections=1) as listener,
        connect(listener) as greedy,
        asyncio.timeout(DEADLINE_S),
    ):
        greedy.send(METADATA * 1000)
        is_served = False
        while not is_served:  # the next is, when the first is gone
            async with connect(listener) as patient:
                with suppress(ConnectionError):
                    patient.send(METADATA)
                    is_served = await patient.receive() is not None


@pytest.mark.parametrize("is_asked", [False, True], ids=["passed on", "asked in the controller's stead"])
async def test_a_brokers_answer_is_passed_on_as_it_comes(is_asked: bool) -> None:
    apis = [LocalApi(versions=Versions(MetadataRequest), answer=ask_broker(AskBroker()))] if is_asked else []
    async with start_broker() as broker:
        length = 50 * MB
        broker.script = lambda content: struct.pack(">i", length) + content[4:8] + b"begins"
        async with start_listener(broker, apis=apis) as listener, connect(listener) as peer:
            peer.send(METADATA)
            async with asyncio.timeout(DEADLINE_S):
                assert await peer.reader.readexactly(14) == struct.pack(">i", length) + METADATA[8:12] + b"begins"
            broker.writers[0].write(b" and goes on")
            async with asyncio.timeout(DEADLINE_S):
                assert await peer.reader.readexactly(12) == b" and goes on"


async def test_a_broker_that_stops_within_its_answer_is_not_waited_for() -> None:
    async with start_broker() as broker:
        broker.script = lambda content: struct.pack(">i", 100) + content[4:8]
        async with start_listener(broker, idle_timeout_ms=50) as listener, connect(listener) as peer:
            peer.send(METADATA)
            async with asyncio.timeout(DEADLINE_S):
                assert await peer.reader.read() == struct.pack(">i", 100) + METADATA[8:12]


# Rights of callers


class StrictGate:
    """A gate with one broker's address. All others may send only requests that need no right."""

    def __init__(self, broker: str) -> None:
        self._broker = parse_address(broker)

    def is_broker(self, caller: Caller) -> bool:
        return caller.address == self._broker

    def is_administrator(self, caller: Caller) -> bool:
        return False

    async def why_not(self, api_key: int, caller: Caller) -> ErrorCode | None:
        return None if self.is_broker(caller) else ErrorCode.cluster_authorization_failed


@asynccontextmanager
async def connect_from(address: str, listener: Listener) -> AsyncIterator[Peer]:
    peer = Peer(*await asyncio.open_connection("127.0.0.1", listener.port, local_addr=(address, 0)))
    try:
        yield peer
    finally:
        peer.writer.close()


BROKER, STRANGER = "127.0.0.2", "127.0.0.77"


def _credentials() -> bytes:
    upsertion = ScramCredentialUpsertion(
        name="admin", mechanism=i8(1), iterations=i32(8192), salt=b"salt", salted_password=b"stolen"
    )
    return encode_request(AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,)), 5, "stranger")


async def test_a_stranger_is_refused_by_the_apis_own_error_and_a_broker_is_served() -> None:
    answered = Answered()
    apis = [OwnedApi(api.versions, answered.answer, api.refuse) for api in (*CLIENT_APIS, *BROKER_APIS)]
    acceptor = Acceptor(host="127.0.0.1", port=0, apis=apis, relay_targets=lambda: ())
    listener = Listener([acceptor], gate=StrictGate(BROKER))
    await listener.start()
    try:
        async with connect_from(STRANGER, listener) as peer:
            peer.send(shutdown() + _credentials() + delete_nameless(2))
            refused = decode_response(ControlledShutdownResponse, await peer.answer())
            assert refused.error_code is ErrorCode.cluster_authorization_failed
            (user,) = decode_response(AlterUserScramCredentialsResponse, await peer.answer()).results
            assert (user.user, user.error_code) == ("admin", ErrorCode.cluster_authorization_failed)
            await peer.answer()
        assert answered.requests == []
        async with connect_from(BROKER, listener) as peer:
            peer.send(shutdown())
            await peer.answer()
        assert len(answered.requests) == 1
    finally:
        await listener.close()


async def test_a_stranger_may_not_even_send_much_of_what_is_refused() -> None:
    answered = Answered()
    apis = [OwnedApi(api.versions, answered.answer, api.refuse) for api in CLIENT_APIS]
    acceptor = Acceptor(host="127.0.0.1", port=0, apis=apis, relay_targets=lambda: ())
    listener = Listener([acceptor], gate=StrictGate(BROKER))
    await listener.start()
    try:
        with capture_logs() as logged:
            async with connect_from(STRANGER, listener) as peer:
                peer.send(struct.pack(">ihhi", 64 * 1024 + 1, CREATE_TOPICS, 7, 5))
                assert await peer.receive() is None
        assert warnings(logged) == [("connection closed: bad request", "FrameTooLarge")]
    finally:
        await listener.close()


async def test_nothing_is_passed_on_where_the_relay_is_switched_off() -> None:
    with capture_logs() as logged:
        async with start_listener(is_relay=False) as listener:
            async with connect(listener) as peer:
                peer.send(METADATA)
                assert await peer.receive() is None
            async with connect(listener) as peer:
                peer.send(shutdown())
                assert await peer.answer()
    (refused,) = (line for line in logged if line["log_level"] == "warning")
    assert "--no-relay" in refused["error"]


# Limits of connections


async def test_a_thousand_connections_that_ask_nothing_leave_room_for_brokers_and_for_us() -> None:
    async with (
        start_listener(gate=StrictGate(BROKER), max_connections=400, max_connections_per_address=300) as listener,
        AsyncExitStack() as idle,
    ):
        for number in range(1000):
            peer = await idle.enter_async_context(connect_from(f"127.0.0.{70 + number % 4}", listener))
            peer.send(struct.pack(">i", 20)[: number % 5])  # idle, or within a length
        async with connect_from("127.0.0.9", listener) as late:
            late.send(shutdown())
            assert await late.receive() is None
        async with connect_from(BROKER, listener) as broker:
            broker.send(shutdown())
            assert await broker.answer()


async def test_who_connects_and_asks_nothing_is_disconnected_sooner_than_who_has_asked() -> None:
    async with start_listener(first_request_timeout_ms=1) as listener, connect(listener) as silent:
        assert await silent.receive() is None
    async with start_listener(first_request_timeout_ms=2000) as listener, connect(listener) as peer:
        peer.send(shutdown())
        await peer.answer()
        peer.send(shutdown())
        assert await peer.answer()
