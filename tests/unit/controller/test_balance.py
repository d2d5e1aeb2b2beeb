"""Leaders go back to their preferred replicas by themselves."""

from controller_core.controller.balance import FIRST_LOOK_AFTER_MS
from tests.unit.controller.checks import assert_sound
from tests.unit.controller.harness import Cluster, tp
from tests.unit.controller.process import ProcessSettings

ORDERS = tp("orders")
INTERVAL_MS = 300_000


async def moved_leader(cluster: Cluster, *, enabled: bool = True) -> None:
    """1 should lead `orders`, was away, and is in sync again."""
    cluster.settings = ProcessSettings(auto_leader_rebalance_enable=enabled)
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.start_broker(1)
    await cluster.replicate()


async def test_leaders_go_back_soon_after_a_term_begins_and_then_in_every_interval(cluster: Cluster) -> None:
    await moved_leader(cluster)
    assert cluster.leadership(ORDERS)[0] == 2
    await cluster.settle(FIRST_LOOK_AFTER_MS)
    assert cluster.leadership(ORDERS)[0] == 1
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.start_broker(1)
    await cluster.replicate()
    assert cluster.leadership(ORDERS)[0] == 2
    await cluster.settle(INTERVAL_MS)
    assert cluster.leadership(ORDERS)[0] == 1
    assert_sound(cluster)


async def test_whoever_does_not_want_it_switches_it_off(cluster: Cluster) -> None:
    await moved_leader(cluster, enabled=False)
    await cluster.settle(INTERVAL_MS * 3)
    assert cluster.leadership(ORDERS)[0] == 2


async def test_a_preferred_replica_that_is_not_in_sync_is_not_tried(cluster: Cluster) -> None:
    cluster.settings = ProcessSettings(auto_leader_rebalance_enable=True)
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.start_broker(1)
    await cluster.settle(INTERVAL_MS * 3)
    assert cluster.leadership(ORDERS)[0] == 2
    assert [entry for entry in cluster.logs if entry["event"] == "no leader elected"] == []


async def test_a_controller_that_lost_its_role_gives_nothing_back(cluster: Cluster) -> None:
    await moved_leader(cluster)
    former = cluster.active
    cluster.zk.expire(former.session)
    await cluster.settle(0)
    await former.stop()
    await cluster.settle(INTERVAL_MS)
    assert cluster.leadership(ORDERS)[0] == 2
