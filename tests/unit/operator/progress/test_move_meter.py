"""A failed reading reports nothing, and the next one is due as always."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from kio.static.protocol import RequestPayload

from controller_core.client.errors import AnswerUnreadable, OutcomeUnknown, Unreachable
from controller_core.client.log_dirs.log_sizes import Copy
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import NO_LEADER, BrokerId
from controller_core.model.metadata import Endpoint
from controller_core.model.snapshot import Snapshot
from controller_operator.kubernetes.object_store import StoredObject
from controller_operator.reconciling.measuring.move_meter import EVERY_S, TIMEOUT_S, MoveMeter
from controller_operator.resources import PartitionReassignment
from simulation.broker_state import log_dirs
from simulation.cluster.names import tp
from simulation.fast_loop import run_fast
from tests.unit.operator.clusters import broker, raw, view

PARTITION = tp("orders", 0)
SPEC = {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}
COPY = Copy(leader=BrokerId(1), to=(BrokerId(2),))


def listen(*numbers: int) -> Snapshot:
    found = {}
    for number in numbers:
        endpoint = Endpoint(listener="ANY", security_protocol="PLAINTEXT", host=f"broker-{number}", port=9092)
        found[BrokerId(number)] = replace(broker(number), endpoints=(endpoint,))
    return replace(view(), brokers=found)


CLUSTER = listen(1, 2)


class Brokers:
    """Two brokers. The leader has 1000 bytes, and the other one nothing, unless `answer` says otherwise."""

    def __init__(self, addresses: Sequence[Address], answer: Callable[[], Awaitable[Any]]) -> None:
        self._is_leader = addresses[0].host == "broker-1"
        self._answer = answer

    async def ask_any(self, _: RequestPayload, __: type[Any]) -> Any:
        return log_dirs([PARTITION], {PARTITION: 1000}, has_failed=False) if self._is_leader else await self._answer()


async def well() -> Any:
    return log_dirs([PARTITION], {}, has_failed=False)


async def never() -> Any:
    await asyncio.Event().wait()


def fail(error: Exception) -> Callable[[], Awaitable[Any]]:
    async def answer() -> Any:
        raise error

    return answer


class Measured:
    """A move with a meter."""

    def __init__(self) -> None:
        self.answer: Callable[[], Awaitable[Any]] = well
        self.told = 0
        self.meter = MoveMeter(
            lambda bootstrap, security=None: Brokers(bootstrap, lambda: self.answer()),
            self._tell,
            lambda: datetime.now(UTC),
        )
        self.stored = StoredObject(raw("PartitionReassignment", SPEC, status={"progress": {"bytesLeft": 7}}))

    def read_left(self) -> int | None:
        assert isinstance(self.stored.resource, PartitionReassignment)
        found = self.meter.progress_of(self.stored.resource)
        return found.bytes_left if found else None

    async def read(self, copy: Copy = COPY, cluster: Snapshot = CLUSTER) -> float:
        """Have a reading made, and wait for it; return the time when the next one is due."""
        due_s = self.meter.look(self.stored, {PARTITION: copy}, cluster)
        await asyncio.sleep(TIMEOUT_S + 0.1)
        return due_s

    def _tell(self, _: Any) -> None:
        self.told += 1


@asynccontextmanager
async def measure() -> AsyncIterator[Measured]:
    found = Measured()
    try:
        yield found
    finally:
        await found.meter.close()


@pytest.mark.parametrize(
    "answer",
    [
        fail(Unreachable("nobody listens")),
        fail(OutcomeUnknown("closed, as to a version that is not known")),
        fail(AnswerUnreadable("no answer at all")),
        fail(RuntimeError("nobody expected that")),
        never,
    ],
    ids=["unreachable", "version unknown", "unreadable", "unexpected", "silent"],
)
def test_a_broker_that_does_not_say_it_leaves_all_of_it_unknown_until_it_does(answer: Any) -> None:
    async def scenario() -> None:
        async with measure() as move:
            assert move.read_left() == 7, "what another operator knew stays until something is known"
            move.answer = answer
            assert await move.read() == EVERY_S
            assert (move.read_left(), move.told) == (None, 1)
            move.answer = well
            assert 0 < await move.read() < EVERY_S, "it is not due yet"
            assert (move.read_left(), move.told) == (None, 1)
            await asyncio.sleep(EVERY_S)
            await move.read()
            assert (move.read_left(), move.told) == (1000, 2)

    run_fast(scenario())


@pytest.mark.parametrize(
    ("copy", "cluster"),
    [
        (COPY, listen(1)),
        (Copy(leader=NO_LEADER, to=(BrokerId(2),)), CLUSTER),
        (COPY, replace(CLUSTER, brokers={**CLUSTER.brokers, BrokerId(2): broker(2)})),
    ],
    ids=["a broker is away", "nobody leads", "no listener without encryption"],
)
def test_nothing_is_said_where_not_all_can_be_asked(copy: Copy, cluster: Snapshot) -> None:
    async def scenario() -> None:
        async with measure() as move:
            move.answer = fail(Unreachable("there is no address"))
            await move.read(copy, cluster)
            assert move.read_left() is None

    run_fast(scenario())


def test_what_nobody_has_measured_for_long_is_known_no_more() -> None:
    async def scenario() -> None:
        async with measure() as move:
            await move.read()
            assert move.read_left() == 1000
            await asyncio.sleep(4 * EVERY_S)
            assert move.read_left() is None

    run_fast(scenario())


def test_an_object_that_was_created_again_knows_nothing_of_its_predecessor() -> None:
    async def scenario() -> None:
        async with measure() as move:
            await move.read()
            move.stored = StoredObject(raw("PartitionReassignment", SPEC, uid="uid-2"))
            assert move.read_left() is None
            move.answer = never
            assert await move.read() == EVERY_S, "it is read at once"

    run_fast(scenario())
