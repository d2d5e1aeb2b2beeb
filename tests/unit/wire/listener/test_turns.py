"""Many concurrent requests: the event loop goes on."""

import asyncio
import time
from itertools import pairwise

from kio.schema.metadata.v9 import MetadataRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.codecs.frames import read_request_head
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.listener.owned_api import AskBroker, BrokerQuestion, LocalApi
from controller_core.wire.listener.turns import MOMENT_S
from tests.unit.wire.listener.test_client_connections import METADATA, metadata_of

ANSWER_S = MOMENT_S / 4
CLIENTS = 100


async def test_the_loop_goes_on_between_the_answers_to_many_who_ask_in_the_same_moment() -> None:
    answered = 0
    seen: list[int] = []

    async def answer(_: RequestPayload) -> ResponsePayload:
        nonlocal answered
        until_s = time.monotonic() + ANSWER_S
        while time.monotonic() < until_s:
            pass
        answered += 1
        return metadata_of("cluster")

    async def look() -> None:
        while answered < CLIENTS:
            seen.append(answered)
            await asyncio.sleep(0)

    api = LocalApi(versions=Versions(MetadataRequest), answer=answer)
    content = METADATA[4:]
    await asyncio.gather(look(), *(api.respond(read_request_head(content), content) for _ in range(CLIENTS)))
    seen.append(answered)
    assert max(later - earlier for earlier, later in pairwise(seen)) <= 2 * MOMENT_S / ANSWER_S


async def test_one_answer_at_a_time_waits_to_be_encoded() -> None:
    begun = asyncio.Event()
    may_end = asyncio.Event()
    under_way = 0

    async def answer(_: RequestPayload) -> ResponsePayload:
        nonlocal under_way
        under_way += 1
        begun.set()
        await may_end.wait()
        return metadata_of("cluster")

    api = LocalApi(versions=Versions(MetadataRequest), answer=answer)
    content = METADATA[4:]
    asking = [asyncio.create_task(api.respond(read_request_head(content), content)) for _ in range(CLIENTS)]
    await begun.wait()
    await asyncio.sleep(0)
    assert under_way == 1
    asking[0].cancel()
    may_end.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert sum(isinstance(each, bytes) for each in answers) == CLIENTS - 1, "who gives up holds up nobody"


async def test_answers_in_the_place_of_a_broker_that_is_not_there_are_made_one_at_a_time() -> None:
    under_way = most_under_way = 0

    async def otherwise() -> ResponsePayload:
        nonlocal under_way, most_under_way
        under_way += 1
        most_under_way = max(most_under_way, under_way)
        await asyncio.sleep(0)  # as between two slices
        under_way -= 1
        return metadata_of("cluster")

    async def answer(_: RequestPayload) -> AskBroker:
        return AskBroker(otherwise=otherwise)

    api = LocalApi(versions=Versions(MetadataRequest), answer=answer)
    content = METADATA[4:]
    questions = [await api.respond(read_request_head(content), content) for _ in range(CLIENTS)]
    answers = await asyncio.gather(*(asked.otherwise() for asked in questions if isinstance(asked, BrokerQuestion)))
    assert len(answers) == CLIENTS
    assert most_under_way == 1
