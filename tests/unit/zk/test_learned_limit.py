"""A server that takes less than was said costs a few connections, and no more."""

import pytest

from controller_core.zk.learned_limit import NEVER_SUSPECTED_BYTES, LearnedLimitSession
from controller_core.zk.session import ConnectionLost, Create, TooLarge
from simulation.zookeeper import SimulatedZooKeeper

TAKES_BYTES, SAID_BYTES = 400_000, 1_000_000
LARGE = Create(path="/large", data=bytes(500_000))
PATIENCE_MS = 1_000


class Time:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


async def try_write(session: LearnedLimitSession, create: Create = LARGE) -> type[Exception] | None:
    """Try a write; return None, or the type of its error."""
    assert await session.wait_connected(PATIENCE_MS)
    try:
        await session.transact([create])
    except (ConnectionLost, TooLarge) as error:
        return type(error)
    return None


async def test_what_cost_the_connection_three_times_is_not_sent_again() -> None:
    zookeeper = SimulatedZooKeeper(jute_maxbuffer_bytes=TAKES_BYTES)
    session = LearnedLimitSession(zookeeper.session(max_request_bytes=SAID_BYTES))
    assert [await try_write(session) for _ in range(5)] == [ConnectionLost] * 3 + [TooLarge] * 2
    assert session.max_request_bytes == session.request_bytes([LARGE]) - 1
    assert await try_write(session, Create(path="/small")) is None
    with pytest.raises(TooLarge):
        await session.transact([LARGE])


async def test_a_server_that_was_only_away_takes_it_in_the_end() -> None:
    zookeeper = SimulatedZooKeeper()
    wrapped = zookeeper.session()
    session = LearnedLimitSession(wrapped)
    for _ in range(2):
        zookeeper.fail_before_apply(wrapped)
        assert await try_write(session) is ConnectionLost
    assert await try_write(session) is None
    assert session.max_request_bytes == wrapped.max_request_bytes
    zookeeper.fail_before_apply(wrapped)
    assert await try_write(session, Create(path="/other", data=LARGE.data)) is ConnectionLost
    assert await try_write(session, Create(path="/other", data=LARGE.data)) is None, "and all is forgotten"


async def test_small_writes_are_never_under_suspicion() -> None:
    zookeeper = SimulatedZooKeeper()
    wrapped = zookeeper.session()
    session = LearnedLimitSession(wrapped)
    small = Create(path="/small", data=bytes(NEVER_SUSPECTED_BYTES - 1_000))
    for _ in range(5):
        zookeeper.fail_before_apply(wrapped)
        assert await try_write(session, small) is ConnectionLost
    assert await try_write(session, small) is None


async def test_what_was_learned_is_forgotten_after_a_while() -> None:
    zookeeper, time = SimulatedZooKeeper(jute_maxbuffer_bytes=TAKES_BYTES), Time()
    session = LearnedLimitSession(zookeeper.session(max_request_bytes=SAID_BYTES), monotonic_s=time)
    for _ in range(4):
        await try_write(session)
    zookeeper.jute_maxbuffer_bytes = SAID_BYTES
    assert await try_write(session) is TooLarge
    time.now_s = 3_600.0
    assert await try_write(session) is None
