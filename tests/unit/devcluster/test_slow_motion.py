"""The delays of slow motion follow from the seed, the stream and the number of the write."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from controller_core.zk.session import Create, WriteOp, ZkError, ZkSession
from devcluster.stand_ins.slow_motion import LONGEST_S, Delays, Slowed, SlowSession

_FIRST, _SECOND = [Create(path="/first")], [Create(path="/second")]
Step = float | str


class Refused(ZkError):
    """The error of ZooKeeper at the second write."""


class Session:
    """A session of ZooKeeper that notes all writes, and refuses those to `/second`."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        ((op,),) = transactions
        self._steps.append(op.path)
        return [Refused() if op.path == "/second" else (op.path,)]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """The pauses and the writes, in their order."""
    noted: list[Step] = []

    async def note(pause_s: float) -> None:
        noted.append(pause_s)

    monkeypatch.setattr(asyncio, "sleep", note)
    return noted


def _slow_session(steps: list[Step], seed: str = "7") -> SlowSession:
    session: Any = Session(steps)
    zk: ZkSession = session
    return SlowSession(zk, Delays(seed, "ZooKeeper"))


def _first_delays(seed: str, stream: str) -> list[float]:
    delays = Delays(seed, stream)
    return [delays.next_s() for _ in range(100)]


def test_the_same_seed_and_stream_have_the_same_delays() -> None:
    assert _first_delays("7", "ZooKeeper") == _first_delays("7", "ZooKeeper")


@pytest.mark.parametrize(("seed", "stream"), [("8", "ZooKeeper"), ("7", "broker 1")])
def test_another_seed_or_stream_has_other_delays(seed: str, stream: str) -> None:
    assert not set(_first_delays(seed, stream)) & set(_first_delays("7", "ZooKeeper"))


def test_delays_are_spread_from_nothing_to_the_longest() -> None:
    delays = _first_delays("7", "ZooKeeper")
    assert 0 <= min(delays) < LONGEST_S / 4
    assert LONGEST_S * 3 / 4 < max(delays) <= LONGEST_S


async def test_half_of_a_delay_is_before_a_write_and_half_after_it(steps: list[Step]) -> None:
    delay = _first_delays("7", "ZooKeeper")[0]
    assert await _slow_session(steps).transact(_FIRST) == ("/first",)
    assert steps == [delay / 2, "/first", delay / 2]


async def test_transactions_that_come_together_share_one_delay(steps: list[Step]) -> None:
    pause = _first_delays("7", "ZooKeeper")[0] / 3
    session = _slow_session(steps)
    first, second = await session.transact_many([_FIRST, _SECOND])
    assert first == ("/first",)
    assert isinstance(second, Refused)
    assert steps == [pause, "/first", pause, "/second", pause]


async def test_the_next_write_has_the_next_delay_and_no_write_has_none(steps: list[Step]) -> None:
    session = _slow_session(steps)
    await session.transact(_FIRST)
    assert await session.transact_many([]) == []
    with pytest.raises(Refused):
        await session.transact(_SECOND)
    assert steps[3:] == [_first_delays("7", "ZooKeeper")[1] / 2, "/second", _first_delays("7", "ZooKeeper")[1] / 2]


async def test_only_the_named_methods_are_delayed(steps: list[Step]) -> None:
    class Objects:
        async def get(self, name: str) -> str:
            return name

        async def create(self, name: str, *, kind: str) -> str:
            return f"{kind} {name}"

    objects = Slowed(Objects(), Delays("7", "Kubernetes"), ("create",))
    assert await objects.get("a") == "a"
    assert steps == []
    assert await objects.create("a", kind="topic") == "topic a"
    assert len(steps) == 2
