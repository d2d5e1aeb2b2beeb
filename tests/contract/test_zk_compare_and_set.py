"""Read, decide, write over both kinds of ZooKeeper: both detect another session's write in between alike."""

import asyncio

from controller_core.zk.compare_and_set import compare_and_set, ensure_znodes, make_reader, put
from controller_core.zk.session import Create, Delete, WriteOp, ZkNode
from tests.contract.ensembles import Ensemble


async def test_of_two_sessions_that_count_at_once_each_counts(ensemble: Ensemble) -> None:
    sessions = [await ensemble.session(), await ensemble.session()]

    def count_once(node: ZkNode | None) -> list[WriteOp]:
        return [put("/counter", node, b"%d" % (int(node.data) + 1 if node is not None else 1))]

    turns = [
        compare_and_set(make_reader(zk, "/counter"), count_once, zk.transact) for _ in range(10) for zk in sessions
    ]
    settled = await asyncio.gather(*turns)
    (node,) = await sessions[0].read_many(["/counter"])
    assert node is not None
    assert node.data == b"20"
    assert sorted(int(one.found.data) if one.found else 0 for one in settled) == list(range(20))


async def test_a_delete_that_finds_children_is_decided_again_from_them(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.transact([Create(path="/user")])
    looks = 0

    async def children() -> tuple[str, ...] | None:
        nonlocal looks
        looks += 1
        (names,) = await session.children_many(["/user"])
        if looks == 1:
            await session.transact([Create(path="/user/clients")])
        return names

    settled = await compare_and_set(children, lambda names: [] if names else [Delete(path="/user")], session.transact)
    assert (settled.found, settled.is_written, looks) == (("clients",), False, 2)


async def test_two_sessions_make_sure_of_the_same_znodes(ensemble: Ensemble) -> None:
    sessions = [await ensemble.session(), await ensemble.session()]
    wanted = [Create(path="/a", data=b"first"), Create(path="/a/b")]
    await asyncio.gather(*(ensure_znodes(zk, wanted, zk.transact) for zk in sessions))
    found = await sessions[0].read_many(["/a", "/a/b"])
    assert [node and node.data for node in found] == [b"first", b""]
