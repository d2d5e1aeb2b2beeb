"""A request finds the controller wherever it is, and every failure says whether the request may have been done."""

import socket
from collections.abc import AsyncIterator
from itertools import repeat

import pytest
from kio.schema.create_topics.v7 import CreateTopicsRequest, CreateTopicsResponse
from kio.schema.create_topics.v7.response import CreatableTopicResult
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.types import TopicName
from kio.schema.update_features.v1 import UpdateFeaturesRequest, UpdateFeaturesResponse

from controller_core.client.errors import AnswerUnreadable, OutcomeUnknown, Unreachable
from controller_core.client.transport.request_client import Address, RequestClient, parse_addresses
from controller_core.names import NAMES
from controller_core.wire.codecs.frames import make_frame
from controller_core.wire.messages import ErrorCode
from controller_core.wire.requests.metadata import NO_TOPICS
from tests.unit.client.transport.servers import METADATA, NO_TIME, NOBODY, Servers, three_servers

REQUEST = UpdateFeaturesRequest(feature_updates=())


def answer(error_code: ErrorCode = ErrorCode.none) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(throttle_time=NO_TIME, error_code=error_code, error_message=None, results=())


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    async with three_servers() as started:
        yield started


def client(*bootstrap: Address, timeout_ms: int = 20_000) -> RequestClient:
    return RequestClient(bootstrap, timeout_ms=timeout_ms, connect_timeout_ms=5_000)


async def test_the_controller_is_asked_wherever_the_bootstrap_server_says_it_is(servers: Servers) -> None:
    controller, broker, _ = servers
    controller.script = [answer()]
    assert await client(broker.address).ask(REQUEST, UpdateFeaturesResponse) == answer()
    assert (broker.asked, controller.asked) == ([METADATA], [57])


async def test_bootstrap_servers_that_do_not_answer_are_passed_over(servers: Servers) -> None:
    controller, broker, ignorant = servers
    controller.script, ignorant.controllers = [answer()], []
    asked = client(NOBODY, ignorant.address, broker.address)
    assert await asked.ask(REQUEST, UpdateFeaturesResponse) == answer()


async def test_a_name_s_address_that_hangs_does_not_hide_the_others(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, broker, _ = servers
    host, port = broker.address
    hanging = ("127.0.0.2", port)
    monkeypatch.setattr(NAMES, "_resolve", {"kafka": [hanging[0], host]}.__getitem__)
    with socket.create_server(hanging, backlog=0), socket.create_connection(hanging):
        asked = RequestClient([Address("kafka", port)], timeout_ms=20_000, connect_timeout_ms=5_000)
        assert await asked.ask_any(NO_TOPICS, MetadataResponse)
    assert broker.asked == [METADATA]


async def test_a_controller_that_has_moved_is_looked_for_again(servers: Servers) -> None:
    former, broker, present = servers
    former.script, present.script = [answer(ErrorCode.not_controller)], [answer()]
    broker.controllers = [former, present]
    assert await client(broker.address).ask(REQUEST, UpdateFeaturesResponse) == answer()
    assert (former.asked, present.asked) == ([57], [57])


async def test_an_answer_without_an_error_of_the_whole_says_it_of_its_parts(servers: Servers) -> None:
    former, broker, present = servers

    def make_created(error_code: ErrorCode) -> CreateTopicsResponse:
        topic = CreatableTopicResult(
            name=TopicName("orders"), topic_id=None, error_code=error_code, error_message=None, configs=None
        )
        return CreateTopicsResponse(throttle_time=NO_TIME, topics=(topic,))

    former.script, present.script = [make_created(ErrorCode.not_controller)], [make_created(ErrorCode.none)]
    broker.controllers = [former, present]
    response = await client(broker.address).ask(CreateTopicsRequest(topics=()), CreateTopicsResponse)
    assert response.topics[0].error_code is ErrorCode.none


async def test_an_error_of_the_request_itself_is_an_answer(servers: Servers) -> None:
    controller, broker, _ = servers
    refused = answer(ErrorCode.cluster_authorization_failed)
    controller.script = [refused]
    assert await client(broker.address).ask(REQUEST, UpdateFeaturesResponse) == refused


async def test_it_is_unreachable_when_nobody_is_the_controller_for_too_long(servers: Servers) -> None:
    controller, broker, _ = servers
    controller.script = list(repeat(answer(ErrorCode.not_controller), 100))
    with pytest.raises(Unreachable, match=r"no controller answered in 500 ms: .* is not the controller"):
        await client(broker.address, timeout_ms=500).ask(REQUEST, UpdateFeaturesResponse)


@pytest.mark.parametrize("bootstrap", [(), (NOBODY,)])
async def test_it_is_unreachable_when_no_bootstrap_server_answers(bootstrap: tuple[Address, ...]) -> None:
    with pytest.raises(Unreachable, match=r"cannot be reached|no bootstrap server is known"):
        await client(*bootstrap, timeout_ms=300).ask(REQUEST, UpdateFeaturesResponse)


@pytest.mark.parametrize("reply", [None, b"", b"\0\0\0\x09cut"], ids=["closed", "silent", "cut"])
async def test_a_lost_answer_is_reported_and_nothing_is_sent_twice(servers: Servers, reply: bytes | None) -> None:
    controller, broker, _ = servers
    controller.script = [reply]
    with pytest.raises(OutcomeUnknown, match="did not answer"):
        await client(broker.address, timeout_ms=500).ask(REQUEST, UpdateFeaturesResponse)
    assert controller.asked == [57]


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\0\x07", b"\0\0\0\x01\0nonsense"], ids=["no header", "another id", "no response"]
)
async def test_an_answer_that_is_none_is_reported(servers: Servers, content: bytes) -> None:
    controller, broker, _ = servers
    controller.script = [make_frame(content)]
    with pytest.raises(AnswerUnreadable):
        await client(broker.address).ask(REQUEST, UpdateFeaturesResponse)


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", make_frame(b"\0\0\0\x07")], ids=["http", "another id"]
)
async def test_a_server_that_does_not_speak_kafka_decides_about_itself_alone(servers: Servers, said: bytes) -> None:
    _, other_kind, broker = servers
    other_kind.script, broker.script = [said], [answer()]
    asked = client(other_kind.address, broker.address)
    assert await asked.ask_any(REQUEST, UpdateFeaturesResponse) == answer()
    other_kind.script = [said]
    with pytest.raises(AnswerUnreadable):
        await client(other_kind.address).ask_any(REQUEST, UpdateFeaturesResponse)


async def test_any_server_is_asked_whoever_is_the_controller(servers: Servers) -> None:
    _, broker, other = servers
    broker.script = [answer()]
    assert await client(NOBODY, broker.address, other.address).ask_any(REQUEST, UpdateFeaturesResponse) == answer()
    assert (broker.asked, other.asked) == ([57], [])


async def test_one_server_alone_is_asked_where_it_is_named(servers: Servers) -> None:
    _, broker, other = servers
    other.script = [answer()]
    assert await client(broker.address).restrict_to(other.address).ask_any(REQUEST, UpdateFeaturesResponse) == answer()
    assert (broker.asked, other.asked) == ([], [57])


@pytest.mark.parametrize("reply", [None, b""], ids=["closed", "silent"])
async def test_a_server_that_answers_nothing_leaves_time_for_the_next(servers: Servers, reply: bytes | None) -> None:
    _, silent, broker = servers
    silent.script, broker.script = [reply], [answer()]
    asked = client(silent.address, broker.address, timeout_ms=1_000)
    assert await asked.ask_any(REQUEST, UpdateFeaturesResponse) == answer()


async def test_a_server_that_is_silent_about_the_controller_leaves_time_for_the_next(servers: Servers) -> None:
    controller, silent, broker = servers
    controller.script, silent.is_silent = [answer()], True
    asked = client(silent.address, broker.address, timeout_ms=1_000)
    assert await asked.ask(REQUEST, UpdateFeaturesResponse) == answer()


async def test_a_server_that_answered_is_asked_first_the_next_time(servers: Servers) -> None:
    controller, silent, broker = servers
    controller.script, broker.script, silent.is_silent = [answer()] * 2, [answer()], True
    asked = client(silent.address, broker.address, timeout_ms=1_000)
    for _ in range(2):
        await asked.ask(REQUEST, UpdateFeaturesResponse)
    await asked.ask_any(REQUEST, UpdateFeaturesResponse)
    assert silent.asked == [METADATA]


async def test_it_says_of_every_server_why_none_has_answered(servers: Servers) -> None:
    _, closing, _ = servers
    closing.script = [None]
    with pytest.raises(Unreachable, match=r"cannot be reached.*; .* did not answer"):
        await client(NOBODY, closing.address).ask_any(REQUEST, UpdateFeaturesResponse)


def test_addresses_are_hosts_and_ports() -> None:
    assert parse_addresses("a.b-c:9092, 10.0.0.1:1,[::1]:65535") == (
        Address("a.b-c", 9092),
        Address("10.0.0.1", 1),
        Address("::1", 65535),
    )
    assert parse_addresses("SASL_SSL://a:1,b:2, ,") == (Address("a", 1), Address("b", 2)), "as Kafka's clients do"
    assert str(parse_addresses("[::1]:9092")[0]) == "[::1]:9092"


@pytest.mark.parametrize(
    "text", ["", ",", "a", "a:", "a:b", "a:70000", "a:1,b", "::1:9092", "PLAINTEXT://a", "PLAINTEXT://SSL://a:1"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not host:port"):
        parse_addresses(text)
