"""`hand-over` and `take-over`: the obstacles that they find, and how they move the role, over simulated servers."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from controller_core.controller.role.requested_role import make_brokers_request, make_process_request
from controller_core.model.ids import BrokerId
from controller_core.zk import codecs, paths
from controller_core.zk.session import AccessRefused, Create, Delete, WriteOp
from kontroller.role.moving import NotMoved, move
from kontroller.role.obstacles import find_obstacles
from kontroller.role.picture import NoCluster, look
from simulation.checks import simulate_cluster
from simulation.cluster import CONTROLLER, Cluster
from tests.unit.controller.role.test_standing import let_kafka_fill_in

OTHER = BrokerId(2000)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2)
        cluster.create_topic("orders", [1, 2])
        let_kafka_fill_in(cluster, 1)
        await cluster.serve()
        cluster.start_controller(OTHER)
        await cluster.settle()
        yield cluster


async def list_obstacles(cluster: Cluster, target: int | None) -> list[str]:
    zk = cluster.zk.session()
    found = await find_obstacles(zk, await look(zk), None if target is None else BrokerId(target))
    return [obstacle.said for obstacle in found if obstacle.is_in_the_way]


async def list_warnings(cluster: Cluster, target: int | None) -> list[str]:
    zk = cluster.zk.session()
    found = await find_obstacles(zk, await look(zk), None if target is None else BrokerId(target))
    return [obstacle.said for obstacle in found if not obstacle.is_in_the_way]


async def test_a_sound_cluster_has_nothing_in_the_way(cluster: Cluster) -> None:
    for target in (OTHER, CONTROLLER, None):
        assert (await list_obstacles(cluster, target), await list_warnings(cluster, target)) == ([], [])


async def test_the_role_is_moved_to_another_of_ours_to_the_brokers_and_back(cluster: Cluster) -> None:
    zk = cluster.zk.session()
    for target in (OTHER, None, OTHER, BrokerId(CONTROLLER), None, None):
        moved = await move(zk, await look(zk), target, timeout_s=20)
        picture = await look(zk)
        assert picture.is_as_wanted(target)
        assert (moved.holder, moved.detours) == (picture.holder, 0)
        assert moved.gap_s < 20
    assert picture.described == "Kafka's broker 1 has the role"


async def test_a_process_that_does_not_take_the_role_is_asked_no_more_and_that_is_said(cluster: Cluster) -> None:
    zk = cluster.zk.session()
    with pytest.raises(NotMoved, match=r"process 77 did not take the role in 0.2 s, and the request is withdrawn"):
        await move(zk, await look(zk), BrokerId(77), timeout_s=0.2)
    assert not cluster.exists(paths.ROLE_REQUEST)


async def test_what_brokers_were_promised_holds_where_a_process_does_not_take_the_role_from_them(
    cluster: Cluster,
) -> None:
    zk = cluster.zk.session()
    await move(zk, await look(zk), None, timeout_s=20)
    sign = codecs.encode_process(codecs.ProcessZnode(whereabouts="nowhere", is_hot=True))
    cluster.write(Create(path=paths.process(BrokerId(77)), data=sign))
    with pytest.raises(NotMoved):
        await move(zk, await look(zk), BrokerId(77), timeout_s=0.2)
    assert (await look(zk)).is_as_wanted(None)


async def test_nobody_is_asked_on_the_strength_of_an_old_look(cluster: Cluster) -> None:
    zk = cluster.zk.session()
    before = await look(zk)
    await move(zk, before, OTHER, timeout_s=20)
    with pytest.raises(NotMoved, match="run the command again"):
        await move(zk, before, None, timeout_s=20)


async def test_a_process_that_is_not_there_or_reaches_no_broker_is_in_the_way(cluster: Cluster) -> None:
    assert await list_obstacles(cluster, 77) == [
        "Kontroller process 77 does not stand by (processes: 1000, 2000): start it with `kontroller controller run`"
    ]
    for number in (1, 2):
        cluster.broker(number).cut_off()
    await cluster.settle(passing_ms=20_000)
    (said,) = await list_obstacles(cluster, OTHER)
    assert "process 2000 on this machine is not fit for the role: most of the registered brokers" in said


async def test_a_migration_to_kraft_is_in_the_way(cluster: Cluster) -> None:
    cluster.write(Create(path=paths.MIGRATION))
    assert ["migration to KRaft has begun" in said for said in await list_obstacles(cluster, OTHER)] == [True]


async def test_somebody_else_who_asks_at_the_same_time_is_in_the_way(cluster: Cluster) -> None:
    cluster.write(replace(make_process_request(BrokerId(77))), owner=cluster.zk.new_session_id())
    assert ["process 77 has been requested" in said for said in await list_obstacles(cluster, None)] == [True]


async def test_brokers_that_are_not_there_are_in_the_way(cluster: Cluster) -> None:
    cluster.zk.observers.clear()
    for number in (1, 2):
        cluster.kill_broker(number)
    await cluster.settle()
    assert await list_obstacles(cluster, None) == ["no broker is registered: start one"]
    assert ["offline, and stay so: orders-0" in said for said in await list_warnings(cluster, None)] == [True]


async def test_what_a_login_may_not_write_is_in_the_way(cluster: Cluster) -> None:
    def refuse(ops: Sequence[WriteOp]) -> None:
        if any(isinstance(op, Delete) and op.path == paths.CONTROLLER for op in ops):
            raise AccessRefused("no")

    cluster.zk.interventions.append(refuse)
    assert ["this login cannot write /controller" in said for said in await list_obstacles(cluster, None)] == [True]
    cluster.zk.interventions.clear()


async def test_what_only_ours_do_is_minded_where_the_role_goes_to_kafka(cluster: Cluster) -> None:
    for path in (paths.THROTTLES, f"{paths.THROTTLES}/x"):
        if not cluster.exists(path):
            cluster.write(Create(path=path))
    assert ["throttles of reassignments" in said for said in await list_warnings(cluster, None)] == [True]
    assert await list_warnings(cluster, OTHER) == []


async def test_a_topic_that_cannot_be_read_is_minded(cluster: Cluster) -> None:
    cluster.write(Create(path=f"{paths.TOPICS}/garbled", data=b"{"))
    assert ["/brokers/topics/garbled" in said for said in await list_warnings(cluster, OTHER)] == [True]


async def test_a_zookeeper_without_a_cluster_is_named() -> None:
    async with simulate_cluster() as cluster:
        with pytest.raises(NoCluster, match=r"zookeeper.connect, with its chroot"):
            await look(cluster.zk.session())


async def test_a_promise_to_the_brokers_is_taken_back_from_whoever_has_the_role(cluster: Cluster) -> None:
    zk = cluster.zk.session()
    cluster.zk.observers.clear()
    cluster.write(make_brokers_request())
    await cluster.settle(passing_ms=60_000)
    picture = await look(zk)
    assert (picture.holder_of_ours is not None, picture.is_as_wanted(picture.holder)) == (True, False)
    await move(zk, picture, picture.holder, timeout_s=20)
    assert not cluster.exists(paths.ROLE_REQUEST)
