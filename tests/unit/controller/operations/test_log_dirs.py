"""A log directory fails: its replicas are dead, and the broker's others are not."""

import pytest

from controller_core.controller.loop.events import BrokerAnswered
from controller_core.model.ids import BrokerEpoch, BrokerId, TopicName
from controller_core.wire.messages import ErrorCode, LeaderAndIsrRequest
from controller_core.zk import paths
from controller_core.zk.session import Create, CreateMode
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings

HIT, SPARED, ALONE = tp("hit"), tp("spared"), tp("alone")


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Start three brokers; 1 leads `hit`, `spared` and `alone`, of which it has the only replica of the last."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("hit", [1, 2, 3])
    cluster.create_topic("spared", [1, 2, 3])
    cluster.create_topic("alone", [1])
    await cluster.settle()
    return cluster


def notifications(cluster: Cluster) -> tuple[str, ...] | None:
    return cluster.zk.tree.children(paths.LOG_DIR_EVENT_NOTIFICATION)


async def test_the_partitions_of_a_failed_directory_get_other_leaders_and_the_others_stay(served: Cluster) -> None:
    served.fail_log_dir(1, HIT)
    await served.settle()
    assert served.leadership(HIT) == (2, [2, 3])
    assert served.leadership(SPARED) == (1, [1, 2, 3])
    assert notifications(served) == ()
    assert served.broker(3).metadata.partitions[HIT].offline_replicas == (1,)
    assert_sound(served)


async def test_a_follower_in_a_failed_directory_leaves_the_isr(served: Cluster) -> None:
    served.fail_log_dir(3, HIT)
    await served.settle()
    assert served.leadership(HIT) == (1, [1, 2])
    assert_sound(served)


async def test_a_partition_that_is_nowhere_else_waits_for_the_directory(served: Cluster) -> None:
    served.fail_log_dir(1, ALONE)
    await served.settle()
    assert served.leadership(ALONE) == (-1, [1])
    served.broker(1).offline.clear()
    served.bounce_broker(1)
    await served.settle()
    assert served.leadership(ALONE) == (1, [1])
    assert_sound(served)


async def test_a_broker_that_starts_with_its_directory_repaired_follows_again(served: Cluster) -> None:
    served.fail_log_dir(1, HIT)
    await served.settle()
    served.broker(1).offline.clear()
    served.bounce_broker(1)
    await served.replicate()
    assert served.leadership(HIT) == (2, [2, 3, 1])
    assert_sound(served)


async def test_a_replica_in_a_failed_directory_is_never_elected(served: Cluster) -> None:
    served.fail_log_dir(2, HIT)
    await served.settle()
    served.request_election(HIT)
    served.kill_broker(1)
    await served.settle()
    assert served.leadership(HIT) == (3, [3])
    assert served.leadership(SPARED) == (2, [2, 3])
    assert_sound(served)


async def test_a_controlled_shutdown_gives_nothing_to_a_failed_directory(served: Cluster) -> None:
    served.fail_log_dir(2, HIT)
    await served.settle()
    response = await served.shut_down(1)
    assert response is not None
    assert served.leadership(HIT)[0] == 3


async def test_a_new_controller_finds_out_by_asking(served: Cluster) -> None:
    served.fail_log_dir(1, HIT)
    await served.settle()
    await served.active.kill()
    served.broker(2).offline.add(SPARED)
    await served.serve(1001)
    await served.settle()
    assert served.leadership(HIT) == (2, [2, 3])
    assert served.leadership(SPARED) == (1, [1, 3])
    assert_sound(served)


async def test_a_new_topic_is_created_on_a_broker_with_a_failed_directory(served: Cluster) -> None:
    served.fail_log_dir(1, HIT)
    await served.settle()
    served.create_topic("new", [1, 2])
    await served.settle()
    assert served.leadership(tp("new")) == (1, [1, 2])
    (sent,) = (
        state
        for request in served.broker(1).requests_of(LeaderAndIsrRequest)
        for topic in request.topic_states
        if topic.topic_name == "new"
        for state in topic.partition_states
    )
    assert sent.is_new, "only a new replica is created while a directory is away (KAFKA-10314)"


async def test_a_directory_that_serves_again_without_a_restart_is_noticed(served: Cluster) -> None:
    served.fail_log_dir(3, HIT)
    await served.settle()
    served.broker(3).offline.clear()
    served.fail_log_dir(3)
    await served.replicate()
    assert served.leadership(HIT) == (1, [1, 2, 3])
    assert_sound(served)


async def test_the_answer_of_a_former_life_of_a_broker_changes_nothing(served: Cluster) -> None:
    process = served.active
    served.broker(1).offline.add(HIT)
    request = served.broker(1).requests_of(LeaderAndIsrRequest)[-1]
    response = await served.broker(1).handle(request)
    served.broker(1).offline.clear()
    served.bounce_broker(1)
    await served.settle()
    before = served.leadership(HIT)
    process.term.enqueue(BrokerAnswered(BrokerId(1), BrokerEpoch(1), request, response))
    await served.settle()
    assert served.leadership(HIT) == before


async def test_an_unreadable_notification_is_removed_and_the_next_one_counts(served: Cluster) -> None:
    mode = CreateMode.PERSISTENT_SEQUENTIAL
    served.write(Create(path=paths.LOG_DIR_EVENT_PREFIX, data=b"{not json", mode=mode))
    served.write(Create(path=paths.LOG_DIR_EVENT_PREFIX, data=b'{"version":1,"broker":99,"event":1}', mode=mode))
    served.fail_log_dir(1, HIT)
    await served.settle()
    assert notifications(served) == ()
    assert served.leadership(HIT) == (2, [2, 3])
    assert any("unreadable log directory notification" in entry["event"] for entry in served.logs)


async def test_a_deletion_waits_for_the_replica_in_a_failed_directory(served: Cluster) -> None:
    served.fail_log_dir(2, HIT)
    await served.settle()
    served.request_deletion("hit")
    await served.settle()
    assert served.exists(paths.topic(TopicName("hit")))
    assert HIT not in served.broker(1).logs
    served.broker(2).offline.clear()
    served.bounce_broker(2)
    await served.settle()
    assert not served.exists(paths.topic(TopicName("hit")))
    assert HIT not in served.broker(2).logs
    assert_sound(served)


async def test_a_partition_that_is_served_again_without_a_restart_gets_its_leader_back(served: Cluster) -> None:
    served.fail_log_dir(1, ALONE)
    await served.settle()
    assert served.broker(3).metadata.partitions[ALONE].offline_replicas == (1,)
    served.broker(1).offline.clear()
    served.fail_log_dir(1)
    await served.settle()
    assert served.leadership(ALONE) == (1, [1])
    assert served.broker(3).metadata.partitions[ALONE].offline_replicas == ()
    assert_sound(served)


async def test_an_answer_about_a_replica_that_was_taken_away_meanwhile_changes_nothing(served: Cluster) -> None:
    served.broker(1).offline.add(HIT)
    sent = served.broker(1).requests_of(LeaderAndIsrRequest)[0]
    response = await served.broker(1).handle(sent)
    served.broker(1).offline.clear()
    served.request_reassignment({HIT: [2, 3]})
    await served.settle()
    before = served.leadership(HIT)
    served.active.term.enqueue(BrokerAnswered(BrokerId(1), served.broker(1).epoch, sent, response))
    await served.settle()
    assert served.leadership(HIT) == before
    assert served.active.metric("kontroller_offline_replicas") == 0
    assert_sound(served)


async def test_no_answer_that_says_nothing_of_the_directory_clears_the_mark(served: Cluster) -> None:
    served.fail_log_dir(1, HIT)
    await served.settle()
    request = served.broker(1).requests_of(LeaderAndIsrRequest)[-1]
    served.broker(1).answer_next_with(ErrorCode.stale_controller_epoch)
    response = await served.broker(1).handle(request)
    served.active.term.enqueue(BrokerAnswered(BrokerId(1), served.broker(1).epoch, request, response))
    await served.settle()
    served.kill_broker(2)
    served.kill_broker(3)
    await served.settle()
    assert served.leadership(HIT)[0] == -1
    assert served.active.metric("kontroller_offline_replicas") == 1


async def test_leaders_do_not_go_back_to_a_failed_directory(cluster: Cluster) -> None:
    cluster.settings = ProcessSettings(auto_leader_rebalance_enable=True)
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("hit", [1, 2])
    await cluster.settle()
    cluster.fail_log_dir(1, HIT)
    await cluster.settle(600_000)
    assert cluster.leadership(HIT) == (2, [2])
    assert [entry for entry in cluster.logs if entry["event"] == "no leader elected"] == []
