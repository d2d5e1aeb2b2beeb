"""Leaders that die, stop or stand still under load: whatever was acknowledged is there."""

import signal

import pytest

from devcluster.clients.load import AckedProducer, lost, read_back
from devcluster.clusters.kontroller import run_command
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_led
from tests.real.replica_broker.mixed import OURS, MixedCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

ROTATED = [[3, 1, 2], [1, 2, 3], [2, 3, 1]]
TWO = {"min.insync.replicas": "2"}


def wait_for_more(producer: AckedProducer, messages: int = 200) -> None:
    goal = producer.acknowledged_count + messages
    wait_until(lambda: producer.acknowledged_count >= goal, f"{messages} more acknowledgements")


def test_no_acknowledged_message_is_lost_when_each_leader_is_killed_in_turn(cluster: MixedCluster) -> None:
    cluster.serve_topic("killed", ROTATED, TWO)
    with AckedProducer(cluster.bootstrap, "killed") as producer:
        wait_for_more(producer)
        for broker in (OURS, 1, 2):
            cluster.broker(broker).kill()
            cluster.wait_until_elsewhere("killed", broker)
            wait_for_more(producer)
            cluster.broker(broker).start()
            cluster.wait_until_served("killed")
            wait_for_more(producer)
    report = producer.stop()
    assert {one.partition for one in report.acknowledged} == {0, 1, 2}
    assert lost(report.acknowledged, read_back(cluster.bootstrap, "killed")) == []


def test_our_broker_leaves_in_order_and_comes_back(cluster: MixedCluster) -> None:
    cluster.serve_topic("left", ROTATED, TWO)
    with AckedProducer(cluster.bootstrap, "left") as producer:
        wait_for_more(producer)
        cluster.ours.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not cluster.ours.process.is_running, "our broker ends")
        assert cluster.ours.process.exit_code == 0
        assert "nothing is led here any more" in cluster.ours.log()
        cluster.wait_until_elsewhere("left", OURS)
        assert cluster.znodes.client.exists(f"/brokers/ids/{OURS}") is None
        wait_for_more(producer)
        cluster.ours.start()
        cluster.wait_until_served("left")
    report = producer.stop()
    assert report.errors == []
    assert lost(report.acknowledged, read_back(cluster.bootstrap, "left")) == []


def test_a_leader_of_ours_that_slept_beyond_its_session_commits_nothing_and_follows_then(cluster: MixedCluster) -> None:
    cluster.serve_topic("slept", ROTATED, TWO)
    with AckedProducer(cluster.bootstrap, "slept") as producer:
        wait_for_more(producer)
        cluster.ours.pause()
        cluster.ours.end_session()
        cluster.wait_until_elsewhere("slept", OURS)
        wait_for_more(producer)
        cluster.ours.resume()
        cluster.wait_until_served("slept")
        wait_for_more(producer)
    report = producer.stop()
    assert "the session with ZooKeeper was lost" in cluster.ours.log()
    assert lost(report.acknowledged, read_back(cluster.bootstrap, "slept")) == []


def test_a_stock_leader_that_sleeps_is_replaced_by_ours(cluster: MixedCluster) -> None:
    cluster.serve_topic("replaced", [[1, 3]])
    with AckedProducer(cluster.bootstrap, "replaced") as producer:
        wait_for_more(producer)
        cluster.broker(1).pause()
        cluster.broker(1).end_session()
        wait_until_led(cluster.znodes, "replaced", 0, OURS)
        wait_for_more(producer)
        cluster.broker(1).resume()
        cluster.wait_until_served("replaced")
    report = producer.stop()
    assert lost(report.acknowledged, read_back(cluster.bootstrap, "replaced")) == []


def test_our_broker_is_drained_by_the_command_and_its_stop_costs_no_producer_anything(cluster: MixedCluster) -> None:
    cluster.serve_topic("drained", ROTATED, TWO)
    with AckedProducer(cluster.bootstrap, "drained") as producer:
        wait_for_more(producer)
        drained = run_command(
            *("drain", "--bootstrap", cluster.bootstrap, "--broker-id", str(OURS)),
            *("--deadline-seconds", "90", "--wait-for-replicas-seconds", "30"),
            timeout_s=120,
        )
        assert drained.returncode == 0, drained
        cluster.wait_until_elsewhere("drained", OURS)
        cluster.ours.stop()
        wait_for_more(producer)
        cluster.ours.start()
        cluster.wait_until_served("drained")
    report = producer.stop()
    assert report.errors == []
    assert lost(report.acknowledged, read_back(cluster.bootstrap, "drained")) == []
