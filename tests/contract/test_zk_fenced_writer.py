"""`FencedWriter` over both kinds of ZooKeeper: fencing, isolation, size, and a connection that is lost during writes."""

import asyncio

import pytest

from controller_core.zk import paths
from controller_core.zk.fenced import Fenced, FencedWriter
from controller_core.zk.session import (
    BadVersion,
    Create,
    CreateMode,
    NodeExists,
    SessionExpired,
    SetData,
    WriteOp,
    ZkSession,
    ZkVersion,
)
from tests.contract.ensembles import Ensemble, wait_until

V0 = ZkVersion(0)
EPOCH_VERSION = ZkVersion(1)


async def elect(session: ZkSession) -> FencedWriter:
    """Make the znodes that an elected controller finds, and return its writer."""
    await session.transact([Create(path=paths.CONTROLLER_EPOCH, data=b"0"), Create(path="/n")])
    await session.transact([SetData(path=paths.CONTROLLER_EPOCH, data=b"1", version=V0)])
    return FencedWriter(session, EPOCH_VERSION, reconnect_timeout_ms=20_000)


async def test_thousands_of_groups_are_written_and_each_failure_is_its_own(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    writer = await elect(session)
    created = await writer.write({n: [Create(path=f"/n/{n}"), Create(path=f"/n/{n}/state")] for n in range(3000)})
    assert created.written == tuple(range(3000))
    taken = range(0, 3000, 7)
    await session.transact([SetData(path=f"/n/{n}/state", data=b"other") for n in taken])
    groups: dict[int, list[WriteOp]] = {
        n: [SetData(path=f"/n/{n}/state", data=b"%d" % n, version=V0)] for n in range(3000)
    }
    groups[3] = [Create(path="/n/3")]
    outcome = await writer.write(groups)
    assert {n: type(error) for n, error in outcome.failed.items()} == {
        3: NodeExists,
        **dict.fromkeys(taken, BadVersion),
    }
    assert outcome.written == tuple(n for n in range(3000) if n not in outcome.failed)
    nodes = await session.read_many([f"/n/{n}/state" for n in outcome.written])
    assert [node.data for node in nodes if node] == [b"%d" % n for n in outcome.written]


async def test_one_group_alone_raises_why_it_was_refused_and_only_what_was_applied_counts(ensemble: Ensemble) -> None:
    writer = await elect(await ensemble.session())
    for refused in (None, NodeExists, NodeExists):
        if refused is None:
            await writer.transact([Create(path="/n/a")])
            continue
        with pytest.raises(refused):
            await writer.transact([Create(path="/n/a")])
    assert writer.applied == 1
    await writer.write({"b": [Create(path="/n/b")], "a": [Create(path="/n/a")]})
    assert writer.applied == 2, "what was refused because of another group was sent again"


async def test_a_writer_that_raised_its_fence_goes_on_and_fences_whoever_has_the_former_one(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    writer = await elect(session)
    former = FencedWriter(session, EPOCH_VERSION, reconnect_timeout_ms=20_000)
    await writer.raise_fence(b"2")
    assert (await writer.write({"n": [Create(path="/n/n")]})).written == ("n",)
    with pytest.raises(Fenced):
        await former.write({"m": [Create(path="/n/m")]})
    with pytest.raises(Fenced):
        await former.raise_fence(b"3")
    (node,) = await session.read_many([paths.CONTROLLER_EPOCH])
    assert node is not None
    assert node.data == b"2"


async def test_groups_of_many_megabytes_are_divided_below_the_size_that_zookeeper_takes(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    writer = await elect(session)
    outcome = await writer.write({n: [Create(path=f"/n/{n}", data=b"x" * 200_000)] for n in range(30)})
    assert (outcome.written, outcome.failed) == (tuple(range(30)), {})


async def test_a_deposed_controller_writes_nothing(ensemble: Ensemble) -> None:
    session, successor = await ensemble.session(), await ensemble.session()
    writer = await elect(session)
    await successor.transact([SetData(path=paths.CONTROLLER_EPOCH, data=b"2", version=EPOCH_VERSION)])
    with pytest.raises(Fenced):
        await writer.write({n: [Create(path=f"/n/{n}")] for n in range(3000)})
    assert await successor.children_many(["/n"]) == [()]


async def test_a_controller_whose_session_expired_writes_nothing_in_the_next(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    writer = await elect(session)
    old_id = session.session_id
    await ensemble.expire(session)
    await wait_until(lambda: session.session_id != old_id)
    with pytest.raises(SessionExpired):
        await writer.write({0: [Create(path="/n/0", mode=CreateMode.EPHEMERAL)]})
    assert await session.wait_connected(1_000)
    assert await session.children_many(["/n"]) == [()]


async def test_a_connection_that_goes_and_comes_back_costs_no_write_and_repeats_none(stoppable: Ensemble) -> None:
    session = await stoppable.session()
    await elect(session)
    writer = FencedWriter(session, EPOCH_VERSION, ops_per_transaction=50, reconnect_timeout_ms=20_000)
    keys = range(1000)
    await writer.write({n: [Create(path=f"/n/{n}")] for n in keys})
    rounds, is_over = 0, asyncio.Event()

    async def keep_writing() -> None:
        nonlocal rounds
        while not is_over.is_set():
            data, version = b"%d" % rounds, ZkVersion(rounds)
            outcome = await writer.write({n: [SetData(path=f"/n/{n}", data=data, version=version)] for n in keys})
            assert outcome.failed == {}
            rounds += 1

    writing = asyncio.create_task(keep_writing())
    for goal in (2, 4):
        await wait_until(lambda: rounds >= goal or writing.done())  # noqa: B023 - it is called before the goal moves
        await stoppable.take_away()
        await stoppable.give_back()
    before = rounds
    await wait_until(lambda: rounds > before or writing.done())
    is_over.set()
    await writing
    nodes = await session.read_many([f"/n/{n}" for n in keys])
    assert {(node.version, node.data) for node in nodes if node} == {(rounds, b"%d" % (rounds - 1))}
    assert all(nodes)
