"""The journal of a cluster to which everything happens once: the production controller over a simulated ZooKeeper."""

import asyncio
from functools import cache

from controller_core.zk import paths
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to

A_WHILE_MS = 100_000
"""Longer than the audit's patience."""


@cache
def story() -> tuple[bytes, ...]:
    """Return the lines of the story: two terms, in which brokers fail, restart and return, leaders and replicas move,
    an election is unclean, and a partition is removed and added again, with another leader in the same leader epoch."""
    return asyncio.run(_play_story())


async def _play_story() -> tuple[bytes, ...]:
    async with simulate_cluster() as cluster:
        journal = cluster.journal = MemoryJournal()
        cluster.settings = ProcessSettings(journal_snapshot_interval_seconds=600)
        cluster.ours = {1, 2, 3, 4}
        cluster.start_brokers(1, 2, 3, 4)
        first = await cluster.serve()
        await _live(cluster)
        await first.stop()
        cluster.kill_broker(3)
        cluster.start_controller(1001)
        await cluster.settle(A_WHILE_MS)
        cluster.start_broker(3)
        await _rest(cluster)
        cluster.create_topic("late", [3, 4])
        await _rest(cluster)
        cluster.kill_broker(4)
        await _rest(cluster)
        assert_journal_folds_to(cluster.active.term.state, journal)
    return tuple(journal.lines)


async def _live(cluster: Cluster) -> None:
    cluster.create_topic("orders", [1, 2, 3], [2, 3, 1])
    cluster.create_topic("logs", [1, 2], config={"unclean.leader.election.enable": "true"})
    await _rest(cluster)
    cluster.kill_broker(1)
    await _rest(cluster)
    cluster.start_broker(1)
    await _rest(cluster)
    cluster.request_election(tp("orders"))
    await _rest(cluster)
    cluster.request_reassignment({tp("orders", 1): [4, 3]})
    await _rest(cluster)
    await cluster.alter_isr(tp("logs"), [2])
    cluster.kill_broker(2)
    await _rest(cluster)
    cluster.start_broker(2)
    await _rest(cluster)
    cluster.request_deletion("logs")
    await _rest(cluster)
    cluster.create_topic("sized", [1, 2], [2, 3])
    await _rest(cluster)
    cluster.request_of_partition(paths.PARTITIONS_REMOVE, tp("sized", 1))
    await _rest(cluster)
    cluster.request_of_partition(paths.PARTITIONS_ADD, tp("sized", 1), [3, 4])
    await _rest(cluster)


async def _rest(cluster: Cluster) -> None:
    await cluster.replicate()
    await cluster.settle(A_WHILE_MS)
