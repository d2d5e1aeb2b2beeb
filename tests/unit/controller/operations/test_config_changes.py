"""A topic comes to allow an unclean leader, and gets one; all other configurations are not the controller's."""

import pytest

from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, CreateMode
from simulation.checks import assert_sound
from simulation.cluster import CONTROLLER, Cluster, tp

ORDERS, OTHER = tp("orders"), tp("other")
UNCLEAN = {"unclean.leader.election.enable": "true"}


@pytest.fixture
async def leaderless(cluster: Cluster) -> Cluster:
    """Two topics whose last in-sync replica, on 1, is dead, and whose other replica, on 2, is alive."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    for name in ("orders", "other"):
        cluster.create_topic(name, [1, 2])
    await cluster.settle()
    cluster.kill_broker(2)
    await cluster.settle()
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.start_broker(2)
    await cluster.settle()
    assert cluster.leadership(ORDERS) == (-1, [1])
    return cluster


async def test_a_topic_that_allows_it_gets_an_unclean_leader_at_once(leaderless: Cluster) -> None:
    leaderless.alter_config("topics/orders", UNCLEAN)
    await leaderless.settle()
    assert leaderless.leadership(ORDERS) == (2, [2])
    assert int(leaderless.state(ORDERS).leader_and_isr.leader_recovery_state) == 1
    assert leaderless.leadership(OTHER) == (-1, [1])
    assert_sound(leaderless)


@pytest.mark.parametrize("entity", ["brokers/<default>", f"brokers/{CONTROLLER}"])
async def test_the_default_is_changed_for_all_topics(leaderless: Cluster, entity: str) -> None:
    leaderless.alter_config(entity, UNCLEAN)
    await leaderless.settle()
    assert leaderless.leadership(ORDERS) == (2, [2])
    assert leaderless.leadership(OTHER) == (2, [2])


async def test_a_topics_own_word_goes_before_the_default(leaderless: Cluster) -> None:
    leaderless.alter_config("topics/orders", {"unclean.leader.election.enable": "false"})
    leaderless.alter_config("brokers/<default>", UNCLEAN)
    await leaderless.settle()
    assert leaderless.leadership(ORDERS) == (-1, [1])
    assert leaderless.leadership(OTHER) == (2, [2])


async def test_the_controllers_own_default_goes_before_that_of_all_brokers(leaderless: Cluster) -> None:
    leaderless.alter_config(f"brokers/{CONTROLLER}", {"unclean.leader.election.enable": "false"})
    leaderless.alter_config("brokers/<default>", UNCLEAN)
    await leaderless.settle()
    assert leaderless.leadership(ORDERS) == (-1, [1])


@pytest.mark.parametrize(
    ("entity", "config"),
    [
        ("topics/orders", {"retention.ms": "1"}),
        ("topics/ghost", UNCLEAN),
        ("brokers/2", UNCLEAN),
        ("users/alice", {}),
    ],
)
async def test_what_allows_nothing_elects_nobody(leaderless: Cluster, entity: str, config: dict[str, str]) -> None:
    leaderless.write(Create(path=f"{paths.CONFIG}/users"))
    leaderless.logs.clear()
    leaderless.alter_config(entity, config)
    await leaderless.settle()
    assert leaderless.leadership(ORDERS) == (-1, [1])
    assert [entry for entry in leaderless.logs if entry["event"] == "no leader elected"] == []


async def test_an_unreadable_configuration_never_allows_it(leaderless: Cluster) -> None:
    leaderless.put(paths.broker_config(None), b"{not json")
    leaderless.alter_config("topics/other", UNCLEAN)
    await leaderless.settle()
    assert leaderless.leadership(OTHER) == (2, [2]), "the topic's own word is readable"
    leaderless.alter_config("topics/orders", {})
    await leaderless.settle()
    assert leaderless.leadership(ORDERS) == (-1, [1])


async def test_an_unreadable_notification_is_skipped(leaderless: Cluster) -> None:
    mode = CreateMode.PERSISTENT_SEQUENTIAL
    leaderless.write(Create(path=paths.CONFIG_CHANGE_PREFIX, data=b"{not json", mode=mode))
    leaderless.alter_config("topics/orders", UNCLEAN)
    await leaderless.settle()
    assert leaderless.leadership(ORDERS) == (2, [2])
    assert any("unreadable configuration notification" in entry["event"] for entry in leaderless.logs)


async def test_a_notification_that_others_removed_meanwhile_is_nothing(leaderless: Cluster) -> None:
    leaderless.put(paths.topic_config(ORDERS.topic), codecs.encode_config(UNCLEAN))
    leaderless.write(Create(path=f"{paths.CONFIG_CHANGES}/config_change_0000000500", data=b""))
    await leaderless.settle()
    assert leaderless.leadership(ORDERS) == (-1, [1])


@pytest.mark.parametrize("name", ["zzz", "config_change_", "config_change_9999999999x"])
async def test_what_else_lies_beside_the_notifications_hides_none(leaderless: Cluster, name: str) -> None:
    leaderless.write(Create(path=f"{paths.CONFIG_CHANGES}/{name}"))
    await leaderless.settle()
    leaderless.alter_config("topics/orders", UNCLEAN)
    await leaderless.settle()
    assert leaderless.leadership(ORDERS) == (2, [2])


async def test_many_changes_are_one_event(leaderless: Cluster) -> None:
    counted = "kontroller_event_time_seconds_count"
    before = leaderless.active.metric(counted, event="ConfigsChanged") or 0
    for _ in range(50):
        leaderless.alter_config("topics/other", {"retention.ms": "1"})
    leaderless.alter_config("topics/orders", UNCLEAN)
    await leaderless.settle()
    assert leaderless.leadership(ORDERS) == (2, [2])
    assert leaderless.active.metric(counted, event="ConfigsChanged") == before + 1


async def test_a_change_while_nobody_was_in_charge_counts_for_the_next_controller(leaderless: Cluster) -> None:
    await leaderless.active.kill()
    leaderless.alter_config("topics/orders", UNCLEAN)
    await leaderless.serve(1001)
    assert leaderless.leadership(ORDERS) == (2, [2])
    assert leaderless.leadership(OTHER) == (-1, [1])
