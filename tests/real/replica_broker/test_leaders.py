"""Leaders that die, stop or hang under load: no acknowledged message is lost."""

import signal

import pytest

from devcluster.clusters.kontroller import run_command
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_acknowledged, wait_until_ended, wait_until_led
from tests.real.replica_broker.mixed import OURS, MixedCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

ROTATED = [[3, 1, 2], [1, 2, 3], [2, 3, 1]]
TWO = {"min.insync.replicas": "2"}


def test_no_acknowledged_message_is_lost_when_each_leader_is_killed_in_turn(cluster: MixedCluster) -> None:
    cluster.serve_topic("killed", ROTATED, TWO)
    with nothing_lost(cluster.bootstrap, "killed", more_than=200) as producer:
        for broker in (OURS, 1, 2):
            cluster.broker(broker).kill()
            cluster.wait_until_elsewhere("killed", broker)
            wait_until_acknowledged(producer, 200)
            cluster.broker(broker).start()
            cluster.wait_until_served("killed")
            wait_until_acknowledged(producer, 200)
    assert {one.partition for one in producer.stop().acknowledged} == {0, 1, 2}


def test_our_broker_leaves_in_order_and_comes_back(cluster: MixedCluster) -> None:
    cluster.serve_topic("left", ROTATED, TWO)
    with nothing_lost(cluster.bootstrap, "left", more_than=200) as producer:
        cluster.ours.process.send_signal(signal.SIGTERM)
        assert wait_until_ended(cluster.ours.process) == 0
        assert "this broker leads no partitions now" in cluster.ours.log()
        cluster.wait_until_elsewhere("left", OURS)
        assert cluster.znodes.client.exists(f"/brokers/ids/{OURS}") is None
        wait_until_acknowledged(producer, 200)
        cluster.ours.start()
        cluster.wait_until_served("left")
    assert producer.stop().errors == []


def test_a_leader_of_ours_that_slept_beyond_its_session_commits_nothing_and_follows_then(cluster: MixedCluster) -> None:
    cluster.serve_topic("slept", ROTATED, TWO)
    with nothing_lost(cluster.bootstrap, "slept", more_than=200) as producer:
        cluster.ours.pause()
        cluster.ours.end_session()
        cluster.wait_until_elsewhere("slept", OURS)
        wait_until_acknowledged(producer, 200)
        cluster.ours.resume()
        cluster.wait_until_served("slept")
    assert "the ZooKeeper session was lost" in cluster.ours.log()


def test_a_stock_leader_that_sleeps_is_replaced_by_ours(cluster: MixedCluster) -> None:
    cluster.serve_topic("replaced", [[1, 3]])
    with nothing_lost(cluster.bootstrap, "replaced", more_than=200) as producer:
        cluster.broker(1).pause()
        cluster.broker(1).end_session()
        wait_until_led(cluster.znodes, "replaced", OURS)
        wait_until_acknowledged(producer, 200)
        cluster.broker(1).resume()
        cluster.wait_until_served("replaced")


def test_our_broker_is_drained_by_the_command_and_its_stop_costs_no_producer_anything(cluster: MixedCluster) -> None:
    cluster.serve_topic("drained", ROTATED, TWO)
    with nothing_lost(cluster.bootstrap, "drained", more_than=200) as producer:
        drained = run_command(
            *("drain", "--bootstrap-server", cluster.bootstrap, "--broker-id", str(OURS)),
            *("--timeout-ms", "90000", "--replicas-timeout-ms", "30000"),
            timeout_s=120,
        )
        assert drained.returncode == 0, drained
        cluster.wait_until_elsewhere("drained", OURS)
        cluster.ours.stop()
        wait_until_acknowledged(producer, 200)
        cluster.ours.start()
        cluster.wait_until_served("drained")
    assert producer.stop().errors == []
