"""Read, decide, write, and retry after a conflict: the loop ends, and no write is lost."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from controller_core.zk.compare_and_set import (
    ATTEMPTS,
    Contended,
    Unwritten,
    compare_and_set,
    compare_and_set_each,
    ensure_znodes,
    find_unwritten,
    make_reader,
    put,
)
from controller_core.zk.session import (
    BadVersion,
    Conflict,
    Create,
    Delete,
    FailedOp,
    NodeExists,
    OperationRefused,
    SetData,
    TooLarge,
    TransactionFailed,
    WriteOp,
    ZkNode,
    ZkSession,
    ZkVersion,
)
from simulation.zookeeper import SimulatedZooKeeper

PATH = "/counter"


@pytest.fixture
def zk(zookeeper: SimulatedZooKeeper) -> ZkSession:
    return zookeeper.session()


def count_up(node: ZkNode | None) -> list[WriteOp]:
    return [put(PATH, node, b"%d" % (int(node.data) + 1 if node is not None else 1))]


async def data(zk: ZkSession, path: str = PATH) -> bytes | None:
    (node,) = await zk.read_many([path])
    return node.data if node is not None else None


class Rival:
    """Lets another client write just before each of the next writes."""

    def __init__(self, zk: ZkSession, *writes: WriteOp) -> None:
        self._zk = zk
        self._writes = list(writes)
        self.attempts = 0

    async def transact(self, ops: Sequence[WriteOp]) -> None:
        self.attempts += 1
        if self._writes:
            await self._zk.transact([self._writes.pop(0)])
        await self._zk.transact(ops)


# One decision


async def test_what_is_absent_is_created_and_what_is_there_is_rewritten(zk: ZkSession) -> None:
    for number in (b"1", b"2", b"3"):
        settled = await compare_and_set(make_reader(zk, PATH), count_up, zk.transact)
        assert settled.is_written
        assert await data(zk) == number
    assert settled.found is not None
    assert settled.found.data == b"2", "it is told what the decision was made from"


async def test_where_there_is_nothing_to_do_nothing_is_written(zk: ZkSession) -> None:
    rival = Rival(zk)
    settled = await compare_and_set(make_reader(zk, PATH), lambda _: [], rival.transact)
    assert (settled.found, settled.is_written, rival.attempts) == (None, False, 0)


@pytest.mark.parametrize(
    ("before", "rivals", "after"),
    [
        ([], [Create(path=PATH, data=b"41")], b"42"),
        ([Create(path=PATH, data=b"1")], [SetData(path=PATH, data=b"41")], b"42"),
        ([Create(path=PATH, data=b"7")], [Delete(path=PATH)], b"1"),
        ([Create(path=PATH, data=b"7")], [Delete(path=PATH), Create(path=PATH, data=b"41")], b"42"),
    ],
    ids=["created", "written", "deleted", "deleted and created again"],
)
async def test_it_is_decided_again_from_what_somebody_else_has_written(
    zk: ZkSession, before: list[WriteOp], rivals: list[WriteOp], after: bytes
) -> None:
    for op in before:
        await zk.transact([op])
    await compare_and_set(make_reader(zk, PATH), count_up, Rival(zk, *rivals).transact)
    assert await data(zk) == after


async def test_a_node_that_got_children_is_looked_at_again(zk: ZkSession) -> None:
    await zk.transact([Create(path=PATH)])
    rival = Rival(zk, Create(path=f"{PATH}/child"))

    async def children() -> tuple[str, ...] | None:
        return (await zk.children_many([PATH]))[0]

    await compare_and_set(children, lambda names: [] if names else [Delete(path=PATH)], rival.transact)
    assert await data(zk) == b""


async def test_of_many_who_count_at_once_each_counts(zk: ZkSession) -> None:
    everybody = 50
    await asyncio.gather(*(compare_and_set(make_reader(zk, PATH), count_up, zk.transact) for _ in range(everybody)))
    assert await data(zk) == b"%d" % everybody


async def test_whoever_always_loses_gives_up_and_says_against_what(zk: ZkSession) -> None:
    await zk.transact([Create(path=PATH, data=b"0")])
    rival = Rival(zk, *[SetData(path=PATH, data=b"0")] * 1000)
    with pytest.raises(Contended, match=f"{PATH} was changed by another writer") as raised:
        await compare_and_set(make_reader(zk, PATH), count_up, rival.transact)
    assert rival.attempts == ATTEMPTS
    assert isinstance(raised.value.__cause__, BadVersion)
    assert await data(zk) == b"0"


async def test_a_write_that_will_never_fit_is_not_tried_again(zookeeper: SimulatedZooKeeper) -> None:
    zookeeper.jute_maxbuffer_bytes = 1000
    zk = zookeeper.session()
    rival = Rival(zk)
    with pytest.raises(TooLarge):
        await compare_and_set(make_reader(zk, PATH), lambda node: [put(PATH, node, b"x" * 2000)], rival.transact)
    assert rival.attempts == 1


# Many decisions


def conflict(at: str) -> Conflict:
    return BadVersion(FailedOp(index=0, op=SetData(path=at, data=b"", version=ZkVersion(0))))


def lose_times(
    times: dict[str, int], attempts: list[list[str]]
) -> Callable[[Sequence[str]], Awaitable[dict[str, Conflict]]]:
    """Return an attempt in which each item loses that many times."""

    async def attempt(items: Sequence[str]) -> dict[str, Conflict]:
        attempts.append(list(items))
        lost = [item for item in items if len([a for a in attempts if item in a]) <= times[item]]
        return {item: conflict(item) for item in lost}

    return attempt


async def test_of_many_only_those_that_lost_are_attempted_again() -> None:
    attempts: list[list[str]] = []
    assert await compare_and_set_each("abc", lose_times({"a": 0, "b": 2, "c": 1}, attempts)) == {}
    assert attempts == [["a", "b", "c"], ["b", "c"], ["b"]]


async def test_one_that_always_loses_holds_up_none_of_the_others() -> None:
    attempts: list[list[str]] = []
    beaten = await compare_and_set_each("abc", lose_times({"a": 0, "b": 1000, "c": 3}, attempts))
    assert list(beaten) == ["b"]
    assert "b was changed by another writer" in str(beaten["b"])
    assert len(attempts) == ATTEMPTS
    assert attempts[4:] == [["b"]] * (ATTEMPTS - 4)


async def test_one_that_an_acl_denies_is_not_attempted_again() -> None:
    denied = OperationRefused(FailedOp(index=0, op=Create(path="/b")))
    attempts: list[list[str]] = []

    async def attempt(items: Sequence[str]) -> dict[str, Unwritten]:
        attempts.append(list(items))
        lost = {"a": conflict("a")} if len(attempts) == 1 else {}
        return lost | find_unwritten({"b": denied} if "b" in items else {})

    assert await compare_and_set_each("abc", attempt) == {"b": denied}
    assert attempts == [["a", "b", "c"], ["a"]]


async def test_nothing_to_do_is_no_attempt() -> None:
    attempts: list[list[str]] = []
    assert await compare_and_set_each("", lose_times({}, attempts)) == {}
    assert attempts == []


def test_a_refusal_that_will_be_the_same_the_next_time_is_raised() -> None:
    op = FailedOp(index=0, op=Create(path=PATH))
    assert set(find_unwritten({"a": NodeExists(op), "b": conflict("b")})) == {"a", "b"}
    with pytest.raises(TransactionFailed):
        find_unwritten({"a": NodeExists(op), "b": TransactionFailed(op)})


# Required entries


async def test_what_is_missing_is_created_parents_first_and_the_rest_left_alone(zk: ZkSession) -> None:
    await zk.transact([Create(path="/a", data=b"there")])
    wanted = [Create(path="/a", data=b"new"), Create(path="/a/b"), Create(path="/a/b/c", data=b"1")]
    await ensure_znodes(zk, wanted, zk.transact)
    assert [await data(zk, create.path) for create in wanted] == [b"there", b"", b"1"]


async def test_that_somebody_else_creates_it_first_is_as_good(zk: ZkSession) -> None:
    rival = Rival(zk, Create(path="/a", data=b"theirs"))
    await ensure_znodes(zk, [Create(path="/a"), Create(path="/a/b")], rival.transact)
    assert (await data(zk, "/a"), await data(zk, "/a/b")) == (b"theirs", b"")
