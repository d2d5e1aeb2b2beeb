"""An open connection is used again. If it broke, another server is asked."""

from collections.abc import AsyncIterator

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

from controller_core.client.errors import AnswerUnreadable, OutcomeUnknown, Unreachable
from controller_core.client.transport.kept_client import KeptClient
from tests.unit.client.transport.servers import NO_TIME, NOBODY, Servers, three_servers

REQUEST = ListPartitionReassignmentsRequest(timeout=NO_TIME, topics=None)
ANSWER = ListPartitionReassignmentsResponse(
    throttle_time=NO_TIME, error_code=ErrorCode.none, error_message=None, topics=()
)


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    async with three_servers() as started:
        yield started


async def ask(client: KeptClient) -> None:
    assert await client.ask(REQUEST, ListPartitionReassignmentsResponse) == ANSWER


async def test_questions_go_over_one_connection(servers: Servers) -> None:
    client = KeptClient([servers[0].address])
    servers[0].script = [ANSWER] * 3
    for _ in range(3):
        await ask(client)
    assert len(servers[0].writers) == 1
    client.close()


async def test_a_connection_that_broke_is_no_answer_and_the_next_server_is_asked(servers: Servers) -> None:
    client = KeptClient([server.address for server in servers[:2]])
    servers[0].script, servers[1].script = [None], [ANSWER]
    with pytest.raises(OutcomeUnknown, match="did not answer"):
        await ask(client)
    await ask(client)
    assert client.server == servers[1].address
    client.close()


async def test_a_server_that_nobody_finds_is_passed_over_and_comes_last(servers: Servers) -> None:
    client = KeptClient([NOBODY, servers[0].address])
    servers[0].script = [ANSWER]
    with pytest.raises(Unreachable):
        await ask(client)
    await ask(client)
    assert client.servers == (servers[0].address, NOBODY)
    client.close()


async def test_a_server_that_says_nothing_costs_its_time_once(servers: Servers) -> None:
    client = KeptClient([server.address for server in servers[:2]], timeout_ms=100)
    servers[0].is_silent, servers[1].script = True, [ANSWER, ANSWER]
    with pytest.raises(OutcomeUnknown, match="did not answer in time"):
        await ask(client)
    await ask(client)
    await ask(client)
    assert len(servers[0].asked) == 1
    client.close()


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\2ab", b"\0\0\0\0", b"\0\0\0\4\0\0\0\1"])
async def test_what_is_no_kafka_is_said_to_be_none(servers: Servers, said: bytes) -> None:
    client = KeptClient([servers[0].address])
    servers[0].script = [said]
    with pytest.raises(AnswerUnreadable):
        await ask(client)
    client.close()


async def test_who_is_asked_stays_where_it_is_still_a_broker_and_who_was_named_first_stays_known(
    servers: Servers,
) -> None:
    first, second, third = (server.address for server in servers)
    client = KeptClient([first])
    client.learn([second, third])
    assert list(client.servers) == [first, second, third]
    client.move_on()
    client.learn([third])
    assert list(client.servers) == [third, first]
    client.learn([second, third])
    assert list(client.servers) == [third, second, first]


async def test_one_server_alone_is_asked_over_another_connection(servers: Servers) -> None:
    client = KeptClient([servers[0].address])
    servers[0].script, servers[1].script = [ANSWER], [ANSWER]
    await ask(client)
    alone = client.restrict_to(servers[1].address)
    await ask(alone)
    assert (client.server, alone.servers) == (servers[0].address, (servers[1].address,))
    client.close()
    alone.close()
