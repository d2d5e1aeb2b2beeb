"""Clients that know only the brokers' listener for clients."""

import json
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Producer

from devcluster.clients import tools
from tests.real.conformance.clusters import ConformanceCluster


def run_at_brokers(cluster: ConformanceCluster, tool: str, *arguments: str) -> str:
    """Return the output of a tool that bootstraps at the brokers and finds the controller itself; it must succeed."""
    done = cluster.run_tool(tool, *arguments, bootstrap=cluster.kafka.bootstrap_servers)
    assert done.returncode == 0, f"{tool} {arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def a_topic_lives(cluster: ConformanceCluster, folder: Path) -> None:
    """Create, describe, move and delete a topic with kafka-topics and kafka-reassign-partitions."""
    first, second = sorted(cluster.kafka.brokers)[:2]
    name = ("--topic", "lived")
    assert "Created topic lived" in run_at_brokers(
        cluster, tools.TOPICS, "--create", *name, "--replica-assignment", f"{first}"
    )
    plan = folder / "plan.json"
    entry = {"topic": "lived", "partition": 0, "replicas": [second]}
    plan.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    run_at_brokers(cluster, tools.REASSIGN_PARTITIONS, "--execute", "--reassignment-json-file", str(plan))
    cluster.wait_until_moved("lived", [second])
    assert f"Leader: {second}" in run_at_brokers(cluster, tools.TOPICS, "--describe", *name)
    run_at_brokers(cluster, tools.TOPICS, "--delete", *name)
    cluster.wait_until_gone("/brokers/topics/lived")


def write(
    cluster: ConformanceCluster, topic: str, *, broker: int, settings: Mapping[str, str | int | bool] | None = None
) -> None:
    """Write a record to partition 0, acknowledged by its leader; the producer bootstraps at this broker alone."""
    failures: list[object] = []
    producer = Producer({**cluster.librdkafka(cluster.kafka.broker(broker).address), "acks": 1, **(settings or {})})
    producer.produce(topic, b"value", partition=0, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(60) == 0
    assert failures == [None]


def an_idempotent_producer_is_served(cluster: ConformanceCluster) -> None:
    """Check producers whose ids are from a block that a broker requests from the controller (AllocateProducerIds)."""
    first, second = sorted(cluster.kafka.brokers)[:2]
    cluster.serve_topic("idempotent", [[first, second]])
    for broker in (first, second):
        write(cluster, "idempotent", broker=broker, settings={"enable.idempotence": True, "acks": "all"})
    blocks = cluster.znodes.read("/latest_producer_id_block")
    assert int(blocks["block_end"]) > 0
