"""Snapshots of loads of real brokers, which have two log directories each, in three racks."""

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from controller_planner.loads import LoadSnapshot
from devcluster.clients import tools
from devcluster.clusters.kontroller import run_command
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from kontroller.planning.snapshot_file import read_snapshot

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(600)]

TOPICS = {"busy": 4, "quiet": 6}
RECORD_BYTES = 4096
RACKS = ("a", "b", "c", "a")


@pytest.fixture(scope="module")
def kraft(servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Four brokers, which are controllers too, and topics with data on the first three."""
    properties = {"min.insync.replicas": 2}
    with KRaftCluster(
        servers_folder, brokers=4, name="planned", combined=True, properties=properties, racks=RACKS, log_directories=2
    ) as cluster:
        for topic, partitions in TOPICS.items():
            assignment = ",".join("1:2:3" if each % 2 == 0 else "2:3:1" for each in range(partitions))
            command(cluster, "topics", "create", "--topic", topic, "--replica-assignment", assignment)
            produce(cluster, topic, 500)
        yield cluster


def command(kraft: KRaftCluster, *arguments: str) -> str:
    """Return the output of a command, which must succeed."""
    done = run_command(*arguments, "--bootstrap-server", kraft.bootstrap_servers)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def produce(kraft: KRaftCluster, topic: str, records: int) -> None:
    """Write records evenly to all partitions."""
    producer = Producer({"bootstrap.servers": kraft.bootstrap_servers, "acks": "all"})
    for number in range(records):
        producer.produce(topic, os.urandom(RECORD_BYTES // 2).hex().encode(), partition=number % TOPICS[topic])
        producer.poll(0)
    assert producer.flush(120) == 0


def take_snapshot(kraft: KRaftCluster, path: Path, between_looks_s: int) -> LoadSnapshot:
    command(kraft, "snapshot", "-o", str(path), "--between-looks-seconds", str(between_looks_s))
    loads = read_snapshot(path)
    assert loads.troubles == ()
    return loads.snapshot


def ask_sizes(kraft: KRaftCluster) -> dict[str, dict[int, int]]:
    """Return the sizes of each partition's replicas, by broker, as Kafka's own tool shows them."""
    done = tools.run_tool(tools.LOG_DIRS, "--bootstrap-server", kraft.bootstrap_servers, "--describe")
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    sizes: dict[str, dict[int, int]] = {}
    for broker in told["brokers"]:
        for directory in broker["logDirs"]:
            for each in directory["partitions"]:
                sizes.setdefault(each["partition"], {})[broker["broker"]] = each["size"]
    return sizes


def test_a_snapshot_is_what_the_brokers_say(kraft: KRaftCluster, tmp_path: Path) -> None:
    snapshot = take_snapshot(kraft, tmp_path / "loads.parquet", 0)
    brokers, partitions, sizes = snapshot.brokers, snapshot.partitions, ask_sizes(kraft)
    assert brokers.ids.tolist() == [1, 2, 3, 4]
    assert brokers.racks == RACKS
    assert brokers.is_live.all()
    assert brokers.takes_replicas.all()
    assert (brokers.capacity_disk_bytes > 0).all()
    assert len(partitions) == sum(TOPICS.values())
    for at in range(len(partitions)):
        replicas = brokers.ids[partitions.replicas[at]].tolist()
        assert replicas == ([1, 2, 3] if partitions.number[at] % 2 == 0 else [2, 3, 1])
        assert brokers.ids[partitions.leader[at]] in replicas
        assert partitions.size_bytes[at] == sizes[partitions.name(at)][int(brokers.ids[partitions.leader[at]])] > 0
    assert partitions.in_sync.all()
    assert set(partitions.min_isr.tolist()) == {2}


def test_rates_are_those_of_the_producer(kraft: KRaftCluster, tmp_path: Path) -> None:
    """The producer's own clock says how much it wrote; the estimate may be a third or three times of that."""
    done, written = threading.Event(), 0

    def write() -> None:
        nonlocal written
        # Evenly, so that the rate is the same in any part of the time.
        while not done.wait(0.2):
            produce(kraft, "busy", 40)
            written += 40 * RECORD_BYTES

    writer = threading.Thread(target=write)
    began_s = time.monotonic()
    writer.start()
    try:
        snapshot = take_snapshot(kraft, tmp_path / "loads.parquet", 8)
    finally:
        done.set()
        writer.join()
    real = written / (time.monotonic() - began_s)
    partitions = snapshot.partitions
    is_busy = partitions.topic == partitions.topics.index("busy")
    estimated = partitions.in_bytes_per_second[is_busy].sum()
    assert 1 / 3 < estimated / real < 3
    assert partitions.in_bytes_per_second[~is_busy].tolist() == [0] * TOPICS["quiet"]


def test_a_planned_drain_is_carried_out_by_kafka_s_tool_and_nothing_is_lost(
    kraft: KRaftCluster, tmp_path: Path
) -> None:
    with nothing_lost(kraft.bootstrap_servers, "quiet", more_than=10):
        take_snapshot(kraft, tmp_path / "loads.parquet", 0)
        arguments = ("plan", "drain", "--broker", "1", "--snapshot", str(tmp_path / "loads.parquet"))
        told = json.loads(command(kraft, *arguments, "-o", "json"))
        (move,) = (each for each in told["moves"] if (each["topic"], each["partition"]) == ("quiet", 0))
        why_not = command(kraft, *arguments, "--why-not", "quiet-0 on 1").splitlines()
        assert (
            why_not[0] == f"quiet-0 is on brokers 1, 2, 3, and the plan puts it on {', '.join(map(str, move['after']))}"
        )
        assert "  constraint: broker 1 is drained" in why_not
        page = command(kraft, *arguments, "-o", "html", "--throttle", "1000000")
        assert page.startswith("<!doctype html>")
        assert all(f"<td>{each['topic']}-{each['partition']}</td>" in page for each in told["moves"])
        moves = tmp_path / "moves.json"
        moves.write_text(command(kraft, *arguments, "-o", "kafka"))
        assert run_reassignment(kraft, moves, "--execute").startswith("Current partition replica assignment")
        wait_until(
            lambda: run_reassignment(kraft, moves, "--verify").count("is completed") == sum(TOPICS.values()),
            "Kafka's tool finds all moves completed",
        )
        assert all(each.keys() == {2, 3, 4} for name, each in ask_sizes(kraft).items() if is_of_a_topic(name))
        done = run_command(*arguments, "-o", "text", "--bootstrap-server", kraft.bootstrap_servers)
        assert (done.returncode, done.stdout) == (1, "")
        assert "the cluster has changed since the snapshot: partitions are on other brokers" in done.stderr
        after = take_snapshot(kraft, tmp_path / "after.parquet", 0)
        promised = {broker["id"]: broker["after"]["replicas"] for broker in told["brokers"]}
        held = after.brokers.ids[after.partitions.replicas]
        found = {broker: int((held == broker).sum()) for broker in promised}
    assert found == promised
    assert found[1] == 0


def run_reassignment(kraft: KRaftCluster, moves: Path, action: str) -> str:
    servers = ("--bootstrap-server", kraft.bootstrap_servers)
    done = tools.run_tool(tools.REASSIGN_PARTITIONS, *servers, "--reassignment-json-file", str(moves), action)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def is_of_a_topic(partition: str) -> bool:
    return partition.rpartition("-")[0] in TOPICS
