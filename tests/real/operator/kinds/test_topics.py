"""Topics: creation, growth, configuration, drift, and the throttle of moves."""

import json
from typing import Any

from devcluster.clients.tools import CONFIGS, run_tool
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.running.processes import wait_until
from tests.real.operator.kinds.clusters import MARKS, topic_spec, with_zookeeper
from tests.real.operator.operated import RECORD_BYTES, Objects, Operator, fill
from tests.real.operator.witnesses import Witness

pytestmark = MARKS


def test_a_topic_is_created_grows_and_changes_its_configuration(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec(config={"retention.ms": "60000", "segment.ms": "30000"}))
    created = objects.wait_ready("kafkatopic", topic)["status"]
    assert witness.is_served(topic, range(3))
    assert created["topicId"] == witness.topic_id(topic)
    assert created["counts"]["online"] == 3
    for row in created["partitions"]:
        assert row["replicas"] == witness.read_assignment(topic, row["partition"])
        assert row["leader"] == witness.leader(topic, row["partition"])
        assert sorted(row["isr"]) == witness.isr(topic, row["partition"])

    objects.apply("KafkaTopic", topic, topic_spec(partitions=5, config={"retention.ms": "70000"}))
    grown = objects.wait_ready("kafkatopic", topic)["status"]
    assert grown["counts"]["partitions"] == 5
    assert grown["topicId"] == created["topicId"]
    assert witness.is_served(topic, range(5))
    assert witness.config(topic) == {"retention.ms": "70000"}
    assert "metadata.finalizers" not in json.dumps(objects.get("kafkatopic", topic))


@with_zookeeper
def test_brokers_use_a_configuration_that_was_changed(
    operator: Operator, objects: Objects, kafka: KafkaCluster, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec(config={"retention.ms": "60000"}))
    objects.wait_ready("kafkatopic", topic)
    objects.apply("KafkaTopic", topic, topic_spec(config={"retention.ms": "123456"}))
    objects.wait_ready("kafkatopic", topic)

    def describe_topic() -> str:
        told = ("--bootstrap-server", kafka.bootstrap_servers, "--entity-type", "topics", "--entity-name", topic)
        return run_tool(CONFIGS, *told, "--describe").stdout

    wait_until(lambda: "retention.ms=123456" in describe_topic(), "the brokers know the new configuration")


def test_a_topic_changed_elsewhere_is_put_right_or_reported(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec(config={"retention.ms": "60000"}))
    objects.wait_ready("kafkatopic", topic)
    witness.set_config(topic, {"retention.ms": "1", "segment.ms": "5000"})
    wait_until(
        lambda: witness.config(topic) == {"retention.ms": "60000", "segment.ms": "5000"},
        "the drifted key is put right, and the other left alone",
    )
    objects.wait_ready("kafkatopic", topic)
    witness.set_config(topic, {"retention.ms": "1"})
    wait_until(lambda: ("DriftCorrected", 2) in objects.count_events(topic), "the second time is counted")
    assert objects.events(topic).count("DriftCorrected") == 1

    objects.apply("KafkaTopic", topic, topic_spec(config={"retention.ms": "60000"}, driftPolicy="Report"))
    objects.wait_ready("kafkatopic", topic)
    witness.set_config(topic, {"retention.ms": "2"})
    status = objects.wait_ready("kafkatopic", topic, "True", "Drifted")["status"]
    assert status["drift"] == [{"key": "config.retention.ms", "desired": "60000", "live": "2"}]
    assert objects.condition("kafkatopic", topic, "Drifted")["status"] == "True"
    assert witness.config(topic) == {"retention.ms": "2"}


def test_configuration_that_the_spec_does_not_name_is_shown_and_goes_only_if_the_spec_says_so(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    named = {"cleanup.policy": "delete"}
    by_hand = {
        **named,
        "retention.ms": "604800000",
    }  # the default, which the topic now keeps whatever the brokers' default is
    objects.apply("KafkaTopic", topic, topic_spec(config=named))
    objects.wait_ready("kafkatopic", topic)
    witness.set_config(topic, by_hand)
    shown = {"total": 1, "keys": [{"key": "retention.ms", "value": "604800000"}]}
    wait_until(lambda: objects.status("kafkatopic", topic).get("undeclaredConfig") == shown, "the key is shown")
    objects.wait_for_event(topic, "UndeclaredConfig")
    assert witness.config(topic) == by_hand

    objects.apply("KafkaTopic", topic, topic_spec(config=named, undeclaredConfigPolicy="Remove"))
    wait_until(lambda: witness.config(topic) == named, "the key is removed")
    objects.wait_ready("kafkatopic", topic)
    assert objects.status("kafkatopic", topic)["undeclaredConfig"]["total"] == 0


def test_a_changed_throttle_of_a_topic_reaches_its_running_move(
    operator: Operator, objects: Objects, kafka: KafkaCluster | KRaftCluster, witness: Witness, topic: str
) -> None:
    def apply(broker: int, rate: int | None) -> None:
        how: dict[str, Any] = {"reassignment": {"throttle": {"bytesPerSecond": rate}}} if rate is not None else {}
        objects.apply("KafkaTopic", topic, {"replicaAssignment": [[broker]], **how})

    apply(1, None)
    objects.wait_ready("kafkatopic", topic)
    fill(kafka, topic)
    apply(2, RECORD_BYTES)
    wait_until(lambda: witness.read_assignment(topic, 0) == [2, 1], "the move runs")
    rates = witness.throttles(topic).rates
    assert rates[1] == rates[2] == (RECORD_BYTES, RECORD_BYTES)
    apply(2, 2 * RECORD_BYTES)
    raised = (2 * RECORD_BYTES, 2 * RECORD_BYTES)
    wait_until(lambda: witness.throttles(topic).rates[1] == raised, "the move has the higher throttle")
    assert witness.read_assignment(topic, 0) == [2, 1], "it still moves"
    name = objects.status("kafkatopic", topic)["reassignment"]["name"]
    apply(2, None)
    objects.wait_ready("partitionreassignment", name, reason="Completed")
    objects.wait_ready("kafkatopic", topic, reason="Reconciled")
    assert (witness.read_assignment(topic, 0), witness.throttles(topic)) == ([2], ({}, ([], []), False))
    moves = [each["metadata"]["name"] for each in objects.every("partitionreassignments")]
    assert [each for each in moves if each.startswith(f"{topic}-")] == [name], "the move was made once"
