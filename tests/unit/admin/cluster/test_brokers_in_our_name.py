"""Requests to brokers in the controller's own name: which brokers it asks, how often, and for which callers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse, DescribeConfigsResult
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kio.static.primitive import i8

from controller_core.admin.cluster.brokers_in_our_name import AT_ONCE, BrokersInOurName
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, Endpoint
from controller_core.wire.codecs.frames import limit_answer, make_frame_start
from controller_core.wire.connections.broker_properties import NO_FILE
from controller_core.wire.listener.owned_api import NoAnswerNow
from tests.unit.client.transport.servers import NO_TIME, NOBODY, Server, Servers, three_servers

TOPIC, BROKER = i8(2), i8(4)
DESCRIBE, ALTER = 32, 44
LISTENER = "INTERNAL"


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    async with three_servers() as started:
        yield started


def brokers(servers: Sequence[Server], listener: str = LISTENER) -> list[Broker]:
    return [
        Broker(
            id=BrokerId(number),
            epoch=BrokerEpoch(1),
            endpoints=(
                Endpoint(
                    listener=listener, security_protocol="PLAINTEXT", host=server.address.host, port=server.address.port
                ),
            ),
        )
        for number, server in enumerate(servers)
    ]


def make_brokers(servers: Sequence[Server], listener: str = LISTENER) -> BrokersInOurName:
    return BrokersInOurName(LISTENER, NO_FILE.source, lambda: brokers(servers, listener))


def describe(*names: str) -> DescribeConfigsRequest:
    resources = tuple(
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None) for name in names
    )
    return DescribeConfigsRequest(resources=resources)


def describe_topics(*names: str) -> DescribeConfigsResponse:
    results = tuple(
        DescribeConfigsResult(
            error_code=ErrorCode.none, error_message=None, resource_type=TOPIC, resource_name=name, configs=()
        )
        for name in names
    )
    return DescribeConfigsResponse(throttle_time=NO_TIME, results=results)


def alter(name: str) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name="retention.ms", config_operation=i8(0), value="1")
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=(change,))
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def alter_topic(name: str) -> IncrementalAlterConfigsResponse:
    response = AlterConfigsResourceResponse(
        error_code=ErrorCode.none, error_message=None, resource_type=TOPIC, resource_name=name
    )
    return IncrementalAlterConfigsResponse(throttle_time=NO_TIME, responses=(response,))


async def ask_brokers(brokers: BrokersInOurName, *, may_be_twice: bool = True) -> Any:
    if may_be_twice:
        return await brokers.ask(describe("a"), DescribeConfigsResponse, may_be_twice=True)
    return await brokers.ask(alter("a"), IncrementalAlterConfigsResponse, may_be_twice=False)


async def test_each_broker_has_its_turn(servers: Servers) -> None:
    for server in servers:
        server.script = [describe_topics("a")]
    asked_of = make_brokers(servers)
    for _ in servers:
        assert await ask_brokers(asked_of) == describe_topics("a")
    assert [server.asked for server in servers] == [[DESCRIBE]] * 3


async def test_where_one_cannot_be_reached_or_does_not_answer_the_next_one_is_asked(servers: Servers) -> None:
    gone, lost, there = servers
    gone.address = NOBODY
    lost.script = [None]
    there.script = [describe_topics("a")]
    assert await ask_brokers(make_brokers(servers)) == describe_topics("a")


async def test_an_answer_that_is_larger_than_any_about_the_request_is_not_read(servers: Servers) -> None:
    for server in servers:
        server.script = [make_frame_start(limit_answer(int(DescribeConfigsRequest.__api_key__), 100), b"\0\0\0\1")]
    with pytest.raises(NoAnswerNow, match=r"a frame claims [0-9]+ bytes; the limit is"):
        await ask_brokers(make_brokers(servers))


async def test_what_may_have_been_done_is_asked_of_nobody_else(servers: Servers) -> None:
    gone, lost, other = servers
    gone.address = NOBODY
    lost.script = [None]
    with pytest.raises(NoAnswerNow, match="did not answer"):
        await ask_brokers(make_brokers(servers), may_be_twice=False)
    assert (lost.asked, other.asked) == ([ALTER], [])


async def test_what_administrators_ask_does_not_wait_for_what_anybody_may(servers: Servers) -> None:
    silent, administered, _ = servers
    silent.script = [b""] * AT_ONCE
    administered.script = [alter_topic("a")]
    reached = [silent]
    asked_of = BrokersInOurName(LISTENER, NO_FILE.source, lambda: brokers(reached))
    waiting = [asyncio.create_task(ask_brokers(asked_of)) for _ in range(AT_ONCE + 1)]
    async with asyncio.timeout(20):
        while len(silent.asked) < AT_ONCE:  # noqa: ASYNC110 - nothing says when they are there
            await asyncio.sleep(0)
    reached[:] = [administered]
    assert await ask_brokers(asked_of, may_be_twice=False) == alter_topic("a")
    assert len(silent.asked) == AT_ONCE, "one waits"
    assert not any(each.done() for each in waiting)
    for each in waiting:
        each.cancel()


async def test_there_is_no_answer_where_nobody_can_be_asked(servers: Servers) -> None:
    with pytest.raises(NoAnswerNow, match="no live broker can be asked"):
        await ask_brokers(make_brokers([]))
    with pytest.raises(NoAnswerNow, match="no live broker can be asked"):
        await ask_brokers(make_brokers(servers, listener="OTHER"))
    for server in servers:
        server.address = NOBODY
    with pytest.raises(NoAnswerNow, match="cannot be reached"):
        await ask_brokers(make_brokers(servers))
