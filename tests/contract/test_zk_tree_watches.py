"""The guarantees of `ZkSession` about watches of whole trees: every change, in time, until the connection is lost."""

import pytest

from controller_core.zk.session import Create, CreateMode, Delete, SetData, ZkSession
from tests.contract.ensembles import Ensemble, Events, wait_until


@pytest.fixture
async def session(ensemble: Ensemble) -> ZkSession:
    return await ensemble.session()


@pytest.fixture
async def other(ensemble: Ensemble) -> ZkSession:
    return await ensemble.session()


async def test_every_change_of_the_znode_and_below_is_notified_however_many_there_are(
    session: ZkSession, other: ZkSession
) -> None:
    seen: list[str | None] = []
    await session.transact([Create(path="/a"), Create(path="/a/b"), Create(path="/ab"), Create(path="/c")])
    await session.watch_tree("/a", seen.append)
    for data in (b"1", b"2"):
        await other.transact([SetData(path="/a/b", data=data), SetData(path="/ab", data=data)])
    await other.transact([Create(path="/a/d"), Create(path="/a/d/e"), SetData(path="/c", data=b"")])
    await other.transact([Delete(path="/a/d/e"), SetData(path="/a", data=b"3")])
    await session.read_many(["/a"])
    await wait_until(lambda: len(seen) >= 6)
    assert seen == ["/a/b", "/a/b", "/a/d", "/a/d/e", "/a/d/e", "/a"]


async def test_a_change_is_notified_before_the_answer_to_a_request_that_was_applied_after_it(
    session: ZkSession, other: ZkSession
) -> None:
    seen: list[str | None] = []
    await session.transact([Create(path="/a"), Create(path="/role")])
    await session.watch_tree("/a", seen.append)
    for number in range(20):
        await other.transact([Create(path=f"/a/{number}")])
        await session.transact([SetData(path="/role", data=b"")])
        assert len(seen) == number + 1


async def test_own_changes_are_notified_before_the_answer_to_them(session: ZkSession) -> None:
    seen: list[str | None] = []
    await session.transact([Create(path="/a")])
    await session.watch_tree("/a", seen.append)
    await session.transact([Create(path="/a/b", mode=CreateMode.EPHEMERAL), Create(path="/a/c")])
    assert seen == ["/a/b", "/a/c"]


async def test_a_tree_that_is_not_there_yet_is_watched_for_being_created(session: ZkSession, other: ZkSession) -> None:
    seen: list[str | None] = []
    await session.watch_tree("/a", seen.append)
    await other.transact([Create(path="/a"), Create(path="/a/b")])
    await wait_until(lambda: len(seen) == 2)
    assert seen == ["/a", "/a/b"]


async def test_a_watch_that_was_taken_away_fires_no_more_and_another_may_follow(session: ZkSession) -> None:
    first: list[str | None] = []
    second: list[str | None] = []
    await session.transact([Create(path="/a")])
    unwatch = await session.watch_tree("/a", first.append)
    await session.transact([Create(path="/a/b")])
    await unwatch()
    await session.transact([Delete(path="/a/b")])
    await session.watch_tree("/a", second.append)
    await session.transact([Create(path="/a/c")])
    assert (first, second) == (["/a/b"], ["/a/c"])


async def test_watches_of_single_znodes_below_fire_once_as_ever(session: ZkSession, other: ZkSession) -> None:
    events, seen = Events(), list[str | None]()
    await session.transact([Create(path="/a"), Create(path="/a/b")])
    unwatch = await session.watch_tree("/a", seen.append)
    await session.read_watched(["/a/b"], events.watch)
    await session.children_watched("/a/b", events.watch("/a/b"))
    await other.transact([SetData(path="/a/b", data=b"1"), Create(path="/a/b/c")])
    await other.transact([SetData(path="/a/b", data=b"2")])
    await wait_until(lambda: len(events.seen) == 2 and len(seen) == 3)
    await unwatch()
    await session.read_watched(["/a/b"], events.watch)
    await other.transact([SetData(path="/a/b", data=b"3")])
    await wait_until(lambda: len(events.seen) == 3)
    assert seen == ["/a/b", "/a/b/c", "/a/b"]


async def lose_connection(stoppable: Ensemble, session: ZkSession, seen: list[str | None]) -> None:
    """Lose the connection, which the watch reports, and restore it."""
    await stoppable.take_away()
    await wait_until(lambda: seen == [None])
    await stoppable.give_back()
    assert await session.wait_connected(20_000)


async def test_the_loss_of_the_connection_ends_the_watch_and_is_reported(stoppable: Ensemble) -> None:
    session = await stoppable.session()
    seen: list[str | None] = []
    await session.transact([Create(path="/a")])
    await session.watch_tree("/a", seen.append)
    await lose_connection(stoppable, session, seen)
    await session.transact([Create(path="/a/b")])
    assert seen == [None]


async def test_to_take_away_a_watch_that_went_with_its_connection_is_no_error(stoppable: Ensemble) -> None:
    session = await stoppable.session()
    seen: list[str | None] = []
    unwatch = await session.watch_tree("/a", seen.append)
    await lose_connection(stoppable, session, seen)
    await unwatch()
    await session.transact([Create(path="/a")])
    assert seen == [None]


async def test_to_take_away_a_watch_that_was_lost_leaves_the_one_that_was_armed_since(stoppable: Ensemble) -> None:
    session = await stoppable.session()
    seen: list[str | None] = []
    unwatch = await session.watch_tree("/a", seen.append)
    await lose_connection(stoppable, session, seen)
    unwatch_again = await session.watch_tree("/a", seen.append)
    await unwatch()
    await session.transact([Create(path="/a")])
    assert seen == [None, "/a"]
    await unwatch_again()
    await unwatch_again()
    await session.transact([Create(path="/a/b")])
    assert seen == [None, "/a"]


async def test_an_expired_session_has_no_watch_any_more(ensemble: Ensemble, session: ZkSession) -> None:
    seen: list[str | None] = []
    await session.transact([Create(path="/a")])
    await session.watch_tree("/a", seen.append)
    await ensemble.expire(session)
    await wait_until(lambda: seen == [None])
