"""Partitions are moved by request: checks, answers and outcome are Kafka's, with its own tool and its own controller."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from devcluster.clients import tools
from tests.real.conformance.conftest import ConformanceCluster

pytestmark = pytest.mark.real

RECORD_BYTES = 100_000
RECORDS = 200
SLOW = str(RECORD_BYTES)
"""Bytes per second: at this pace the data takes minutes."""
FAST = str(RECORD_BYTES * RECORDS * 10)


def ask(
    cluster: ConformanceCluster, targets: dict[tuple[str, int], Sequence[int] | None]
) -> dict[tuple[str, int], tuple[ErrorCode, str | None]]:
    request = AlterPartitionReassignmentsRequest(
        topics=tuple(
            ReassignableTopic(
                name=TopicName(topic),
                partitions=(
                    ReassignablePartition(
                        partition_index=i32(partition),
                        replicas=None if target is None else tuple(BrokerId(number) for number in target),
                    ),
                ),
            )
            for (topic, partition), target in targets.items()
        )
    )
    response = cluster.ask_controller(request)
    assert response.error_code is ErrorCode.none
    return {
        (topic.name, partition.partition_index): (partition.error_code, partition.error_message)
        for topic in response.responses
        for partition in topic.partitions
    }


@pytest.mark.parametrize(
    ("target", "error_code", "message"),
    [
        ([], ErrorCode.invalid_replica_assignment, "Empty replica list specified in partition reassignment."),
        (
            [1, 1],
            ErrorCode.invalid_replica_assignment,
            "Duplicate replica ids in partition reassignment replica list: ",
        ),
        ([-1], ErrorCode.invalid_replica_assignment, "Invalid broker id in replica list: "),
        ([1, 77], ErrorCode.invalid_replica_assignment, "Replica assignment has brokers that are not alive. "),
        ([1000], ErrorCode.invalid_replica_assignment, "Replica assignment has brokers that are not alive. "),
        (None, ErrorCode.no_reassignment_in_progress, "No partition reassignment is in progress."),
        ([2, 1], ErrorCode.none, None),
        ([1, 2], ErrorCode.none, None),
    ],
)
def test_an_answer_about_a_partition_at_rest(
    cluster: ConformanceCluster, target: list[int] | None, error_code: ErrorCode, message: str | None
) -> None:
    if not cluster.znodes.read("/brokers/topics/judged"):
        cluster.serve_topic("judged", [[1, 2]])
    found_code, found_message = ask(cluster, {("judged", 0): target})["judged", 0]
    assert found_code is error_code
    told = (message or "", "1000 is the controller, ") if target == [1000] else message or ""
    assert (found_message or "").startswith(told)
    cluster.wait_until_served("judged")


@pytest.mark.parametrize("partition", [("nowhere", 0), ("judged", 9)])
@pytest.mark.parametrize(
    ("target", "error_code"),
    [
        ([1], ErrorCode.unknown_topic_or_partition),
        ([77], ErrorCode.invalid_replica_assignment),
        (None, ErrorCode.no_reassignment_in_progress),
    ],
)
def test_an_answer_about_a_partition_that_is_not_there(
    cluster: ConformanceCluster, partition: tuple[str, int], target: list[int] | None, error_code: ErrorCode
) -> None:
    if not cluster.znodes.read("/brokers/topics/judged"):
        cluster.serve_topic("judged", [[1, 2]])
    assert ask(cluster, {partition: target})[partition][0] is error_code


def fill(cluster: ConformanceCluster, topic: str) -> None:
    producer = Producer({**cluster.librdkafka(cluster.kafka.bootstrap_servers), "acks": "all"})
    for number in range(RECORDS):
        producer.produce(topic, number.to_bytes(4, "big") * (RECORD_BYTES // 4), partition=0)
        producer.poll(0)
    assert producer.flush(120) == 0


def run_tool(cluster: ConformanceCluster, folder: Path, plan: dict[str, list[int]], *arguments: str) -> str:
    path = folder / "plan.json"
    entries = [{"topic": topic, "partition": 0, "replicas": replicas} for topic, replicas in plan.items()]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    file = () if "--list" in arguments else ("--reassignment-json-file", str(path))
    done = cluster.run_tool(tools.REASSIGN_PARTITIONS, *file, *arguments, timeout_s=180)
    return done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_kafkas_tool_moves_throttles_lists_cancels_and_verifies(cluster: ConformanceCluster, tmp_path: Path) -> None:
    cluster.serve_topic("tooled", [[1, 2]])
    fill(cluster, "tooled")
    plan = {"tooled": [3, 1]}
    assert "Successfully started partition reassignment" in run_tool(
        cluster, tmp_path, plan, "--execute", "--throttle", SLOW
    )
    assert "tooled-0: replicas: 3,1,2. adding: 3. removing: 2." in run_tool(cluster, tmp_path, plan, "--list")
    assert "still in progress" in run_tool(cluster, tmp_path, plan, "--verify")
    assert cluster.znodes.read("/config/topics/tooled")["config"]["follower.replication.throttled.replicas"] == "0:3"
    assert "Cannot execute because there is an existing partition assignment" in run_tool(
        cluster, tmp_path, plan, "--execute"
    )
    cancelled = run_tool(cluster, tmp_path, plan, "--cancel", "--preserve-throttles")
    assert "Successfully cancelled partition reassignment for: tooled-0" in cancelled
    cluster.wait(lambda: sorted(cluster.znodes.read_assignment("tooled", 0)) == [1, 2], "it is back")
    cluster.wait_until_only_replicas_have_logs("tooled")
    assert "No partition reassignments found" in run_tool(cluster, tmp_path, plan, "--list")
    run_tool(cluster, tmp_path, plan, "--execute", "--throttle", FAST)
    cluster.wait_until_moved("tooled", [3, 1])
    assert "is completed" in run_tool(cluster, tmp_path, plan, "--verify", "--preserve-throttles")
    cluster.wait_until_only_replicas_have_logs("tooled")
    assert "Clearing broker-level throttles on brokers 1,2,3" in run_tool(cluster, tmp_path, plan, "--verify")


@pytest.mark.timeout(600)
def test_a_running_target_is_replaced_and_the_dropped_replica_deleted(
    cluster: ConformanceCluster, tmp_path: Path
) -> None:
    cluster.serve_topic("replaced-by-tool", [[1]])
    fill(cluster, "replaced-by-tool")
    run_tool(cluster, tmp_path, {"replaced-by-tool": [3]}, "--execute", "--throttle", SLOW)
    assert ask(cluster, {("replaced-by-tool", 0): [2]}) == {("replaced-by-tool", 0): (ErrorCode.none, None)}
    topic = cluster.znodes.read("/brokers/topics/replaced-by-tool")
    assert (topic["partitions"]["0"], topic["adding_replicas"]["0"], topic["removing_replicas"]["0"]) == (
        [2, 1], [2], [1],
    )  # fmt: skip
    cluster.wait(lambda: 3 not in cluster.brokers_with_a_log("replaced-by-tool"), "3 deleted its replica")
    run_tool(cluster, tmp_path, {"replaced-by-tool": [2]}, "--cancel")
    cluster.wait_until_moved("replaced-by-tool", [1])
