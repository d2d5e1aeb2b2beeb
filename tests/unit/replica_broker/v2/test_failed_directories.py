"""A log directory fails under a broker of design v2: other brokers lead, and no broker without the log takes part."""

import pytest

from replica_broker.replicas.errors import StorageFailed
from replica_broker.v2.znodes import paths
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.v2.cluster import ORDERS, A, B, C, Cluster, play


async def have_on_one_alone(cluster: Cluster) -> None:
    """Let A alone be in sync, with records that B, which is dead, lacks."""
    await cluster.start(A, B)
    await cluster.create(A, B)
    await cluster.kill(B)
    await cluster.produce(A, "on one alone", acks=1)
    await cluster.wait_until_isr(A)


def test_a_leader_whose_directory_fails_gives_up_and_leaves_the_isr_in_one_step() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(A, B, C)
        await cluster.produce(A, "acknowledged")
        cluster.break_directory(A)
        with pytest.raises(StorageFailed):
            await cluster.produce(A, "refused")
        leader = await cluster.wait_until_led(not_by=A)
        await cluster.wait_until_isr(B, C)
        await cluster.produce(leader, "by the next one")
        assert cluster.values(leader) == ["acknowledged", "by the next one"]
        (cur,) = await cluster.zk.read_many([paths.cur(ORDERS)])
        assert cur is not None
        assert cur.data == b"1"
        assert (await cluster.znodes()).epoch == 2

    run_fast(play(scenario))


def test_the_last_one_in_sync_gives_up_and_stays_in_the_isr_until_its_log_is_back() -> None:
    async def scenario(cluster: Cluster) -> None:
        await have_on_one_alone(cluster)
        cluster.break_directory(A)
        with pytest.raises(StorageFailed):
            await cluster.produce(A, "refused")
        await cluster.start(B)
        await cluster.clock.sleep_ms(60_000)
        znodes = await cluster.znodes()
        assert (znodes.leader, znodes.isr) == (None, (A,))
        await cluster.kill(A)
        await cluster.start(A)
        assert await cluster.wait_until_led() == A
        await cluster.wait_until_isr(A, B)
        assert cluster.values(B) == ["on one alone"]

    run_fast(play(scenario))


def test_who_starts_without_its_log_stands_in_no_election() -> None:
    async def scenario(cluster: Cluster) -> None:
        await have_on_one_alone(cluster)
        folder = str(cluster.directories[A].find_path(ORDERS))
        await cluster.kill(A)
        cluster.disks[A].broken = lambda each: each.startswith(folder)
        await cluster.start(A, B)
        await cluster.clock.sleep_ms(60_000)
        znodes = await cluster.znodes()
        assert (znodes.leader, znodes.isr, znodes.epoch) == (None, (A,), 1)
        assert ORDERS not in cluster.running[A].hosted

    run_fast(play(scenario))


def test_a_new_partition_is_made_and_led_beside_a_directory_that_failed() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        cluster.disks[A].broken = lambda each: each.startswith("/more-data")
        cluster.directories[A].checkpoint_high_watermarks({})
        assert len(cluster.directories[A].offline_paths) == 1
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        assert cluster.values(B) == ["one"]

    run_fast(play(scenario))
