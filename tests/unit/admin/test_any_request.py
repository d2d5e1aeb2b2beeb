"""Every request, in every version, gets one answer of the right form, and the controller goes on.

The requests are made from the fields of their types, with names, ids and numbers that a cluster has and that it does
not have, and with nulls in versions that have them. They pass as bytes through the whole path of a client's request.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_response_schema
from kio.schema.alter_partition.v2 import AlterPartitionRequest as AlterPartitionRequest2
from kio.schema.alter_partition.v3 import AlterPartitionRequest as AlterPartitionRequest3
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.controller.serving.open_requests import OpenRequests
from controller_core.controller.serving.served_api import AnyServedApi
from controller_core.process.run import SERVED_APIS
from controller_core.wire.codecs import isr_changes, older_isr_changes
from controller_core.wire.codecs.frames import decode_response, encode_request, read_request_head
from controller_core.wire.listener.owned_api import OwnedApi
from controller_core.wire.messages import ControlledShutdownResponse, ErrorCode
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster, tp
from tests.unit.examples import examples
from tests.unit.wire.codecs.strategies import PRIMITIVES, TEXT, messages

A_DAY_MS = 24 * 3600 * 1000
NAMES = ("orders", "moving", "doomed", "new", "", ".", "..", "a/b", "x" * 300, "__consumer_offsets", "orders.x", "\0")
NOT_IN_CHARGE = {ErrorCode.not_controller, ErrorCode.stale_controller_epoch}
"""The errors of a controller without the role. Only the response to ControlledShutdown has the second one."""
CONFIGS = ("retention.ms", "cleanup.policy", "unclean.leader.election.enable", "true", "-1", "no.such.key")

numbers = st.sampled_from((-2, -1, 0, 1, 2, 3, 4, 1000))
LIKELY = {
    **PRIMITIVES,
    "int8": numbers.filter(lambda number: number < 100) | PRIMITIVES["int8"],
    "int16": numbers | PRIMITIVES["int16"],
    "int32": numbers | PRIMITIVES["int32"],
    "int64": numbers | PRIMITIVES["int64"],
    "string": st.sampled_from((*NAMES, *CONFIGS)) | TEXT,
    "timedelta_i32": st.sampled_from((-1, 0, 1, 60_000, 2**31 - 1)).map(lambda ms: timedelta(milliseconds=ms)),
}


async def busy_cluster(cluster: Cluster) -> None:
    """Set up three brokers, a topic at rest, one that is moved and one whose deletion waits for a broker that is down.

    Requests may wait for weeks, in which the brokers are rarely polled, because nothing changes there.
    """
    cluster.settings = replace(cluster.settings, brokers_timeout_ms=30 * A_DAY_MS)
    cluster.start_brokers(1, 2, 3, 4)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], [2, 3])
    cluster.create_topic("moving", [1, 2])
    cluster.create_topic("doomed", [3, 4])
    await cluster.settle()
    cluster.kill_broker(4)
    cluster.request_reassignment({tp("moving"): [2, 3]})
    cluster.request_deletion("doomed")
    await cluster.settle()


ASKED_ISRS: Final[Mapping[int, Any]] = {2: AlterPartitionRequest2, 3: AlterPartitionRequest3}


async def exchange(cluster: Cluster, api: AnyServedApi, request: RequestPayload) -> bytes:
    frame = encode_request(request, 7, "client")[4:]
    process = cluster.active
    answer = asyncio.create_task(OwnedApi(api.versions, process.answer).respond(read_request_head(frame), frame))
    await cluster.settle(A_DAY_MS * 30)
    assert answer.done(), f"{request} has no answer"
    answered = answer.result()
    assert isinstance(answered, bytes), "nobody has to wait"
    return answered[4:]


def request_type(api: AnyServedApi, version: int) -> Any:
    """Return kio's message type of that version, also if the controller reads values from the bytes itself."""
    return ASKED_ISRS[version] if api.versions is older_isr_changes.VERSIONS else api.versions.request_type(version)


def versions_of(api: AnyServedApi) -> range:
    """Return the versions that kio has."""
    oldest = min(ASKED_ISRS) if api.versions is older_isr_changes.VERSIONS else api.versions.min
    return range(oldest, api.versions.max + 1)


def response_type(request: RequestPayload) -> Any:
    key, version = int(request.__api_key__), int(request.__version__)
    return (
        ControlledShutdownResponse
        if key == ControlledShutdownResponse.__api_key__
        else load_response_schema(key, version)
    )


def error_codes(message: Any) -> Iterator[ErrorCode]:
    """Yield every error code in a message, at any depth."""
    for field in fields(message):
        value = getattr(message, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, ErrorCode):
                yield part
            elif is_dataclass(part):
                yield from error_codes(part)


@pytest.mark.parametrize("api", SERVED_APIS, ids=lambda api: api.versions.newest.__name__)
@examples(10)
@given(data=st.data())
def test_any_request_has_one_answer_and_the_controller_goes_on(api: AnyServedApi, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions_of(api)), label="version")
    requests = data.draw(st.lists(messages(request_type(api, version), LIKELY), min_size=1, max_size=3))

    async def ask() -> None:
        async with simulate_cluster() as cluster:
            await busy_cluster(cluster)
            for request in requests:
                content = await exchange(cluster, api, request)
                assert decode_response(response_type(request), content).__version__ == version
            assert cluster.active.terms == 1

    asyncio.run(ask())


@pytest.mark.parametrize("api", SERVED_APIS, ids=lambda api: api.versions.newest.__name__)
@examples(5)
@given(data=st.data())
def test_any_request_to_a_process_that_is_not_the_controller_is_refused_and_changes_nothing(
    api: AnyServedApi, data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from(versions_of(api)), label="version")
    request = data.draw(messages(request_type(api, version), LIKELY))

    async def ask() -> None:
        async with simulate_cluster() as cluster:
            await busy_cluster(cluster)
            standby = cluster.start_controller(1001)
            await cluster.settle()
            before = cluster.zk.tree.zxid
            frame = encode_request(request, 7, "client")[4:]
            answer = await OwnedApi(api.versions, standby.answer).respond(read_request_head(frame), frame)
            assert isinstance(answer, bytes)
            codes = set(error_codes(decode_response(response_type(request), answer[4:])))
            assert not codes or codes & NOT_IN_CHARGE
            assert cluster.zk.tree.zxid == before

    asyncio.run(ask())


@pytest.mark.parametrize("api", SERVED_APIS, ids=lambda api: api.versions.newest.__name__)
@examples(5)
@given(data=st.data())
def test_any_request_that_meets_an_error_nobody_foresaw_is_answered_as_failed(
    api: AnyServedApi, data: st.DataObject
) -> None:
    """Every part of it: with UNKNOWN_SERVER_ERROR."""
    message = data.draw(messages(request_type(api, api.versions.max), LIKELY))
    request = isr_changes.convert_request(message) if api.versions is older_isr_changes.VERSIONS else message

    async def fail(*_: object) -> ResponsePayload:
        raise ZeroDivisionError("a mistake of ours")

    async def ask() -> None:
        async with simulate_cluster() as cluster:
            cluster.surprises_expected = True
            await cluster.serve()
            requests = OpenRequests([replace(api, answer=fail)], cluster.clock, lambda event: None)
            received = requests.receive(request)
            await requests.answer(cluster.active.term, received)
            codes = set(error_codes(await received.answer))
            assert codes <= {ErrorCode.unknown_server_error, ErrorCode.none}
            assert ErrorCode.unknown_server_error in codes or not codes

    asyncio.run(ask())
