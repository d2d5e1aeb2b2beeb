"""The guarantees of `ZkSession` about watches: one event each, nothing missed, and none from a plain read."""

import asyncio

import pytest

from controller_core.zk.session import Create, Delete, SetData, WatchEvent, ZkSession, ZkVersion
from tests.contract.ensembles import Ensemble, Events, wait_until

CREATED = WatchEvent.CREATED
DELETED = WatchEvent.DELETED
DATA_CHANGED = WatchEvent.DATA_CHANGED
CHILDREN_CHANGED = WatchEvent.CHILDREN_CHANGED


@pytest.fixture
async def session(ensemble: Ensemble) -> ZkSession:
    return await ensemble.session()


@pytest.fixture
async def other(ensemble: Ensemble) -> ZkSession:
    return await ensemble.session()


async def settle(session: ZkSession, events: Events) -> None:
    """Wait for every event on its way to the session: a watch fires before a later answer."""
    await session.transact([Create(path="/settled")])
    await session.transact([Delete(path="/settled")])
    await session.read_watched(["/settled"], events.watch)
    await session.transact([Create(path="/settled")])
    await wait_until(lambda: ("/settled", CREATED) in events.seen)
    events.seen.remove(("/settled", CREATED))


async def test_a_watched_read_returns_the_znodes_and_notifies_of_the_next_change_of_each(
    session: ZkSession, other: ZkSession
) -> None:
    events = Events()
    await session.transact([Create(path="/a", data=b"x"), Create(path="/b", data=b"y")])
    a, absent, b = await session.read_watched(["/a", "/c", "/b"], events.watch)
    assert a is not None
    assert b is not None
    assert (a.data, absent, b.data) == (b"x", None, b"y")
    await other.transact([SetData(path="/a", data=b"1"), Delete(path="/b"), Create(path="/c")])
    await wait_until(lambda: len(events.seen) == 3)
    assert sorted(events.seen, key=str) == [("/a", DATA_CHANGED), ("/b", DELETED), ("/c", CREATED)]


async def test_own_writes_fire_watches_too(session: ZkSession) -> None:
    events = Events()
    await session.read_watched(["/a"], events.watch)
    await session.transact([Create(path="/a")])
    assert events.seen == [("/a", CREATED)]


async def test_a_watch_fires_once_however_much_changes(session: ZkSession, other: ZkSession) -> None:
    events = Events()
    await session.transact([Create(path="/a")])
    await session.read_watched(["/a"], events.watch)
    for data in (b"1", b"2", b"3"):
        await other.transact([SetData(path="/a", data=data)])
    await other.transact([Delete(path="/a")])
    await settle(session, events)
    assert events.seen == [("/a", DATA_CHANGED)]


async def test_every_arming_has_an_event_of_its_own(session: ZkSession, other: ZkSession) -> None:
    events = Events()
    await session.transact([Create(path="/a")])
    watch = events.watch("same")
    for _ in range(2):
        await session.read_watched(["/a", "/a"], lambda _: watch)
        await session.children_watched("/a", watch)
    await other.transact([Delete(path="/a")])
    await settle(session, events)
    assert events.seen == [("same", DELETED)] * 6


async def test_plain_reads_arm_nothing(session: ZkSession, other: ZkSession) -> None:
    events = Events()
    await session.transact([Create(path="/a")])
    await session.read_watched(["/a"], events.watch)
    await other.transact([SetData(path="/a", data=b"1")])
    await wait_until(lambda: len(events.seen) == 1)
    await session.read_many(["/a", "/b"])
    await session.children_many(["/a"])
    await other.transact([SetData(path="/a", data=b"2"), Create(path="/b"), Create(path="/a/c")])
    await settle(session, events)
    assert events.seen == [("/a", DATA_CHANGED)]


async def test_a_watch_fires_before_its_session_reads_the_change(session: ZkSession, other: ZkSession) -> None:
    await session.transact([Create(path="/a", data=b"0")])
    for number in range(1, 30):
        events = Events()
        await session.read_watched(["/a"], events.watch)
        await other.transact([SetData(path="/a", data=b"%d" % number)])
        (node,) = await session.read_many(["/a"])
        assert node is not None
        assert node.data == b"%d" % number
        assert events.seen == [("/a", DATA_CHANGED)]


async def test_children_are_watched_for_coming_and_going_but_not_for_their_data(
    session: ZkSession, other: ZkSession
) -> None:
    events = Events()
    await session.transact([Create(path="/p"), Create(path="/p/b"), Create(path="/p/a")])
    assert await session.children_watched("/p", events.watch("first")) == ("a", "b")
    await other.transact([SetData(path="/p/a", data=b"1"), SetData(path="/p", data=b"1")])
    await settle(session, events)
    assert events.seen == []
    await other.transact([Create(path="/p/c")])
    await wait_until(lambda: events.seen == [("first", CHILDREN_CHANGED)])
    assert await session.children_watched("/p", events.watch("second")) == ("a", "b", "c")
    await other.transact([Delete(path="/p/c")])
    await wait_until(lambda: events.seen[1:] == [("second", CHILDREN_CHANGED)])


async def test_a_children_watch_fires_at_the_deletion_of_the_parent(session: ZkSession, other: ZkSession) -> None:
    events = Events()
    await session.transact([Create(path="/p")])
    await session.children_watched("/p", events.watch("p"))
    await other.transact([Delete(path="/p")])
    await wait_until(lambda: events.seen == [("p", DELETED)])


async def test_children_of_an_absent_znode_are_none_and_not_watched(session: ZkSession, other: ZkSession) -> None:
    events = Events()
    assert await session.children_watched("/p", events.watch("p")) is None
    await other.transact([Create(path="/p"), Create(path="/p/a")])
    await settle(session, events)
    assert events.seen == []


async def test_thousands_of_watches_are_armed_by_one_read(session: ZkSession, other: ZkSession) -> None:
    events = Events()
    names = [f"/n{number:04}" for number in range(2500)]
    await session.transact([Create(path=name) for name in names[::2]])
    nodes = await session.read_watched(names, events.watch)
    assert [node is not None for node in nodes] == [True, False] * 1250
    await settle(session, events)
    assert events.seen == []
    await other.transact([SetData(path=name, data=b"1", version=ZkVersion(0)) for name in names[::2]])
    await other.transact([Create(path=name) for name in names[1::2]])
    await wait_until(lambda: len(events.seen) == len(names))
    assert sorted(events.seen, key=lambda seen: seen[0]) == [
        (name, CREATED if number % 2 else DATA_CHANGED) for number, name in enumerate(names)
    ]


async def test_no_change_is_missed_while_another_session_keeps_writing(session: ZkSession, other: ZkSession) -> None:
    """A reader that reads again whenever the watch fires ends with the last state, without polling."""
    last = b"499"
    seen: list[bytes] = []
    fired = Events()
    await session.transact([Create(path="/a")])

    async def read() -> None:
        (node,) = await session.read_watched(["/a"], fired.watch)
        seen.append(node.data if node else b"")

    await read()
    writing = asyncio.create_task(other.transact_many([[SetData(path="/a", data=b"%d" % n)] for n in range(500)]))
    while seen[-1] != last:
        await wait_until(lambda: len(fired.seen) >= len(seen))
        await read()
    assert not any(isinstance(result, Exception) for result in await writing)
    assert set(fired.seen) == {("/a", DATA_CHANGED)}
