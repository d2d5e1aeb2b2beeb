"""The Kafka project's unmodified command line tools do all admin tasks with the controller as bootstrap server."""

import json
import re
from pathlib import Path

from confluent_kafka import Producer

from devcluster.clients import tools
from devcluster.waiting.vocabulary import wait_until_in_sync
from tests.real.conformance.clusters import ConformanceCluster


def run(cluster: ConformanceCluster, tool: str, *arguments: str) -> str:
    """Return the output of a tool, which must succeed."""
    done = cluster.run_tool(tool, *arguments)
    assert done.returncode == 0, f"{tool} {arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def plan_file(folder: Path, topic: str, target: list[int]) -> str:
    """Write a plan that moves partition 0 of a topic to these brokers."""
    path = folder / f"{topic}.json"
    entry = {"topic": topic, "partition": 0, "replicas": target}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    return str(path)


def throttles(cluster: ConformanceCluster, topic: str) -> list[str]:
    """Return every throttle in the configurations."""
    paths = [f"/config/topics/{topic}", *(f"/config/brokers/{broker}" for broker in cluster.kafka.brokers)]
    configs = [(cluster.znodes.read(path) or {}).get("config", {}) for path in paths]
    return [name for config in configs for name in config if "throttled" in name]


def test_topics_are_created_listed_described_grown_and_deleted(cluster: ConformanceCluster) -> None:
    created = run(
        cluster, tools.TOPICS, "--create", "--topic", "java", "--partitions", "2", "--replication-factor", "3",
        "--config", "retention.ms=60000",
    )  # fmt: skip
    assert "Created topic java" in created
    cluster.wait_until_served("java", 2)
    cluster.wait_until_everybody_knows("java")
    assert "java" in run(cluster, tools.TOPICS, "--list").splitlines()
    again = cluster.run_tool(tools.TOPICS, "--create", "--topic", "java")
    assert again.returncode != 0
    assert "Topic 'java' already exists" in again.stdout + again.stderr
    run(cluster, tools.TOPICS, "--alter", "--topic", "java", "--partitions", "4")
    cluster.wait_until_served("java", 4)
    for number in range(4):
        cluster.wait_until_everybody_knows("java", number)
    described = run(cluster, tools.TOPICS, "--describe", "--topic", "java")
    assert "PartitionCount: 4" in described
    assert "ReplicationFactor: 3" in described
    assert "retention.ms=60000" in described
    run(cluster, tools.TOPICS, "--delete", "--topic", "java")
    cluster.wait_until_gone("/brokers/topics/java")


def test_configurations_and_users_are_altered_and_described(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("tuned", [[1, 2, 3]])
    entity = ("--entity-type", "topics", "--entity-name", "tuned")
    run(cluster, tools.CONFIGS, "--alter", *entity, "--add-config", "max.message.bytes=200000")
    assert "max.message.bytes=200000" in run(cluster, tools.CONFIGS, "--describe", *entity)
    run(cluster, tools.CONFIGS, "--alter", *entity, "--delete-config", "max.message.bytes")
    assert cluster.znodes.read("/config/topics/tuned")["config"] == {}
    user = ("--entity-type", "users", "--entity-name", "java-user")
    run(cluster, tools.CONFIGS, "--alter", *user, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=pencil]")
    assert "SCRAM-SHA-256" in cluster.znodes.read("/config/users/java-user")["config"]
    cluster.wait(
        lambda: "SCRAM-SHA-256=iterations=8192" in run(cluster, tools.CONFIGS, "--describe", *user),
        "a broker has read the credential",
    )
    run(cluster, tools.CONFIGS, "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    assert cluster.znodes.read("/config/users/java-user") is None, "nothing is left of the user"


def test_a_reassignment_is_generated_executed_with_a_throttle_and_verified(
    cluster: ConformanceCluster, tmp_path: Path
) -> None:
    cluster.serve_topic("moved", [[1, 2]])
    cluster.wait_until_everybody_knows("moved")  # the tools ask any broker
    topics = tmp_path / "topics.json"
    topics.write_text('{"version":1,"topics":[{"topic":"moved"}]}')
    proposed = run(
        cluster, tools.REASSIGN_PARTITIONS, "--generate", "--topics-to-move-json-file", str(topics),
        "--broker-list", "1,2,3",
    )  # fmt: skip
    assert "Proposed partition reassignment configuration" in proposed
    plan = ("--reassignment-json-file", plan_file(tmp_path, "moved", [3, 1]))
    started = run(cluster, tools.REASSIGN_PARTITIONS, "--execute", *plan, "--throttle", "50000000")
    assert "Successfully started partition reassignment" in started
    cluster.wait_until_moved("moved", [3, 1])
    verified = run(cluster, tools.REASSIGN_PARTITIONS, "--verify", *plan)
    assert "Reassignment of partition moved-0 is completed" in verified
    assert throttles(cluster, "moved") == []


def fill(cluster: ConformanceCluster, topic: str) -> None:
    """Write twenty megabytes: more than a follower fetches before its throttle takes effect."""
    producer = Producer({**cluster.librdkafka(cluster.kafka.bootstrap_servers), "acks": "all"})
    for number in range(200):
        producer.produce(topic, number.to_bytes(4, "big") * 25_000, partition=0)
        producer.poll(0)
    assert producer.flush(120) == 0


def test_a_running_reassignment_is_listed_and_cancelled(cluster: ConformanceCluster, tmp_path: Path) -> None:
    cluster.serve_topic("slow", [[1, 2]])
    cluster.wait_until_everybody_knows("slow")  # the tools ask any broker
    fill(cluster, "slow")
    plan = ("--reassignment-json-file", plan_file(tmp_path, "slow", [1, 3]))
    run(cluster, tools.REASSIGN_PARTITIONS, "--execute", *plan, "--throttle", "1000")
    assert re.search(r"slow-0: .*adding: 3", run(cluster, tools.REASSIGN_PARTITIONS, "--list"))
    under_way = run(cluster, tools.REASSIGN_PARTITIONS, "--verify", *plan)
    assert "Reassignment of partition slow-0 is still in progress" in under_way
    cancelled = run(cluster, tools.REASSIGN_PARTITIONS, "--cancel", *plan)
    assert "Successfully cancelled partition reassignment for: slow-0" in cancelled
    cluster.wait(lambda: cluster.znodes.read_assignment("slow", 0) == [1, 2], "the partition is back where it was")
    assert "No partition reassignments found" in run(cluster, tools.REASSIGN_PARTITIONS, "--list")
    assert throttles(cluster, "slow") == []
    failed = run(cluster, tools.REASSIGN_PARTITIONS, "--verify", *plan)
    assert "no active reassignment of partition slow-0, but replica set is 1,2 rather than 1,3" in failed


def test_an_unclean_leader_is_elected_when_a_person_says_so(cluster: ConformanceCluster) -> None:
    _, second, third = cluster.order
    cluster.serve_topic("java-unclean", [[second, third]])
    cluster.kafka.broker(third).stop()
    wait_until_in_sync(cluster.znodes, "java-unclean", second)
    cluster.kafka.broker(second).kill()
    cluster.wait_until_led("java-unclean", -1)
    cluster.kafka.broker(third).start()
    partition = ("--topic", "java-unclean", "--partition", "0")
    elected = run(cluster, tools.LEADER_ELECTION, "--election-type", "unclean", *partition)
    assert "Successfully completed leader election (UNCLEAN) for partitions java-unclean-0" in elected
    assert cluster.znodes.leader("java-unclean", 0) == third
    cluster.kafka.broker(second).start()
    cluster.wait_until_served("java-unclean")


def test_the_preferred_leader_is_elected(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("java-led", [[1, 2, 3]])
    cluster.znodes.reassign({("java-led", 0): [2, 1, 3]})
    cluster.wait_until_moved("java-led", [2, 1, 3])
    assert cluster.znodes.leader("java-led", 0) == 1
    partition = ("--topic", "java-led", "--partition", "0")
    elected = run(cluster, tools.LEADER_ELECTION, "--election-type", "preferred", *partition)
    assert "Successfully completed leader election (PREFERRED) for partitions java-led-0" in elected
    assert cluster.znodes.leader("java-led", 0) == 2
    again = run(cluster, tools.LEADER_ELECTION, "--election-type", "preferred", *partition)
    assert "Valid replica already elected for partitions java-led-0" in again
