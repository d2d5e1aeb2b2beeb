"""The guarantees of `ZkSession` when the connection or the session is lost."""

import asyncio

import pytest

from controller_core.zk.session import (
    ConnectionLost,
    Create,
    CreateMode,
    NoNode,
    SessionState,
    SetData,
    WatchEvent,
    ZkSession,
)
from tests.contract.ensembles import Ensemble, Events, States, wait_until

CONNECTED, SUSPENDED, EXPIRED = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.EXPIRED
MAY_HAVE_CHANGED = WatchEvent.MAY_HAVE_CHANGED


async def arm_three(session: ZkSession, events: Events) -> None:
    await session.read_watched(["/a", "/absent"], events.watch)
    await session.children_watched("/a", events.watch("children"))


THREE_EVENTS = [("/a", MAY_HAVE_CHANGED), ("/absent", MAY_HAVE_CHANGED), ("children", MAY_HAVE_CHANGED)]


async def test_a_lost_connection_is_reported_and_fires_every_armed_watch(stoppable: Ensemble) -> None:
    session = await stoppable.session()
    await session.transact([Create(path="/a", data=b"1"), Create(path="/mine", mode=CreateMode.EPHEMERAL)])
    states, events, session_id = States(session), Events(), session.session_id
    await arm_three(session, events)
    assert await session.wait_connected(0), "with a connection there is nothing to wait for"

    await stoppable.take_away()
    await wait_until(lambda: states.seen == [SUSPENDED] and len(events.seen) == 3)
    assert sorted(events.seen, key=str) == THREE_EVENTS
    assert not await session.wait_connected(50)
    with pytest.raises(ConnectionLost):
        await session.read_many(["/a"])
    with pytest.raises(ConnectionLost):
        await session.transact([SetData(path="/a", data=b"2")])
    (result,) = await session.transact_many([[SetData(path="/a", data=b"2")]])
    assert isinstance(result, ConnectionLost)

    await stoppable.give_back()
    assert await session.wait_connected(20_000)
    await wait_until(lambda: states.seen == [SUSPENDED, CONNECTED])
    assert session.session_id == session_id
    a, mine = await session.read_many(["/a", "/mine"])
    assert a is not None
    assert a.data == b"1"
    assert mine is not None
    assert mine.ephemeral_owner == session_id
    assert len(events.seen) == 3

    await arm_three(session, events)
    await session.transact([SetData(path="/a", data=b"3")])
    await wait_until(lambda: len(events.seen) == 4)
    assert events.seen[3] == ("/a", WatchEvent.DATA_CHANGED)


async def test_calls_under_way_fail_when_the_connection_goes(stoppable: Ensemble) -> None:
    session = await stoppable.session()
    await session.transact([Create(path="/a")])
    writes = asyncio.gather(
        *(session.transact_many([[SetData(path="/a", data=b"%d" % number)] * 3]) for number in range(200)),
        return_exceptions=True,
    )
    await session.read_many(["/a"])
    await stoppable.take_away()
    results = [result for answer in await writes if not isinstance(answer, BaseException) for result in answer]
    assert len(results) == 200
    assert {type(result) for result in results} <= {tuple, ConnectionLost}
    await stoppable.give_back()
    assert await session.wait_connected(20_000)
    (node,) = await session.read_many(["/a"])
    assert node is not None
    assert node.version >= 3 * sum(isinstance(result, tuple) for result in results)


async def test_an_expired_session_is_reported_and_replaced_by_a_new_one(ensemble: Ensemble) -> None:
    session, other = await ensemble.session(), await ensemble.session()
    await session.transact([Create(path="/a"), Create(path="/mine", mode=CreateMode.EPHEMERAL)])
    states, events, old_id = States(session), Events(), session.session_id
    await arm_three(session, events)
    gone = Events()
    await other.read_watched(["/mine"], gone.watch)

    await ensemble.expire(session)
    await wait_until(lambda: states.seen[-1:] == [CONNECTED])
    assert states.seen == [SUSPENDED, EXPIRED, CONNECTED]
    assert sorted(events.seen, key=str) == THREE_EVENTS
    assert session.session_id != old_id
    await wait_until(lambda: gone.seen == [("/mine", WatchEvent.DELETED)])
    assert (await session.read_many(["/mine"])) == [None]
    await session.transact([Create(path="/mine", mode=CreateMode.EPHEMERAL)])
    (mine,) = await other.read_many(["/mine"])
    assert mine is not None
    assert mine.ephemeral_owner == session.session_id


async def test_the_session_id_is_new_when_the_listener_hears_of_the_new_session(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    old_id = session.session_id
    heard: list[tuple[SessionState, bool]] = []
    session.add_listener(lambda state: heard.append((state, session.session_id == old_id)))
    await ensemble.expire(session)
    await wait_until(lambda: heard[-1:] == [(CONNECTED, False)])
    assert heard[:2] == [(SUSPENDED, True), (EXPIRED, True)]


async def test_closing_reports_expired_and_nothing_more(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    states = States(session)
    await session.close()
    await wait_until(lambda: states.seen == [EXPIRED])


async def test_a_removed_listener_hears_nothing(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    removed, states = States(session), States(session)
    removed.remove()
    removed.remove()
    await ensemble.expire(session)
    await wait_until(lambda: states.seen[-1:] == [CONNECTED])
    assert removed.seen == []


async def test_a_failing_listener_and_a_failing_watch_disturb_no_other(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    failures: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(str(context["exception"])))

    def fail(event: WatchEvent | SessionState) -> None:
        raise RuntimeError(f"cannot bear {event.name}")

    session.add_listener(fail)
    states, events = States(session), Events()
    await session.read_watched(["/a"], lambda _: fail)
    await session.read_watched(["/a"], events.watch)
    await session.transact([Create(path="/a")])
    await wait_until(lambda: events.seen == [("/a", WatchEvent.CREATED)])
    await session.close()
    await wait_until(lambda: states.seen == [EXPIRED])
    assert failures == ["cannot bear CREATED", "cannot bear EXPIRED"]


async def test_a_connected_session_need_not_wait(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    assert await session.wait_connected(1_000)
    with pytest.raises(NoNode):
        await session.transact([SetData(path="/absent", data=b"")])
    assert await session.wait_connected(1_000)
