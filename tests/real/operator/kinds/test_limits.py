"""Moves with a limit of bytes per second."""

from typing import Any

from controller_operator.reconciling.measuring.move_meter import EVERY_S, TIMEOUT_S
from devcluster.clients.tools import CONFIGS, run_tool
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.operator.kinds.clusters import MARKS
from tests.real.operator.operated import NAMESPACE, RECORD_BYTES, RECORDS, Objects, Operator, fill
from tests.real.operator.witnesses import Witness

pytestmark = MARKS

FETCH_BYTES = 1 << 20
"""The default of `replica.fetch.max.bytes`."""


def test_a_limit_slows_a_move_until_it_is_raised_and_leaves_only_what_others_have_set(
    operator: Operator, objects: Objects, witness: Witness, kafka: KafkaCluster | KRaftCluster, topic: str
) -> None:
    theirs = "leader.replication.throttled.rate=987654321"
    told = ("--bootstrap-server", kafka.bootstrap_servers, "--alter", "--entity-type", "brokers", "--entity-name", "2")
    run_tool(CONFIGS, *told, "--add-config", theirs)
    serve_topic(witness, topic, [[1]])
    fill(kafka, topic)
    partitions = [{"topic": topic, "partition": 0, "replicas": [2]}]
    objects.apply(
        "PartitionReassignment", topic, {"partitions": partitions, "throttle": {"bytesPerSecond": RECORD_BYTES}}
    )
    wait_until(lambda: witness.read_assignment(topic, 0) == [2, 1], "the move runs")
    limited = witness.throttles(topic)
    assert (limited.rates[1], limited.rates[2]) == ((RECORD_BYTES, RECORD_BYTES), (987654321, RECORD_BYTES))
    assert (limited.lists, limited.is_remembered) == ((["0:1"], ["0:2"]), True)
    raised = {"partitions": partitions, "throttle": {"bytesPerSecond": 10**9}}
    objects.apply("PartitionReassignment", topic, raised)
    status = objects.wait_ready("partitionreassignment", topic)["status"]
    assert (status["phase"], status.get("throttle")) == ("Completed", None)
    assert witness.read_assignment(topic, 0) == [2]
    assert witness.throttles(topic) == ({2: (987654321, None)}, ([], []), False)
    assert not [name for name in witness.config(topic) if "throttled" in name]
    run_tool(CONFIGS, *told, "--delete-config", "leader.replication.throttled.rate")


def test_a_limited_move_shows_how_much_is_left_and_how_long_that_takes_and_ends_without_them(
    operator: Operator,
    objects: Objects,
    witness: Witness,
    kafka: KafkaCluster | KRaftCluster,
    kubernetes_api: KubernetesCluster,
    topic: str,
) -> None:
    limit = 2 * RECORD_BYTES
    serve_topic(witness, topic, [[1]])
    fill(kafka, topic)
    partitions = [{"topic": topic, "partition": 0, "replicas": [1, 3]}]
    objects.apply("PartitionReassignment", topic, {"partitions": partitions, "throttle": {"bytesPerSecond": limit}})

    def progress() -> dict[str, Any]:
        found: dict[str, Any] = objects.status("partitionreassignment", topic).get("progress", {})
        return found

    wait_until(lambda: "timeLeft" in progress(), "it is known how long it takes")
    first = progress()
    assert 0 < first["bytesLeft"] <= RECORD_BYTES * RECORDS * 1.1
    # Kafka limits the average of eleven seconds, checked before each fetch, so a move may begin with a burst. Two
    # readings are at least `apart_s` apart, and a broker's answer may be as old as a reading takes.
    apart_s = EVERY_S - TIMEOUT_S
    burst = (11 + TIMEOUT_S) * limit + FETCH_BYTES
    assert 0 < first["bytesPerSecond"] <= limit + burst / apart_s
    columns = kubernetes_api.kubectl("get", "kpr", topic, "--namespace", NAMESPACE).splitlines()
    assert columns[0].split()[5] == "ETA"
    assert columns[1].split()[5].endswith(("s", "m"))
    wait_until(lambda: progress().get("bytesLeft", 0) < first["bytesLeft"], "less is left")
    raised = {"partitions": partitions, "throttle": {"bytesPerSecond": 10**9}}
    objects.apply("PartitionReassignment", topic, raised)
    status = objects.wait_ready("partitionreassignment", topic)["status"]
    assert (status["phase"], status.get("progress")) == ("Completed", None)
