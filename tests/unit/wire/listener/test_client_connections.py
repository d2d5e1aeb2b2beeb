"""The controller's own port, over real sockets: local answers, relayed requests, and the ends of connections."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from kio.schema.api_versions import v0 as api_versions_0
from kio.schema.api_versions import v3 as api_versions_3
from kio.schema.api_versions import v4 as api_versions_4
from kio.schema.api_versions.v3 import ApiVersionsRequest
from kio.schema.envelope.v0 import EnvelopeRequest
from kio.schema.metadata.v0 import MetadataRequest as MetadataRequest0
from kio.schema.metadata.v9 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v9.request import MetadataRequestTopic
from kio.schema.produce.v8 import ProduceRequest as ProduceRequest8
from kio.schema.produce.v9 import ProduceRequest as ProduceRequest9
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload
from structlog.testing import capture_logs

from controller_core.model.access import AccessRules
from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from controller_core.wire.codecs.frames import (
    decode_response,
    encode_request,
    encode_response,
    limit_answer,
    make_frame,
    make_frame_start,
    read_correlation_id,
    read_frame,
    read_request_head,
)
from controller_core.wire.codecs.versions import Versions, convert
from controller_core.wire.limits.broker_addresses import BrokerAddresses
from controller_core.wire.limits.gate import AddressGate, Gate
from controller_core.wire.listener.listener import (
    Acceptor,
    Api,
    Listener,
    ListenerLimits,
    LocalApi,
    OwnedApi,
    RelayTarget,
    RelayTargets,
)
from controller_core.wire.listener.owned_api import AskBroker, NoAnswerNow
from controller_core.wire.listener.relay import Address, Relay, UpstreamError
from controller_core.wire.messages import (
    NO_THROTTLE,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ErrorCode,
    UpdateMetadataRequest,
)
from devcluster.running.ports import release_port, reserve_port

DEADLINE_S = 10


class Peer:
    """A client's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def receive(self) -> bytes | None:
        """The next frame's content; None when the other end closed the connection, orderly or not."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await read_frame(self.reader)
            except ConnectionResetError:
                return None

    async def answer(self) -> bytes:
        content = await self.receive()
        assert content is not None, "the connection was closed instead of an answer"
        return content


class ScriptedBroker:
    """A broker that keeps its requests, and answers them by `script`."""

    def __init__(self) -> None:
        self.address = Address("127.0.0.1", 0)
        self.is_shutting_down = False
        self.is_out_of_reach = False
        self.is_live = True
        self.received: list[bytes] = []
        self.connections = 0
        self.script: Callable[[bytes], bytes | None] = lambda content: make_frame(content[4:8] + b"answer")
        self.writers: list[asyncio.StreamWriter] = []
        self.changed = asyncio.Condition()

    @property
    def target(self) -> RelayTarget:
        return RelayTarget(
            address=self.address, is_shutting_down=self.is_shutting_down, is_out_of_reach=self.is_out_of_reach
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        while (content := await read_frame(reader)) is not None:
            self.received.append(content)
            answer = self.script(content)
            if answer is not None:
                writer.write(answer)
            async with self.changed:
                self.changed.notify_all()
        writer.close()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S), self.changed:
            await self.changed.wait_for(condition)


@asynccontextmanager
async def start_broker() -> AsyncIterator[ScriptedBroker]:
    broker = ScriptedBroker()
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    broker.address = Address(*server.sockets[0].getsockname())
    yield broker
    server.close()
    for writer in broker.writers:
        writer.close()


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    async with start_broker() as broker:
        yield broker


@pytest.fixture
async def other_broker() -> AsyncIterator[ScriptedBroker]:
    async with start_broker() as broker:
        yield broker


async def agree(request: ControlledShutdownRequest) -> ControlledShutdownResponse:
    code = ErrorCode.none if request.broker_id == 1 else ErrorCode.broker_not_available
    return ControlledShutdownResponse(error_code=code, remaining_partitions=())


def local_acceptor(apis: Iterable[Api], relay_targets: RelayTargets | None = lambda: ()) -> Acceptor:
    return Acceptor(host="127.0.0.1", port=0, apis=apis, relay_targets=relay_targets)


@asynccontextmanager
async def start_listener(
    *brokers: ScriptedBroker,
    apis: Iterable[Api] = (),
    answer: Callable[[ControlledShutdownRequest], Awaitable[Any]] = agree,
    gate: Gate | None = None,
    is_relay: bool = True,
    **limits: int,
) -> AsyncIterator[Listener]:
    acceptor = local_acceptor(
        [OwnedApi(Versions(ControlledShutdownRequest), answer), *apis],
        (lambda: [broker.target for broker in brokers if broker.is_live]) if is_relay else None,
    )
    listener = Listener([acceptor], limits=ListenerLimits(**limits), gate=gate)
    await listener.start()
    try:
        yield listener
    finally:
        await listener.close()


@asynccontextmanager
async def connect(listener: Listener, *, source: str = "127.0.0.1") -> AsyncIterator[Peer]:
    peer = Peer(*await asyncio.open_connection("127.0.0.1", listener.port, local_addr=(source, 0)))
    try:
        yield peer
    finally:
        peer.writer.close()


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with capture_logs() as lines:
        yield lines


def warnings(logged: list[Any]) -> list[tuple[str, str]]:
    return [(line["event"], line.get("kind", "")) for line in logged if line["log_level"] in ("warning", "error")]


def shutdown(broker: int = 1, correlation_id: int = 5) -> bytes:
    request = ControlledShutdownRequest(broker_id=BrokerId(broker), broker_epoch=BrokerEpoch(9))
    return encode_request(request, correlation_id, f"broker-{broker}")


def error_code(content: bytes) -> ErrorCode:
    return decode_response(ControlledShutdownResponse, content).error_code


def metadata_request() -> MetadataRequest:
    return MetadataRequest(
        topics=None,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def metadata_of(cluster_id: str) -> MetadataResponse:
    no_time = i32Timedelta.parse(timedelta())
    return MetadataResponse(throttle_time=no_time, brokers=(), topics=(), cluster_id=cluster_id)


def ask_broker(answer: AskBroker | None) -> Callable[[RequestPayload], Awaitable[AskBroker]]:
    """Return a handler of a local API that asks a broker this question, or gives no answer."""

    async def on_request(_: RequestPayload) -> AskBroker:
        if answer is None:
            raise NoAnswerNow("not the controller")
        return answer

    return on_request


METADATA = encode_request(metadata_request(), 11, "client")


def produce(kind: type[Any], acks: int, correlation_id: int) -> bytes:
    request = kind(transactional_id="mine", acks=i16(acks), timeout=i32Timedelta.parse(timedelta()), topic_data=())
    return encode_request(request, correlation_id, "producer")


async def test_an_owned_request_is_answered_by_its_handler() -> None:
    async with start_listener() as listener, connect(listener) as peer:
        peer.send(shutdown(broker=1, correlation_id=5))
        content = await peer.answer()
        assert read_correlation_id(content) == 5
        assert error_code(content) == ErrorCode.none


async def test_requests_of_one_connection_are_answered_in_order_even_when_sent_at_once() -> None:
    async with start_listener() as listener, connect(listener) as peer:
        peer.send(b"".join(shutdown(broker=number % 2, correlation_id=number) for number in range(20)))
        assert [read_correlation_id(await peer.answer()) for _ in range(20)] == list(range(20))


async def test_a_request_that_arrives_in_pieces_is_answered() -> None:
    async with start_listener() as listener, connect(listener) as peer:
        for byte in shutdown():
            peer.send(bytes([byte]))
            await peer.writer.drain()
        assert error_code(await peer.answer()) == ErrorCode.none


@pytest.mark.parametrize(
    "request_frame",
    [METADATA, encode_request(ApiVersionsRequest(client_software_name="c", client_software_version="1"), 12, "client")],
    ids=["Metadata", "ApiVersions"],
)
async def test_what_the_controller_does_not_own_reaches_a_broker_unchanged(
    broker: ScriptedBroker, request_frame: bytes
) -> None:
    async with start_listener(broker) as listener, connect(listener) as peer:
        peer.send(request_frame)
        assert await peer.answer() == request_frame[8:12] + b"answer"
        assert broker.received == [request_frame[4:]]


async def test_owned_and_relayed_requests_keep_their_order_on_one_connection(broker: ScriptedBroker) -> None:
    async with start_listener(broker) as listener, connect(listener) as peer:
        peer.send(METADATA + shutdown(correlation_id=12) + METADATA)
        assert [read_correlation_id(await peer.answer()) for _ in range(3)] == [11, 12, 11]
        assert broker.connections == 1


async def test_every_client_has_an_upstream_connection_of_its_own(broker: ScriptedBroker) -> None:
    async with start_listener(broker) as listener, connect(listener) as one, connect(listener) as other:
        for peer in (one, other, one):
            peer.send(METADATA)
            await peer.answer()
        assert broker.connections == 2


async def test_an_owned_request_needs_no_broker(broker: ScriptedBroker) -> None:
    async with start_listener(broker) as listener, connect(listener) as peer:
        peer.send(shutdown())
        await peer.answer()
        assert broker.connections == 0


@pytest.mark.parametrize("kind", [ProduceRequest8, ProduceRequest9], ids=["v8", "v9"])
async def test_a_produce_request_without_acks_gets_no_answer_and_blocks_nothing(
    broker: ScriptedBroker, kind: type[Any]
) -> None:
    def answer(content: bytes) -> bytes | None:
        return None if read_request_head(content).correlation_id == 1 else make_frame(content[4:8])

    broker.script = answer
    async with start_listener(broker) as listener, connect(listener) as peer:
        peer.send(produce(kind, acks=0, correlation_id=1) + produce(kind, acks=1, correlation_id=2))
        assert read_correlation_id(await peer.answer()) == 2
        assert len(broker.received) == 2


async def test_a_client_is_disconnected_when_no_broker_is_live() -> None:
    async with start_listener() as listener, connect(listener) as peer:
        peer.send(METADATA)
        assert await peer.receive() is None


async def test_a_client_whose_broker_ended_the_connection_between_two_requests_goes_on_with_another(
    broker: ScriptedBroker, other_broker: ScriptedBroker
) -> None:
    async with start_listener(broker, other_broker) as listener, connect(listener) as peer:
        peer.send(METADATA)
        await peer.answer()
        (first,) = (b for b in (broker, other_broker) if b.connections)
        first.is_live = False
        first.writers[0].close()
        peer.send(METADATA + shutdown(correlation_id=12))
        assert [read_correlation_id(await peer.answer()) for _ in range(2)] == [11, 12]
        assert (broker.connections, other_broker.connections) == (1, 1)


async def test_a_broker_that_refuses_connections_is_passed_over(broker: ScriptedBroker) -> None:
    gone = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    refusing = ScriptedBroker()
    refusing.address = Address(*gone.sockets[0].getsockname())
    gone.close()
    await gone.wait_closed()
    async with start_listener(refusing, broker) as listener, connect(listener) as peer:
        peer.send(METADATA)
        await peer.answer()
        assert broker.connections == 1


async def test_a_broker_that_shuts_down_gets_no_further_request_where_there_is_another(
    broker: ScriptedBroker, other_broker: ScriptedBroker
) -> None:
    async with start_listener(broker, other_broker) as listener, connect(listener) as peer:
        peer.send(METADATA)
        await peer.answer()
        broker.is_shutting_down = True
        peer.send(METADATA)
        await peer.answer()
        assert len(broker.received) == len(other_broker.received) == 1


async def test_the_last_broker_serves_although_it_shuts_down(broker: ScriptedBroker) -> None:
    broker.is_shutting_down = True
    async with start_listener(broker) as listener, connect(listener) as peer:
        peer.send(METADATA + METADATA)
        await peer.answer()
        await peer.answer()
        assert broker.connections == 1


async def test_a_client_is_disconnected_when_its_broker_leaves_the_cluster_without_a_word(
    broker: ScriptedBroker,
) -> None:
    broker.script = lambda content: None
    async with start_listener(broker, attention_interval_ms=1) as listener, connect(listener) as peer:
        peer.send(METADATA)
        await broker.wait_until(lambda: len(broker.received) == 1)
        broker.is_live = False
        assert await peer.receive() is None


async def test_a_client_that_leaves_before_its_answer_is_not_waited_for(broker: ScriptedBroker) -> None:
    broker.script = lambda content: None
    async with start_listener(broker, attention_interval_ms=1) as listener:
        async with connect(listener) as peer:
            peer.send(METADATA)
            await broker.wait_until(lambda: len(broker.received) == 1)
        async with asyncio.timeout(DEADLINE_S):
            await broker.writers[0].wait_closed()


async def test_an_answer_whose_client_left_is_given_up_and_the_next_client_is_served() -> None:
    given_up = asyncio.Event()

    async def never(request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        if request.broker_id != 1:
            return await agree(request)
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        raise AssertionError("nobody sets that event")

    async with start_listener(answer=never, attention_interval_ms=1) as listener:
        async with connect(listener) as peer:
            peer.send(shutdown(broker=1))
            await peer.writer.drain()
        async with asyncio.timeout(DEADLINE_S):
            await given_up.wait()
        async with connect(listener) as peer:
            peer.send(shutdown(broker=2))
            assert error_code(await peer.answer()) == ErrorCode.broker_not_available


async def test_thousands_of_requests_at_once_hold_up_nobody(logged: list[Any]) -> None:
    count = 5000
    async with start_listener() as listener, connect(listener) as greedy, connect(listener) as modest:
        greedy.send(b"".join(shutdown(correlation_id=number) for number in range(count)))
        modest.send(shutdown(broker=2))
        assert error_code(await modest.answer()) == ErrorCode.broker_not_available
        assert read_correlation_id(await greedy.answer()) == 0
        assert greedy.reader.at_eof() is False
        assert [read_correlation_id(await greedy.answer()) for _ in range(count - 1)] == list(range(1, count))
        assert warnings(logged) == []


# Local answers, some of them with the help of a broker


async def test_what_changes_nothing_is_asked_of_the_next_broker_when_one_is_silent(
    broker: ScriptedBroker, other_broker: ScriptedBroker
) -> None:
    silent = broker
    silent.script = lambda content: None
    api = LocalApi(versions=Versions(MetadataRequest), answer=ask_broker(AskBroker()))
    async with (
        start_listener(silent, other_broker, apis=(api,), upstream_answer_timeout_ms=20) as listener,
        connect(listener) as peer,
    ):
        peer.send(METADATA)
        assert await peer.answer() == METADATA[8:12] + b"answer"
        assert (len(silent.received), len(other_broker.received)) == (1, 1)


@pytest.mark.parametrize("is_amended", [False, True])
@pytest.mark.parametrize("closes", [False, True])
async def test_what_changes_something_is_asked_of_no_other_broker_when_its_answer_is_lost(
    broker: ScriptedBroker, other_broker: ScriptedBroker, closes: bool, is_amended: bool
) -> None:
    def lose(_: bytes) -> None:
        if closes:
            broker.writers[-1].close()

    broker.script = lose
    change = AskBroker(may_be_twice=False, amended=(lambda response: response) if is_amended else None)
    api = LocalApi(versions=Versions(MetadataRequest), answer=ask_broker(change))
    async with (
        start_listener(broker, other_broker, apis=(api,), upstream_answer_timeout_ms=20) as listener,
        connect(listener) as peer,
    ):
        peer.send(METADATA)
        assert await peer.receive() is None, "the client has to find out if it was done"
        assert (len(broker.received), len(other_broker.received)) == (1, 0)


async def test_what_changes_something_is_asked_of_the_next_broker_when_one_accepts_no_connection(
    broker: ScriptedBroker, other_broker: ScriptedBroker
) -> None:
    broker.address = Address("127.0.0.1", 1)
    api = LocalApi(versions=Versions(MetadataRequest), answer=ask_broker(AskBroker(may_be_twice=False)))
    async with start_listener(broker, other_broker, apis=(api,)) as listener, connect(listener) as peer:
        peer.send(METADATA)
        assert await peer.answer() == METADATA[8:12] + b"answer"


async def test_a_broker_that_was_silent_is_asked_last_by_all_connections(
    broker: ScriptedBroker, other_broker: ScriptedBroker
) -> None:
    silent = broker
    silent.script = lambda content: None
    api = LocalApi(versions=Versions(MetadataRequest), answer=ask_broker(AskBroker()))
    async with start_listener(silent, other_broker, apis=(api,), upstream_answer_timeout_ms=20) as listener:
        for _ in range(3):
            async with connect(listener) as peer:
                peer.send(METADATA)
                assert await peer.answer() == METADATA[8:12] + b"answer"
    assert (len(silent.received), len(other_broker.received)) == (1, 3)


async def test_brokers_that_the_controller_does_not_reach_hold_up_no_question(
    broker: ScriptedBroker, other_broker: ScriptedBroker
) -> None:
    async with start_broker() as cut_off_meanwhile:
        cut_off = broker
        cut_off.is_out_of_reach = True

        def cut(_: bytes) -> None:
            cut_off_meanwhile.is_out_of_reach = True

        cut_off.script = cut_off_meanwhile.script = lambda content: None
        first, other_broker.script = other_broker, cut
        async with start_broker() as answering:
            brokers = (cut_off, first, cut_off_meanwhile, answering)
            api = LocalApi(versions=Versions(MetadataRequest), answer=ask_broker(AskBroker()))
            async with (
                start_listener(*brokers, apis=(api,), upstream_answer_timeout_ms=20) as listener,
                connect(listener) as peer,
            ):
                peer.send(METADATA)
                assert await peer.answer() == METADATA[8:12] + b"answer"
            assert [len(one.received) for one in brokers] == [0, 1, 0, 1]


async def test_a_broker_that_the_controller_does_not_reach_is_asked_where_there_is_no_other(
    broker: ScriptedBroker,
) -> None:
    broker.is_out_of_reach = True
    api = LocalApi(versions=Versions(MetadataRequest), answer=ask_broker(AskBroker()))
    async with start_listener(broker, apis=(api,)) as listener, connect(listener) as peer:
        peer.send(METADATA)
        assert await peer.answer() == METADATA[8:12] + b"answer"


async def test_a_broker_that_was_silent_is_asked_where_no_other_answers(
    broker: ScriptedBroker, other_broker: ScriptedBroker
) -> None:
    answering, broker.script = broker.script, lambda content: None
    api = LocalApi(versions=Versions(MetadataRequest), answer=ask_broker(AskBroker()))
    async with start_listener(broker, other_broker, apis=(api,), upstream_answer_timeout_ms=50) as listener:
        async with connect(listener) as peer:
            peer.send(METADATA)
            assert await peer.answer() == METADATA[8:12] + b"answer"
        broker.script, other_broker.script = answering, lambda content: None
        async with connect(listener) as peer:
            peer.send(METADATA)
            assert await peer.answer() == METADATA[8:12] + b"answer"


async def test_a_brokers_answer_is_amended_or_replaced_where_there_is_no_broker(broker: ScriptedBroker) -> None:
    def add_us(response: Any) -> ResponsePayload:
        return metadata_of(f"{response.cluster_id} and us")

    broker.script = lambda content: encode_response(metadata_of("broker"), read_request_head(content).correlation_id)

    async def us() -> ResponsePayload:
        return metadata_of("us")

    ask = AskBroker(amended=add_us, otherwise=us)
    api = LocalApi(versions=Versions(MetadataRequest), answer=ask_broker(ask))
    async with start_listener(broker, apis=(api,)) as listener, connect(listener) as peer:
        for is_live, expected in ((True, "broker and us"), (False, "us")):
            broker.is_live = is_live
            peer.send(METADATA)
            assert decode_response(MetadataResponse, await peer.answer()).cluster_id == expected


async def test_a_brokers_answer_that_would_be_amended_is_not_read_if_it_is_larger_than_any(
    broker: ScriptedBroker,
) -> None:
    broker.script = lambda content: make_frame_start(
        limit_answer(int(MetadataRequest.__api_key__), len(content)) + 1, content[4:8]
    )

    async def us() -> ResponsePayload:
        return metadata_of("us")

    api = LocalApi(
        versions=Versions(MetadataRequest),
        answer=ask_broker(AskBroker(amended=lambda response: response, otherwise=us)),
    )
    async with start_listener(broker, apis=(api,)) as listener, connect(listener) as peer:
        peer.send(METADATA)
        assert decode_response(MetadataResponse, await peer.answer()).cluster_id == "us"
    assert len(broker.received) == 1


async def test_a_broker_that_does_not_know_the_version_is_asked_in_an_older_one(broker: ScriptedBroker) -> None:
    told = api_versions_3.ApiVersionsResponse(
        error_code=ErrorCode.none, api_keys=(), throttle_time=NO_THROTTLE, zk_migration_ready=True
    )
    unknown = api_versions_0.ApiVersionsResponse(error_code=ErrorCode.unsupported_version, api_keys=())

    def answer_as_kafka_3_6(content: bytes) -> bytes:
        head = read_request_head(content)
        return encode_response(told if head.api_version == 3 else unknown, head.correlation_id)

    broker.script = answer_as_kafka_3_6
    software = {"client_software_name": "tester", "client_software_version": "1"}
    newest = api_versions_4.ApiVersionsResponse
    ask = AskBroker(
        older=api_versions_3.ApiVersionsRequest(**software), amended=lambda response: convert(response, newest)
    )
    api = LocalApi(versions=Versions(api_versions_4.ApiVersionsRequest, oldest=0), answer=ask_broker(ask))
    async with start_listener(broker, apis=(api,)) as listener, connect(listener) as peer:
        for _ in range(2):
            peer.send(encode_request(api_versions_4.ApiVersionsRequest(**software), 7, "client"))
            assert decode_response(newest, await peer.answer()).zk_migration_ready
    assert [read_request_head(content).api_version for content in broker.received] == [4, 3, 4, 3]


@pytest.mark.parametrize("answer", [AskBroker(), None], ids=["only a broker knows", "there is no answer now"])
async def test_a_client_is_disconnected_without_a_complaint_when_there_is_no_answer(
    answer: AskBroker | None, logged: list[Any]
) -> None:
    api = LocalApi(versions=Versions(MetadataRequest), answer=ask_broker(answer))
    async with start_listener(apis=(api,)) as listener, connect(listener) as peer:
        peer.send(METADATA)
        assert await peer.receive() is None
        assert warnings(logged) == []


async def test_an_unknown_version_has_an_answer_where_kafka_has_one(logged: list[Any]) -> None:
    known = LocalApi(
        versions=Versions(MetadataRequest), answer=ask_broker(None), unsupported=lambda: metadata_of("version 9 only")
    )
    async with start_listener(apis=(known,)) as listener, connect(listener) as peer:
        peer.send(make_frame(b"\0\x03\0\x63\0\0\0\x05\xff\xff" + b"anything"))
        content = await peer.answer()
        assert read_correlation_id(content) == 5
        assert decode_response(MetadataResponse, content).cluster_id == "version 9 only"
        assert warnings(logged) == []


async def test_a_request_that_is_answered_here_may_be_decoded_beside_the_loop_up_to_a_limit(logged: list[Any]) -> None:
    names = tuple(MetadataRequestTopic(name=TopicName(f"topic-{number}")) for number in range(10_000))
    large = encode_request(replace(metadata_request(), topics=names), 7, "client")

    async def count(request: Any) -> ResponsePayload:
        return metadata_of(str(len(request.topics)))

    api = LocalApi(versions=Versions(MetadataRequest), answer=count)
    async with start_listener(apis=(api,)) as listener, connect(listener) as peer:
        peer.send(large)
        assert decode_response(MetadataResponse, await peer.answer()).cluster_id == "10000"
    async with start_listener(apis=(api,), max_own_request_bytes=1000) as listener, connect(listener) as peer:
        peer.send(large)
        assert await peer.receive() is None
        assert warnings(logged) == [("connection closed: bad request", "FrameTooLarge")]


async def test_an_array_longer_than_its_request_is_refused_before_room_is_made_for_it(logged: list[Any]) -> None:
    api = LocalApi(versions=Versions(MetadataRequest0), answer=ask_broker(None))
    async with start_listener(apis=(api,)) as listener, connect(listener) as peer:
        peer.send(make_frame(b"\0\x03\0\0\0\0\0\x05\xff\xff" + b"\x7f\xff\xff\xff"))
        assert await peer.receive() is None
        assert warnings(logged) == [("connection closed: bad request", "Undecodable")]


async def test_a_client_is_disconnected_when_its_broker_closes_instead_of_answering(broker: ScriptedBroker) -> None:
    broker.script = lambda content: broker.writers[0].close()
    async with start_listener(broker) as listener, connect(listener) as peer:
        peer.send(METADATA)
        assert await peer.receive() is None


async def test_an_answer_to_another_request_is_not_passed_on(broker: ScriptedBroker) -> None:
    broker.script = lambda content: make_frame(b"\0\0\0\x63")
    async with start_listener(broker) as listener, connect(listener) as peer:
        peer.send(METADATA)
        assert await peer.receive() is None


async def test_the_upstream_connection_ends_with_the_clients(broker: ScriptedBroker) -> None:
    async with start_listener(broker) as listener:
        async with connect(listener) as peer:
            peer.send(METADATA)
            await peer.answer()
        async with asyncio.timeout(DEADLINE_S):
            await broker.writers[0].wait_closed()


BAD = {
    "too long": (b"\x7f\xff\xff\xff", "FrameTooLarge"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "FrameTooLarge"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "FrameTooLarge"),
    "negative length": (b"\xff\xff\xff\xff", "NotKafka"),
    "no room for a header": (make_frame(b"\0\x12"), "NotKafka"),
    "unknown API": (make_frame(b"\x7f\xff\0\0\0\0\0\0\0\0"), "NotKafka"),
    "broken body": (make_frame(shutdown()[4:-3]), "Undecodable"),
}


@pytest.mark.parametrize("case", BAD)
async def test_bad_bytes_close_their_connection_with_one_line_and_no_other(case: str, logged: list[Any]) -> None:
    data, kind = BAD[case]
    async with start_listener() as listener, connect(listener) as good, connect(listener) as bad:
        bad.send(data)
        assert await bad.receive() is None
        assert warnings(logged) == [("connection closed: bad request", kind)]
        assert [str(line).count("127.0.0.1") for line in logged if line.get("kind") == kind] == [1]
        good.send(shutdown())
        assert error_code(await good.answer()) == ErrorCode.none


async def test_a_version_that_is_not_served_closes_its_connection_without_a_line_each_time(logged: list[Any]) -> None:
    async with start_listener() as listener, connect(listener) as good, connect(listener) as bad:
        bad.send(make_frame(b"\0\x07\0\x01\0\0\0\0\xff\xff\0\0\0\x01"))
        assert await bad.receive() is None
        assert warnings(logged) == []
        good.send(shutdown())
        assert error_code(await good.answer()) == ErrorCode.none


async def test_a_frame_that_is_cut_is_logged_and_harms_nothing(logged: list[Any]) -> None:
    async with start_listener() as listener, connect(listener) as good:
        async with connect(listener) as bad:
            bad.send(shutdown()[:-2])
            bad.writer.write_eof()
            assert await bad.receive() is None
        assert warnings(logged) == [("connection closed: bad request", "FrameCut")]
        good.send(shutdown())
        assert error_code(await good.answer()) == ErrorCode.none


@pytest.mark.parametrize("api_key", [4, 5, 6, 27, 52, 58, 62, 64, 70, 73, 87])
async def test_what_only_controllers_or_brokers_send_and_what_is_krafts_is_never_relayed(
    broker: ScriptedBroker, logged: list[Any], api_key: int
) -> None:
    async with start_listener(broker) as listener, connect(listener) as peer:
        peer.send(METADATA)
        await peer.answer()
        peer.send(make_frame(struct.pack(">hhih", api_key, 0, 2, -1)))
        assert await peer.receive() is None
        assert len(broker.received) == 1
        assert warnings(logged) == [("connection closed: refused request", "")]


def gate_for(administrators: str, *, is_controller: bool = True) -> Gate:
    async def is_in_charge() -> bool:
        return is_controller

    rules = AccessRules(administrators=(ip_network(administrators),))
    return AddressGate(rules, BrokerAddresses(lambda: []), is_in_charge, is_own=lambda _: False, is_local=True)


ALTER_CONFIGS: bytes = make_frame(struct.pack(">hhih", 33, 1, 2, -1))


async def test_what_changes_the_cluster_is_not_passed_on_for_who_may_not_change_it(
    broker: ScriptedBroker, logged: list[Any]
) -> None:
    async with start_listener(broker, gate=gate_for("203.0.113.0/24")) as listener, connect(listener) as peer:
        peer.send(METADATA)
        await peer.answer()
        peer.send(ALTER_CONFIGS)
        assert await peer.receive() is None
        assert len(broker.received) == 1
        assert [event for event, _ in warnings(logged)] == [
            "request refused",
            "connection closed: request is not relayed",
        ]


@pytest.mark.parametrize("request_", [(0, 9, "__admin_client"), (24, 4, "client"), (1, 11, "client")])
async def test_what_a_broker_would_take_for_a_servers_or_a_tools_is_judged_as_theirs(
    broker: ScriptedBroker, logged: list[Any], request_: tuple[int, int, str]
) -> None:
    key, version, client_id = request_
    replica = struct.pack(">i", 2)  # a follower's id in a Fetch request
    header = struct.pack(">hhih", key, version, 2, len(client_id)) + client_id.encode()
    async with start_listener(broker, gate=gate_for("203.0.113.0/24")) as listener, connect(listener) as peer:
        peer.send(METADATA)
        await peer.answer()
        peer.send(make_frame(header + replica))
        assert await peer.receive() is None
        assert len(broker.received) == 1
        assert "connection closed: request is not relayed" in [event for event, _ in warnings(logged)]


@pytest.mark.parametrize("administrators", ["127.0.0.0/8", "203.0.113.0/24"])
async def test_a_broker_is_asked_only_for_who_has_the_right_that_its_answer_needs(
    broker: ScriptedBroker, administrators: str
) -> None:
    async def answer_here() -> MetadataResponse:
        return metadata_of("here")

    question = AskBroker(otherwise=answer_here, judged_as=19)
    api = LocalApi(versions=Versions(MetadataRequest, oldest=0), answer=ask_broker(question))
    async with (
        start_listener(broker, apis=(api,), gate=gate_for(administrators)) as listener,
        connect(listener) as peer,
    ):
        peer.send(METADATA)
        await peer.answer()
        assert len(broker.received) == (1 if administrators.startswith("127") else 0)


async def test_an_administrators_change_is_passed_on(broker: ScriptedBroker) -> None:
    async with start_listener(broker, gate=gate_for("127.0.0.0/8")) as listener, connect(listener) as peer:
        peer.send(ALTER_CONFIGS)
        await peer.answer()
        assert [content[:2] for content in broker.received] == [ALTER_CONFIGS[4:6]]


async def test_a_change_is_not_passed_on_by_a_process_that_is_not_the_controller(broker: ScriptedBroker) -> None:
    gate = gate_for("127.0.0.0/8", is_controller=False)
    async with start_listener(broker, gate=gate) as listener, connect(listener) as peer:
        peer.send(ALTER_CONFIGS)
        assert await peer.receive() is None
        assert broker.received == []


async def test_what_kafka_3_9_does_not_know_is_no_request(broker: ScriptedBroker, logged: list[Any]) -> None:
    async with start_listener(broker) as listener, connect(listener) as peer:
        peer.send(make_frame(struct.pack(">hhih", 88, 0, 2, -1)))
        assert await peer.receive() is None
        assert (broker.received, warnings(logged)) == ([], [("connection closed: bad request", "NotKafka")])


UPDATE_METADATA: bytes = encode_request(
    UpdateMetadataRequest(
        controller_id=BrokerId(666), controller_epoch=ControllerEpoch(99), topic_states=(), live_brokers=()
    ),
    2,
    "attacker",
)
ENVELOPE: bytes = encode_request(
    EnvelopeRequest(request_data=UPDATE_METADATA[4:], request_principal=None, client_host_address=b"\x7f\0\0\x01"),
    2,
    "x",
)
"""A broker takes the request in the envelope as one of the principal that the envelope names."""


@pytest.mark.parametrize("command", [UPDATE_METADATA, ENVELOPE], ids=["UpdateMetadata", "Envelope"])
async def test_control_requests_are_never_relayed(broker: ScriptedBroker, logged: list[Any], command: bytes) -> None:
    async with start_listener(broker) as listener, connect(listener) as peer:
        peer.send(METADATA)
        await peer.answer()
        peer.send(command)
        assert await peer.receive() is None
        assert len(broker.received) == 1
        assert warnings(logged) == [("connection closed: refused request", "")]


async def test_a_handler_that_fails_closes_the_connection_that_asked(logged: list[Any]) -> None:
    async def fail_for_one(request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        if request.broker_id == 1:
            raise TimeoutError("ZooKeeper is away")
        return await agree(request)

    async with start_listener(answer=fail_for_one) as listener, connect(listener) as one, connect(listener) as two:
        one.send(shutdown(broker=1))
        assert await one.receive() is None
        assert warnings(logged) == [("connection closed: a request could not be answered", "")]
        two.send(shutdown(broker=2))
        assert error_code(await two.answer()) == ErrorCode.broker_not_available


async def test_a_handlers_answer_to_another_api_is_not_sent(logged: list[Any]) -> None:
    async def confuse(request: ControlledShutdownRequest) -> UpdateMetadataRequest:
        return UpdateMetadataRequest(
            controller_id=BrokerId(1), controller_epoch=ControllerEpoch(1), topic_states=(), live_brokers=()
        )

    async with start_listener(answer=confuse) as listener, connect(listener) as peer:
        peer.send(shutdown())
        assert await peer.receive() is None
        assert warnings(logged) == [("connection closed: a request could not be answered", "")]


async def test_a_request_that_waits_for_its_answer_does_not_hold_up_others() -> None:
    answered = asyncio.Event()

    async def wait_for_one(request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        if request.broker_id == 1:
            await answered.wait()
        return await agree(request)

    async with start_listener(answer=wait_for_one) as listener, connect(listener) as slow, connect(listener) as quick:
        slow.send(shutdown(broker=1))
        quick.send(shutdown(broker=2))
        assert error_code(await quick.answer()) == ErrorCode.broker_not_available
        answered.set()
        assert error_code(await slow.answer()) == ErrorCode.none


async def test_a_client_that_reads_nothing_holds_up_nobody(broker: ScriptedBroker) -> None:
    broker.script = lambda content: make_frame(content[4:8] + bytes(4 * 1024 * 1024))
    async with start_listener(broker) as listener, connect(listener) as greedy, connect(listener) as modest:
        greedy.send(METADATA * 50)
        await broker.wait_until(lambda: len(broker.received) > 0)
        modest.send(shutdown())
        assert error_code(await modest.answer()) == ErrorCode.none


async def test_an_idle_connection_is_closed() -> None:
    async with start_listener(idle_timeout_ms=1) as listener, connect(listener) as peer:
        assert await peer.receive() is None


async def test_connections_above_the_limit_are_refused_until_one_leaves(logged: list[Any]) -> None:
    async with start_listener(max_connections=1) as listener:
        async with connect(listener) as first:
            first.send(shutdown())
            await first.answer()
            async with connect(listener) as second:
                assert await second.receive() is None
            assert warnings(logged) == [("connection refused: too many", "")]
        async with asyncio.timeout(DEADLINE_S):
            while True:
                async with connect(listener) as third:
                    third.send(shutdown())
                    if (content := await third.receive()) is not None:
                        assert error_code(content) == ErrorCode.none
                        break


async def test_closing_the_connections_ends_requests_under_way_and_listens_on() -> None:
    asked = asyncio.Event()

    async def never(request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        if request.broker_id == 1:
            asked.set()
            await asyncio.Event().wait()
        return await agree(request)

    async with start_listener(answer=never) as listener:
        async with connect(listener) as peer:
            peer.send(shutdown(broker=1))
            await asked.wait()
            await listener.close_connections()
            assert await peer.receive() is None
        async with connect(listener) as peer:
            peer.send(shutdown(broker=2))
            assert error_code(await peer.answer()) == ErrorCode.broker_not_available


async def test_a_closed_listener_accepts_nothing_and_closes_again_without_harm() -> None:
    async with start_listener() as listener, connect(listener) as peer:
        port = listener.port
        await listener.close()
        assert await peer.receive() is None
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        await listener.close()


async def test_each_of_several_addresses_relays_to_brokers_of_its_own(
    broker: ScriptedBroker, other_broker: ScriptedBroker
) -> None:
    acceptors = [local_acceptor([], lambda broker=served: [broker.target]) for served in (broker, other_broker)]  # type: ignore[misc]  # a lambda with a default
    listener = Listener(acceptors)
    await listener.start()
    for port, reached in zip(listener.ports, (broker, other_broker), strict=True):
        peer = Peer(*await asyncio.open_connection("127.0.0.1", port))
        peer.send(METADATA)
        await peer.answer()
        assert len(reached.received) == 1
        peer.writer.close()
    await listener.close()


async def test_every_address_is_that_of_both_protocols_as_for_a_broker() -> None:
    port = reserve_port()
    listener = Listener([Acceptor(host="::", port=port, apis=[], relay_targets=lambda: ())])
    await listener.start()
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
    finally:
        await listener.close()
        release_port(port)


async def test_connections_are_counted_over_all_addresses() -> None:
    listener = Listener([local_acceptor([]), local_acceptor([])], limits=ListenerLimits(max_connections=1))
    await listener.start()
    peers = [Peer(*await asyncio.open_connection("127.0.0.1", port)) for port in listener.ports]
    assert await peers[1].receive() is None
    for peer in peers:
        peer.writer.close()
    await listener.close()


async def test_nothing_is_listened_on_where_one_of_the_addresses_is_taken() -> None:
    taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    free = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    free_port, taken_port = (server.sockets[0].getsockname()[1] for server in (free, taken))
    free.close()
    await free.wait_closed()
    both = [
        Acceptor(host="127.0.0.1", port=port, apis=[], relay_targets=lambda: ()) for port in (free_port, taken_port)
    ]
    with pytest.raises(OSError, match="address already in use"):
        await Listener(both).start()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", free_port)
    taken.close()
    await taken.wait_closed()


def test_an_api_that_is_owned_twice_is_a_mistake() -> None:
    api = OwnedApi(Versions(ControlledShutdownRequest), agree)
    with pytest.raises(ValueError, match="API 7 is owned twice"):
        Listener([local_acceptor([api, OwnedApi(Versions(ControlledShutdownRequest), agree)])])


async def test_an_error_that_nobody_expected_of_a_brokers_answer_ends_the_exchange() -> None:
    async with start_broker() as broker:
        _, writer = await asyncio.open_connection(*broker.address)
        reader = asyncio.StreamReader()
        relay = Relay(broker.address, reader, writer, 1024)
        content = encode_request(
            ApiVersionsRequest(client_software_name="test", client_software_version="1"), 1, "test"
        )
        exchange = asyncio.create_task(relay.exchange(read_request_head(content[4:]), content[4:]))
        await broker.wait_until(lambda: bool(broker.received))
        reader.set_exception(ValueError("nobody expected that"))
        with pytest.raises(UpstreamError, match="nobody expected that"):
            await asyncio.wait_for(exchange, DEADLINE_S)
        assert relay.has_ended
        relay.close()
