"""Throttles are set, changed and removed, also if processes die in between, and end with their reassignments."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from controller_core.controller.loop.events import ReassignmentsEnded
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, Move
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Delete, FailedOp, TooLarge, WriteOp, ZkSession
from controller_core.zk.throttle_writes import Throttles
from simulation.checks import assert_sound
from simulation.cluster import Cluster, alter_reassignments, ids, tp
from simulation.mortality import Life, MortalSession
from simulation.virtual_time import wait_until_quiet

ORDERS = tp("orders")
OWNER = "shop/move orders"
MOVES = {ORDERS: Move(origin=ids([1, 2, 3]), target=ids([4, 5, 6]))}
OTHER_MOVES = {tp("other"): Move(origin=ids([1, 2]), target=ids([2, 4]))}


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Seven brokers; `orders` on 1, 2 and 3."""
    cluster.start_brokers(1, 2, 3, 4, 5, 6, 7)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    cluster.create_topic("other", [1, 2], config={"retention.ms": "7"})
    await cluster.settle()
    return cluster


def configs(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Return all configurations that are not empty."""
    found = {
        f"{kind}/{name}": codecs.decode_config(cluster.data(f"{paths.CONFIG}/{kind}/{name}") or b"")
        for kind in ("brokers", "topics")
        for name in cluster.zk.tree.children(f"{paths.CONFIG}/{kind}") or ()
    }
    return {entity: config for entity, config in found.items() if config}


def configure(cluster: Cluster, entity: str, **config: str) -> None:
    cluster.put(f"{paths.CONFIG}/{entity}", codecs.encode_config({n.replace("_", "."): v for n, v in config.items()}))


def read_notifications(cluster: Cluster) -> list[str]:
    names = cluster.zk.tree.children(paths.CONFIG_CHANGES) or ()
    return [codecs.decode_config_change(cluster.data(paths.config_change(name)) or b"") for name in names]


def rates(rate: int, *brokers: int) -> dict[str, dict[str, str]]:
    return {f"brokers/{broker}": {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)} for broker in brokers}


THEIRS = {"topics/other": {"retention.ms": "7"}}
LISTS = {"topics/orders": {LEADER_REPLICAS: "0:1,0:2,0:3", FOLLOWER_REPLICAS: "0:4,0:5,0:6"}}


async def test_a_throttle_is_set_changed_and_removed_and_the_brokers_are_notified(served: Cluster) -> None:
    zk = served.zk.session()
    await Throttles(zk).set(OWNER, MOVES, 1000)
    assert configs(served) == {**THEIRS, **LISTS, **rates(1000, 1, 2, 3, 4, 5, 6)}
    assert sorted(read_notifications(served)) == [*(f"brokers/{number}" for number in range(1, 7)), "topics/orders"]
    assert {owner: throttle.bytes_per_second for owner, throttle in (await Throttles(zk).read()).items()} == {
        OWNER: 1000
    }
    await Throttles(zk).set(OWNER, MOVES, 1000)
    assert len(read_notifications(served)) == 7, "what is as it should be is not written"
    await Throttles(zk).set(OWNER, MOVES, 5)
    assert configs(served) == {**THEIRS, **LISTS, **rates(5, 1, 2, 3, 4, 5, 6)}
    await Throttles(zk).remove(OWNER)
    assert configs(served) == THEIRS
    assert await Throttles(zk).read() == {}
    assert read_notifications(served)[-1] == "topics/orders"
    await Throttles(zk).remove(OWNER)


async def test_what_others_have_set_is_as_it_was(served: Cluster) -> None:
    zk = served.zk.session()
    configure(served, "brokers/1", **{LEADER_RATE: "77", "log.retention.ms": "5"})
    configure(served, "topics/orders", **{LEADER_REPLICAS: "9:9", FOLLOWER_REPLICAS: "*"})
    before = configs(served)
    await Throttles(zk).set(OWNER, MOVES, 1000)
    assert configs(served)["brokers/1"] == {LEADER_RATE: "77", FOLLOWER_RATE: "1000", "log.retention.ms": "5"}
    assert configs(served)["topics/orders"] == {LEADER_REPLICAS: "9:9,0:1,0:2,0:3", FOLLOWER_REPLICAS: "*"}
    await Throttles(zk).remove(OWNER)
    assert configs(served) == before


async def test_two_owners_share_brokers_and_each_leaves_the_other_its_own(served: Cluster) -> None:
    zk = served.zk.session()
    await Throttles(zk).set(OWNER, MOVES, 1000)
    await Throttles(zk).set("other", OTHER_MOVES, 10)
    assert configs(served)["brokers/1"][LEADER_RATE] == "10"
    await Throttles(zk).remove("other")
    assert configs(served) == {**THEIRS, **LISTS, **rates(1000, 1, 2, 3, 4, 5, 6)}


@pytest.mark.parametrize("is_changed", [False, True])
async def test_one_for_which_there_is_no_room_leaves_all_as_it_was_and_keeps_nobody_else_from_theirs(
    served: Cluster, is_changed: bool
) -> None:
    zk = served.zk.session(max_request_bytes=4000)
    configure(served, "topics/other", **{LEADER_REPLICAS: ",".join(["9:9"] * 600)})
    await Throttles(zk).set("other", OTHER_MOVES, 10)
    if is_changed:
        await Throttles(zk).set(OWNER, MOVES, 1000)
    before, wanted_before = configs(served), await Throttles(zk).read()
    with pytest.raises(TooLarge, match=r"other.* 4000 "):
        await Throttles(zk).set(OWNER, MOVES | {tp("other", number): MOVES[ORDERS] for number in range(50)}, 2000)
    assert configs(served) == before
    assert await Throttles(zk).read() == wanted_before
    await Throttles(zk).set("third", MOVES, 7)
    assert configs(served)["brokers/4"] == rates(7, 4)["brokers/4"]


@pytest.mark.parametrize("what", ["begin", "end"])
async def test_one_that_is_taken_back_keeps_what_happened_meanwhile(
    served: Cluster, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    throttles, settle = Throttles(served.zk.session()), Throttles.settle
    await throttles.set(OWNER, MOVES | OTHER_MOVES, 1000)
    (before,) = (await throttles.read()).values()

    async def find_no_room(changed: Throttles) -> None:
        monkeypatch.setattr(Throttles, "settle", settle)
        if what == "begin":
            await changed.mark_begun(MOVES.keys())
        else:
            await changed.remove(OWNER)
        raise TooLarge(FailedOp(index=0, op=Delete(path=paths.CONFIG)), size_bytes=4001, max_bytes=4000)

    monkeypatch.setattr(Throttles, "settle", find_no_room)
    with pytest.raises(TooLarge, match="has 4001 bytes"):
        await throttles.set(OWNER, MOVES, 2000)
    assert not before.is_begun
    assert await throttles.read() == ({OWNER: replace(before, is_begun=True)} if what == "begin" else {})


async def test_one_that_was_set_anew_since_it_was_looked_at_is_not_removed(served: Cluster) -> None:
    zk = served.zk.session()
    await Throttles(zk).set(OWNER, MOVES, 1000)
    seen = (await Throttles(zk).read())[OWNER]
    await Throttles(zk).set(OWNER, MOVES, 5)
    await Throttles(zk).remove(OWNER, expected=seen)
    assert configs(served) == {**THEIRS, **LISTS, **rates(5, 1, 2, 3, 4, 5, 6)}


async def test_a_limit_that_lets_nothing_through_is_refused(served: Cluster) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        await Throttles(served.zk.session()).set(OWNER, MOVES, 0)


async def test_a_topic_that_is_gone_gets_no_configuration(served: Cluster) -> None:
    await Throttles(served.zk.session()).set(OWNER, {tp("gone"): MOVES[ORDERS]}, 1000)
    assert not served.exists(f"{paths.TOPIC_CONFIGS}/gone")


async def test_none_is_left_where_all_topics_are_gone_already(served: Cluster) -> None:
    await Throttles(served.zk.session()).set(OWNER, {tp("gone"): MOVES[ORDERS]}, 1000)
    assert configs(served) == THEIRS
    assert not served.zk.tree.children(paths.THROTTLES)


async def test_one_whose_topic_is_deleted_before_its_moves_begin_is_ended(served: Cluster) -> None:
    await Throttles(served.zk.session()).set(OWNER, MOVES, 1000)
    served.request_deletion("orders")
    await served.replicate()
    assert not served.exists(paths.topic(ORDERS.topic))
    assert_removed(served)


async def test_an_unreadable_configuration_holds_up_nothing_else(served: Cluster) -> None:
    served.put(f"{paths.TOPIC_CONFIGS}/orders", b"{scribble")
    zk = served.zk.session()
    await Throttles(zk).set(OWNER, MOVES, 1000)
    assert served.data(f"{paths.TOPIC_CONFIGS}/orders") == b"{scribble"
    served.write(Delete(path=f"{paths.TOPIC_CONFIGS}/orders"))
    assert configs(served) == {**THEIRS, **rates(1000, 1, 2, 3, 4, 5, 6)}
    await Throttles(zk).remove(OWNER)
    assert configs(served) == THEIRS


async def test_more_configurations_than_fit_one_write(served: Cluster) -> None:
    for number in range(120):
        served.create_topic(f"t{number}", [1])
    moves = {tp(f"t{number}"): Move(origin=ids([1]), target=ids([2])) for number in range(120)}
    zk = served.zk.session()
    await Throttles(zk).set(OWNER, moves, 1000)
    assert len(configs(served)) == 120 + 2 + len(THEIRS)
    await Throttles(zk).remove(OWNER)
    assert configs(served) == THEIRS


# The controller ends it


async def throttle_topics(cluster: Cluster) -> ZkSession:
    zk = cluster.zk.session()
    await Throttles(zk).set(OWNER, MOVES, 1000)
    return zk


def assert_removed(cluster: Cluster) -> None:
    assert configs(cluster) == THEIRS
    assert not cluster.zk.tree.children(paths.THROTTLES)
    assert_sound(cluster)


async def test_it_is_removed_with_success_and_not_before(served: Cluster) -> None:
    await throttle_topics(served)
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    assert "topics/orders" in configs(served)
    await served.join_isr(ORDERS, 4, 5, 6)
    await served.settle()
    assert_removed(served)


async def test_it_is_removed_when_the_reassignment_is_cancelled(served: Cluster) -> None:
    await throttle_topics(served)
    await served.request(alter_reassignments({ORDERS: [4, 5, 6]}))
    assert "topics/orders" in configs(served)
    await served.request(alter_reassignments({ORDERS: None}))
    assert_removed(served)


async def test_it_is_removed_when_the_topic_is_deleted(served: Cluster) -> None:
    await throttle_topics(served)
    served.request_reassignment({ORDERS: [4, 5, 6]})
    served.request_deletion("orders")
    await served.replicate()
    assert not served.exists(paths.topic(ORDERS.topic))
    assert_removed(served)


async def test_it_is_removed_when_the_topic_vanishes(served: Cluster) -> None:
    await throttle_topics(served)
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.remove_topic("orders")
    await served.settle()
    assert_removed(served)


async def test_it_is_removed_by_the_next_controller_where_the_last_one_died_before(served: Cluster) -> None:
    await throttle_topics(served)
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    life = served.active.life
    await served.join_isr(ORDERS, 4, 5)
    served.zk.observers.append(lambda: end_with_the_reassignment(served, life))
    await served.alter_isr(ORDERS, [1, 2, 3, 4, 5, 6])
    assert life.is_over
    assert "topics/orders" in configs(served)
    await served.processes[-1].kill()
    await served.serve()
    assert_removed(served)


def end_with_the_reassignment(cluster: Cluster, life: Life) -> None:
    if not cluster.assignment(ORDERS).is_being_reassigned:
        life.is_over = True


async def test_one_that_is_set_when_the_reassignment_runs_already_ends_with_it(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await throttle_topics(served)
    await served.replicate()
    assert_removed(served)


async def test_one_whose_reassignment_a_controller_began_and_died_is_ended_by_the_next(served: Cluster) -> None:
    await throttle_topics(served)
    life = served.active.life
    life.last_write = life.writes + 1
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    assert served.assignment(ORDERS).is_being_reassigned
    await served.processes[-1].kill()
    await served.serve()
    await served.replicate()
    assert_removed(served)


async def test_one_whose_moves_are_not_asked_for_yet_is_left_alone(served: Cluster) -> None:
    await throttle_topics(served)
    served.request_reassignment({tp("other"): [3]})
    await served.replicate()
    await served.active.kill()
    await served.serve()
    assert "topics/orders" in configs(served)


async def test_one_below_which_a_stranger_created_znodes_is_removed(served: Cluster) -> None:
    await throttle_topics(served)
    served.put(f"{paths.throttle(OWNER)}/foo", b"")
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.replicate()
    assert_removed(served)


async def test_one_that_cannot_be_removed_keeps_no_other(served: Cluster) -> None:
    zk = await throttle_topics(served)
    await Throttles(zk).set("~ a later owner", OTHER_MOVES, 1000)
    served.request_reassignment({ORDERS: [4, 5, 6], tp("other"): [2, 4]})

    def always_be_faster(ops: Sequence[WriteOp]) -> None:
        if any(isinstance(op, Delete) and op.path == paths.throttle(OWNER) for op in ops):
            served.put(paths.throttle(OWNER), served.data(paths.throttle(OWNER)) or b"")

    served.zk.interventions.append(always_be_faster)
    await served.replicate()
    assert served.zk.tree.children(paths.THROTTLES) == (paths.throttle(OWNER).rpartition("/")[2],)
    assert configs(served) == {**THEIRS, **LISTS, **rates(1000, 1, 2, 3, 4, 5, 6)}
    served.zk.interventions.clear()
    served.active.term.enqueue(ReassignmentsEnded())
    await served.settle()
    assert_removed(served)


async def test_one_of_many_moves_ends_with_the_last(served: Cluster) -> None:
    moves = {**MOVES, **OTHER_MOVES}
    await Throttles(served.zk.session()).set(OWNER, moves, 1000)
    served.request_reassignment({ORDERS: [4, 5, 6], tp("other"): [2, 4]})
    await served.settle()
    await served.join_isr(tp("other"), 4)
    await served.settle()
    assert "topics/orders" in configs(served)
    await served.join_isr(ORDERS, 4, 5, 6)
    await served.settle()
    assert_removed(served)


async def test_one_for_moves_beside_those_that_run_stays_until_they_have_begun_and_ended_too(served: Cluster) -> None:
    """A running move may end between the limit and the request for the others. These must not begin without the
    limit."""
    zk = await throttle_topics(served)
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await Throttles(zk).set(OWNER, {**MOVES, **OTHER_MOVES}, 1000)
    await served.replicate()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert "topics/orders" in configs(served)
    await Throttles(zk).set(OWNER, {**MOVES, **OTHER_MOVES}, 500)
    assert configs(served)["brokers/4"][LEADER_RATE] == "500"
    served.request_reassignment({tp("other"): [2, 4]})
    await served.replicate()
    assert_removed(served)


async def test_one_whose_move_nobody_knows_of_is_kept_until_that_is_mended(served: Cluster) -> None:
    """The entry of the partition makes no sense when a term begins; its brokers go on with the move."""
    await Throttles(served.zk.session()).set(OWNER, MOVES, 1000)
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await served.active.kill()
    path = paths.topic(ORDERS.topic)
    content = orjson.loads(served.data(path) or b"")
    served.put(path, orjson.dumps(content | {"adding_replicas": {"0": "garbled"}}))
    await served.serve()
    assert configs(served) == {**THEIRS, **LISTS, **rates(1000, 1, 2, 3, 4, 5, 6)}
    served.put(path, orjson.dumps(content))
    await served.replicate()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert configs(served) == THEIRS


async def test_it_can_be_changed_while_the_reassignment_runs(served: Cluster) -> None:
    zk = await throttle_topics(served)
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await Throttles(zk).set(OWNER, MOVES, 7)
    assert configs(served)["brokers/1"] == rates(7, 1)["brokers/1"]
    await served.replicate()
    assert_removed(served)


@pytest.mark.parametrize("path", [paths.THROTTLES, paths.throttle(OWNER), paths.throttle("stranger")])
async def test_scribbled_throttles_do_not_hold_up_a_reassignment(served: Cluster, path: str) -> None:
    zk = await throttle_topics(served)
    served.put(path, b'{"version":2}')
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.replicate()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert_sound(served)
    if path == paths.THROTTLES:
        with pytest.raises(MalformedZnode):
            await Throttles(zk).set(OWNER, MOVES, 7)


# The process that sets the throttle dies

Act = Callable[[ZkSession], Coroutine[Any, Any, None]]


async def set_it(zk: ZkSession) -> None:
    await Throttles(zk).set(OWNER, MOVES, 1000)


async def change_it(zk: ZkSession) -> None:
    await Throttles(zk).set(OWNER, {TopicPartition(*ORDERS): replace(MOVES[ORDERS], target=ids([3, 7]))}, 5)


async def remove_it(zk: ZkSession) -> None:
    await Throttles(zk).remove(OWNER)


@pytest.mark.parametrize("act", [set_it, change_it, remove_it])
@pytest.mark.parametrize("then", [set_it, remove_it])
async def test_who_dies_at_any_write_leaves_what_the_next_can_go_on_from(served: Cluster, act: Act, then: Act) -> None:
    configure(served, "brokers/4", **{LEADER_RATE: "77"})
    others = configs(served)
    zk = served.zk.session()
    step, survived = 0, False
    while not survived:
        step += 1
        if act is not set_it:
            await set_it(zk)
        life = Life(last_write=step)
        dying = asyncio.create_task(act(MortalSession(served.zk.session(), life)))
        await wait_until_quiet()
        survived = dying.done()
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        await then(zk)
        if then is set_it:
            assert configs(served)["topics/orders"] == LISTS["topics/orders"], step
            assert configs(served)["brokers/4"] == {LEADER_RATE: "77", FOLLOWER_RATE: "1000"}, step
        await remove_it(zk)
        assert configs(served) == others, step
    assert step > 2, "it died at the owner's write, and at that of the configurations"
    assert BrokerId(4) in served.live
