"""The objects of clusters, and the operator's process: what a cluster shows, a broker that stops, an orderly end."""

from collections import Counter

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.running.processes import wait_until
from tests.real.operator.kinds.clusters import MARKS, topic_spec, with_zookeeper
from tests.real.operator.operated import Objects, Operator
from tests.real.operator.witnesses import Witness

pytestmark = MARKS


def test_a_cluster_shows_its_controller_brokers_and_counts(
    operator: Operator, objects: Objects, witness: Witness, request: pytest.FixtureRequest
) -> None:
    cluster = objects.wait_ready("kafkacluster", "demo")
    status = cluster["status"]
    assert status["controller"]["id"] == witness.controller()
    assert status["controller"]["kind"] == request.node.callspec.params["operated_cluster"].partition("-")[0]
    assert [broker["id"] for broker in status["brokers"]] == [1, 2, 3]
    assert status["counts"]["offline"] == 0


def test_a_stopped_broker_shows_in_the_topic_and_so_does_its_return(
    operator: Operator, objects: Objects, kafka: KafkaCluster, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, {"replicaAssignment": [[3], [1]]})
    objects.wait_ready("kafkatopic", topic)
    told = Counter(objects.events("demo"))
    kafka.broker(3).stop()
    try:
        status = objects.wait_ready("kafkatopic", topic, "False", "PartitionsOffline")["status"]
        assert (status["counts"]["offline"], status["counts"]["online"]) == (1, 1)
        assert (status["partitions"][0]["partition"], status["partitions"][0]["leader"]) == (0, -1)
        for reason in ("BrokersGone", "PartitionsOffline"):
            wait_until(
                lambda reason=reason: Counter(objects.events("demo"))[reason] > told[reason],  # type: ignore[misc]  # a lambda with defaults
                f"the cluster has an event {reason}",
            )
        objects.wait_for("kcl", "demo", "Degraded")
        assert objects.condition("kafkacluster", "demo", "Degraded")["message"].startswith("broker 3 is missing; ")
        assert {each["id"]: each["state"] for each in objects.status("kafkacluster", "demo")["brokers"]}[3] == "Missing"
    finally:
        kafka.broker(3).start()
    objects.wait_ready("kafkatopic", topic)
    objects.wait_for("kcl", "demo", "Degraded=False")


@with_zookeeper
def test_an_operator_that_is_asked_to_stop_ends_in_order(operator: Operator, objects: Objects, topic: str) -> None:
    objects.apply("KafkaTopic", topic, topic_spec())
    objects.wait_ready("kafkatopic", topic)
    operator.process.stop()
    assert "operator ends" in operator.log()
    assert "Traceback" not in operator.log()


@with_zookeeper
def test_a_settled_object_is_not_written_again(operator: Operator, objects: Objects, topic: str) -> None:
    objects.apply("KafkaTopic", topic, topic_spec())
    settled = objects.wait_ready("kafkatopic", topic)
    writes = operator.writes()
    objects.annotate("kafkatopic", topic, "kontroller.dev/reconcile-requested-at=now")
    objects.annotate("kafkacluster", "demo", "kontroller.dev/reconcile-requested-at=now")
    objects.apply("KafkaTopic", f"{topic}-other", topic_spec(partitions=1))
    objects.wait_ready("kafkatopic", f"{topic}-other")
    assert (objects.get("kafkatopic", topic) or {})["status"] == settled["status"]
    assert operator.writes()["transact"] == writes["transact"] + 1
