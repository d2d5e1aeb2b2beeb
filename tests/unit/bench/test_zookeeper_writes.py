"""Every way to write writes all states, once, on condition of version and epoch. A faulty run yields no measurement."""

import asyncio
from collections.abc import Sequence

import pytest

from bench.zookeeper_writes import FENCE, WAYS, Clients, States, Way, read, write
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import BadVersion, SetData, WriteOp, ZkNode
from simulation.zookeeper import SimulatedZooKeeper

OURS = [way for way in WAYS if way.client == "kontroller"]
SESSIONS = 3


class Watched(DelegatingSession):
    """Counts the requests, and the most that were open at once."""

    under_way = 0
    most_under_way = 0
    read_paths: tuple[str, ...] = ()

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        return await super().transact(ops)

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        self.read_paths += tuple(paths)
        return await super().read_many(paths)


async def write_states() -> tuple[list[Watched], Clients, States]:
    zookeeper = SimulatedZooKeeper()
    sessions = [Watched(zookeeper.session()) for _ in range(SESSIONS)]
    states = States(250)
    await states.create(sessions[0])
    return sessions, Clients(own=sessions, plain=[]), states


@pytest.mark.parametrize("way", [way for way in OURS if way.op == "write"], ids=str)
async def test_a_way_to_write_writes_every_state_once(way: Way) -> None:
    _, clients, states = await write_states()
    for sessions in (1, SESSIONS):
        await write(clients, way, sessions, states.next_writes())
        await states.prove(clients.own[0])
    assert states.version == 2


@pytest.mark.parametrize("way", [way for way in OURS if way.op == "read"], ids=str)
async def test_a_way_to_read_reads_every_state_once(way: Way) -> None:
    sessions, clients, states = await write_states()
    await read(clients, way, SESSIONS, states.paths)
    assert sorted(path for session in sessions for path in session.read_paths) == sorted(states.paths)


@pytest.mark.parametrize("window", [1, 10])
async def test_no_more_than_the_window_is_under_way(window: int) -> None:
    sessions, clients, states = await write_states()
    way = Way(op="write", way="pipelined", batch=1, window=window)
    await write(clients, way, SESSIONS, states.next_writes())
    assert [session.most_under_way for session in sessions] == [window] * SESSIONS


@pytest.mark.parametrize("way", [way for way in OURS if way.op == "write"], ids=str)
async def test_a_write_is_refused_once_another_controller_has_won(way: Way) -> None:
    sessions, clients, states = await write_states()
    await sessions[0].transact([SetData(path=FENCE.path, data=b"2")])
    with pytest.raises(Exception, match="controller_epoch"):
        await write(clients, way, SESSIONS, states.next_writes())


async def test_a_write_of_another_version_is_refused() -> None:
    sessions, clients, states = await write_states()
    await sessions[0].transact([SetData(path=states.paths[7], data=b"")])
    with pytest.raises(BadVersion):
        await write(clients, OURS[0], 1, states.next_writes())


async def test_a_state_that_was_not_written_is_found() -> None:
    _, clients, states = await write_states()
    writes = states.next_writes()
    await write(clients, OURS[0], 1, writes[1:])
    with pytest.raises(SystemExit, match=f"1 states are not as they were written, .*{writes[0].path}"):
        await states.prove(clients.own[0])
