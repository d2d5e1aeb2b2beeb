"""Installed with Helm: the first steps of a new user work from inside the cluster."""

import pytest

from devcluster.clusters.kubernetes import CommandError
from tests.e2e.manifests import ready_condition, reassignment, topic
from tests.e2e.release import BROKERS, PROJECT, Release
from tests.e2e.toolbox import BOOTSTRAP, Toolbox

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def test_the_notes_say_what_to_do_next(release: Release) -> None:
    assert "kubectl" in release.notes
    assert "KafkaCluster" in release.notes


def test_the_chart_s_own_tests_pass(release: Release) -> None:
    said = release.run_tests()
    assert "Phase:          Succeeded" in said
    assert "Failed" not in said


def test_the_examples_show_the_cluster_and_make_its_topics(release: Release) -> None:
    release.kubectl("apply", "--server-side", "-f", str(PROJECT / "examples" / "cluster.yaml"))
    cluster = release.wait_ready("kafkacluster", "demo")
    assert cluster["controller"]["kind"] == "Kontroller"
    assert [broker["id"] for broker in cluster["brokers"]] == list(BROKERS)

    release.kubectl("apply", "--server-side", "-f", str(PROJECT / "examples" / "topics.yaml"))
    orders = release.wait_ready("kafkatopic", "orders")
    assert [partition["replicas"] for partition in orders["partitions"]] == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    release.wait_ready("kafkatopic", "audit-log")


def test_the_controller_writes_the_history_of_the_topics_to_its_volume(release: Release) -> None:
    def topics() -> set[str]:
        return {record["topic"] for record in release.journal() if record["kind"] == "topic"}

    release.wait_for(lambda: {"orders", "audit.log"} <= topics(), "the journal has the topics")


def test_kafka_s_own_tools_see_the_topics_from_inside(toolbox: Toolbox) -> None:
    listed = toolbox.run("kafka-topics.sh", "--bootstrap-server", BOOTSTRAP, "--list").split()
    assert {"orders", "audit.log"} <= set(listed)


def test_a_reassignment_moves_a_partition_between_brokers(release: Release) -> None:
    release.apply(topic("moving", [[1, 2]]), reassignment("move-it", "moving", [[3, 2]]))
    ended = release.wait_ready("partitionreassignment", "move-it")
    (partition,) = ended["partitions"]
    assert (partition["originalReplicas"], partition["replicas"]) == ([1, 2], [3, 2])
    assert sorted(partition["isr"]) == [2, 3]


def test_a_reassignment_to_brokers_that_are_not_there_says_so_and_moves_nothing(release: Release) -> None:
    release.kubectl("apply", "--server-side", "-f", str(PROJECT / "examples" / "reassignment.yaml"))
    release.wait_for(
        lambda: release.status("partitionreassignment", "orders-to-4-5-6").get("phase") in ("Pending", "Failed"),
        "the reassignment says that it cannot be done",
    )
    assert "4" in ready_condition(release, "partitionreassignment", "orders-to-4-5-6")["message"]
    replicas = [partition["replicas"] for partition in release.status("kafkatopic", "orders")["partitions"]]
    assert replicas == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    release.kubectl("delete", "partitionreassignment", "orders-to-4-5-6", "--timeout=60s")


def test_an_election_gives_leadership_back(release: Release) -> None:
    release.kubectl("apply", "--server-side", "-f", str(PROJECT / "examples" / "preferred-election.yaml"))
    election = release.wait_ready("preferredelection", "orders-after-restart")
    assert {partition["result"] for partition in election["partitions"]} <= {"Elected", "NotNeeded"}
    leaders = [partition["leader"] for partition in release.status("kafkatopic", "orders")["partitions"]]
    assert leaders == [1, 2, 3]


def test_the_features_example_is_a_dry_run(release: Release) -> None:
    release.kubectl("apply", "--server-side", "-f", str(PROJECT / "examples" / "features.yaml"))
    release.wait_for(
        lambda: ready_condition(release, "featureset", "features")["reason"] == "DryRun",
        "the feature set says what it would do",
    )


def test_a_resource_that_cannot_be_is_refused_at_once(release: Release) -> None:
    with pytest.raises(CommandError, match="partitions"):
        release.apply({**topic("wrong", [[1, 2]]), "spec": {"clusterRef": {"name": "demo"}, "partitions": 0}})
