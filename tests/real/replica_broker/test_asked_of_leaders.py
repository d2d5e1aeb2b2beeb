"""Requests of Kafka's tools to partition leaders: our broker answers as stock brokers do."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from devcluster.clients import tools
from devcluster.running.processes import wait_until
from tests.real.replica_broker.mixed import OURS, MixedCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

BOTH_WAYS = [[OURS, 1], [1, OURS]]
"""One partition that ours leads, one that it follows."""


def write_messages(cluster: MixedCluster, topic: str) -> None:
    """Write three hundred messages to each partition, in several segments."""
    cluster.serve_topic(topic, BOTH_WAYS, {"segment.bytes": "8192"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "batch.num.messages": 10})
    for number in range(300):
        for partition in range(len(BOTH_WAYS)):
            producer.produce(topic, f"{number}".encode() * 30, partition=partition)
    assert producer.flush(60) == 0


def delete_records(cluster: MixedCluster, folder: Path, topic: str, offset: int) -> str:
    """Return the output of `kafka-delete-records` about both partitions."""
    plan = folder / "offsets.json"
    offsets = [{"topic": topic, "partition": number, "offset": offset} for number in range(len(BOTH_WAYS))]
    plan.write_text(json.dumps({"version": 1, "partitions": offsets}))
    asked = ("--bootstrap-server", cluster.ours.address, "--offset-json-file", str(plan))
    return tools.run_tool(tools.DELETE_RECORDS, *asked).stdout


def log_starts(folder: Path, topic: str) -> dict[int, int]:
    """Return the start offsets of a broker's logs in its checkpoint."""
    lines = (folder / "log-start-offset-checkpoint").read_text().splitlines()[2:]
    return {int(number): int(start) for name, number, start in map(str.split, lines) if name == topic}


def test_kafkas_tool_deletes_records_of_leaders_of_both_kinds_and_their_followers(
    cluster: MixedCluster, tmp_path: Path
) -> None:
    write_messages(cluster, "purged")
    said = delete_records(cluster, tmp_path, "purged", 200)
    assert "partition: purged-0\tlow_watermark: 200" in said
    assert "partition: purged-1\tlow_watermark: 200" in said
    assert log_starts(cluster.ours.log_folder, "purged")[0] == 200
    wait_until(lambda: log_starts(cluster.ours.log_folder, "purged") == {0: 200, 1: 200}, "ours follows")
    offsets = tools.run_tool(
        tools.GET_OFFSETS, "--bootstrap-server", cluster.ours.address, "--topic", "purged", "--time", "-2"
    )
    assert sorted(offsets.stdout.split()) == ["purged:0:200", "purged:1:200"], offsets.stderr
    assert min(path.name for path in (cluster.ours.log_folder / "purged-0").glob("*.log")) > f"{0:020d}.log"


def test_what_was_deleted_stays_deleted_when_brokers_start_again(cluster: MixedCluster, tmp_path: Path) -> None:
    write_messages(cluster, "forgotten")
    assert delete_records(cluster, tmp_path, "forgotten", -1).count("low_watermark") == len(BOTH_WAYS)
    before = log_starts(cluster.ours.log_folder, "forgotten")
    cluster.ours.kill()
    cluster.ours.start()
    cluster.wait_until_served("forgotten")
    consumed = tools.run_tool(
        tools.CONSOLE_CONSUMER,
        *("--bootstrap-server", cluster.ours.address, "--topic", "forgotten", "--partition", "0"),
        *("--offset", "earliest", "--timeout-ms", "5000"),
    )
    assert consumed.stdout == ""
    assert before[0] > 0


def test_what_is_not_there_or_must_stay_is_refused_as_stock_brokers_do_it(
    cluster: MixedCluster, tmp_path: Path
) -> None:
    write_messages(cluster, "kept")
    said = delete_records(cluster, tmp_path, "kept", 10**9)
    assert said.count("OffsetOutOfRangeException") == len(BOTH_WAYS), said
    cluster.serve_topic("compacted", BOTH_WAYS, {"cleanup.policy": "compact"})
    said = delete_records(cluster, tmp_path, "compacted", 0)
    assert said.count("PolicyViolationException") == len(BOTH_WAYS), said


def test_kafkas_tool_describes_the_producers_of_leaders_and_followers_of_both_kinds(cluster: MixedCluster) -> None:
    write_messages(cluster, "described-producers")
    for partition, replicas in enumerate(BOTH_WAYS):
        rows = set()
        for options in ((), *(("--broker-id", str(broker)) for broker in replicas)):
            asked = ("--topic", "described-producers", "--partition", str(partition), *options)
            said = tools.run_tool(
                tools.TRANSACTIONS, "--bootstrap-server", cluster.ours.address, "describe-producers", *asked
            )
            heading, row = said.stdout.splitlines()
            assert heading.startswith("ProducerId")
            rows.add(tuple(row.split()))
        ((_, epoch, coordinator_epoch, last_sequence, _, transaction),) = rows
        assert (epoch, coordinator_epoch, last_sequence, transaction) == ("0", "-1", "299", "None")
