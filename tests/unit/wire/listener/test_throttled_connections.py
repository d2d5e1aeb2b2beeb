"""A client over its quota gets its answer at once, and is not read until its throttle time is over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from kio.schema.create_topics.v5 import CreateTopicsRequest, CreateTopicsResponse
from kio.static.primitive import i32Timedelta

from controller_core.wire.codecs.frames import decode_response, encode_request
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.listener.listener import Listener, ListenerLimits, OwnedApi
from controller_core.wire.messages import throttle_of
from tests.unit.wire.listener.test_client_connections import Peer, connect, local_acceptor

FOR_EVER_MS = 1_000_000_000


class Throttling:
    """Answers all requests with the throttle time `throttle_ms`."""

    def __init__(self) -> None:
        self.throttle_ms = 0
        self.heard = 0
        self.api = OwnedApi(Versions(CreateTopicsRequest), self.answer)

    async def answer(self, _: CreateTopicsRequest) -> CreateTopicsResponse:
        self.heard += 1
        return CreateTopicsResponse(throttle_time=throttle_of(self.throttle_ms), topics=())


@asynccontextmanager
async def start_listener(throttling: Throttling, **limits: int) -> AsyncIterator[Listener]:
    listener = Listener([local_acceptor([throttling.api])], limits=ListenerLimits(attention_interval_ms=10, **limits))
    await listener.start()
    try:
        yield listener
    finally:
        await listener.close()


@pytest.fixture
def throttling() -> Throttling:
    return Throttling()


def ask(peer: Peer) -> None:
    request = CreateTopicsRequest(topics=(), timeout=i32Timedelta.parse(timedelta()), validate_only=False)
    peer.send(encode_request(request, 1, "app"))


async def read_throttle_ms(peer: Peer) -> int:
    return decode_response(CreateTopicsResponse, await peer.answer()).throttle_time // timedelta(milliseconds=1)


async def test_he_is_answered_at_once_and_not_heard_meanwhile_while_others_are(throttling: Throttling) -> None:
    throttling.throttle_ms = FOR_EVER_MS
    async with start_listener(throttling) as listener, connect(listener) as muted, connect(listener) as other:
        ask(muted)
        assert await read_throttle_ms(muted) == FOR_EVER_MS
        throttling.throttle_ms = 0
        ask(muted)
        for _ in range(3):
            ask(other)
            assert await read_throttle_ms(other) == 0
        assert throttling.heard == 4


async def test_he_is_heard_again_when_his_time_is_over(throttling: Throttling) -> None:
    async with start_listener(throttling) as listener, connect(listener) as peer:
        throttling.throttle_ms = 30
        ask(peer)
        ask(peer)
        assert [await read_throttle_ms(peer), await read_throttle_ms(peer)] == [30, 30]
        assert throttling.heard == 2


async def test_who_leaves_meanwhile_is_noticed(throttling: Throttling) -> None:
    throttling.throttle_ms = FOR_EVER_MS
    async with start_listener(throttling) as listener:
        async with connect(listener) as peer:
            ask(peer)
            await read_throttle_ms(peer)
        async with asyncio.timeout(10):
            while listener._connections:  # noqa: ASYNC110 - there is nothing to be told by
                await asyncio.sleep(0.005)


async def test_who_has_to_wait_longer_than_anybody_may_be_idle_is_disconnected(throttling: Throttling) -> None:
    throttling.throttle_ms = FOR_EVER_MS
    async with start_listener(throttling, idle_timeout_ms=50) as listener, connect(listener) as peer:
        ask(peer)
        await read_throttle_ms(peer)
        assert await peer.receive() is None


async def test_a_listener_that_closes_does_not_wait_for_him(throttling: Throttling) -> None:
    throttling.throttle_ms = FOR_EVER_MS
    async with start_listener(throttling) as listener, connect(listener) as peer:
        ask(peer)
        await read_throttle_ms(peer)
        async with asyncio.timeout(10):
            await listener.close_connections()
        assert await peer.receive() is None
