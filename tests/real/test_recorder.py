"""A recorder beside unmodified Kafka with its own controller; and everything that it leaves unchanged."""

import json
from pathlib import Path

import pytest

from controller_core.journal.fold import fold
from controller_core.journal.reader import Record, read
from controller_core.journal.records import Line
from controller_core.journal.segments import segments
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kontroller import RecorderProcess, run_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic, wait_until_moved, wait_until_recorded, wait_until_served
from tests.real.conftest import StartKafka
from tests.real.histories import assert_comes_to
from tests.real.versions.releases import of_each_release

pytestmark = pytest.mark.real

PARTITIONS = [0, 1, 2]


def changes(journal: Path) -> list[Line]:
    """Return the records of changes so far."""
    found = [entry.line for entry in read(journal) if isinstance(entry, Record)]
    return [line for line in found if not line.snapshot]


def causes(journal: Path, kind: str) -> set[str]:
    return {line.cause for line in changes(journal) if line.kind == kind}


@of_each_release
def test_the_history_of_a_cluster_with_kafkas_own_controller_comes_to_what_zookeeper_says(
    start_kafka: StartKafka, servers_folder: RunFolder, tmp_path: Path, release: str
) -> None:
    kafka = start_kafka(brokers=3, version=release)
    journal = tmp_path / "journal"
    options = ["--journal-snapshot-interval-seconds", "5", "--journal-alive-interval-seconds", "1"]
    with (
        RecorderProcess(servers_folder, kafka.zookeeper_connect, journal, options=options) as recorder,
        open_client(kafka.zookeeper_connect) as client,
    ):
        znodes = ClusterZnodes(client)
        serve_topic(znodes, "orders", [[1, 2], [2, 3], [3, 1]], {"min.insync.replicas": "1"})
        wait_until_recorded(journal, "leadership", "topics_changed")

        controller = znodes.controller()
        assert controller is not None
        other = controller % 3 + 1
        kafka.broker(other).kill()
        wait_until_recorded(journal, "leadership", "broker_failed")
        kafka.broker(other).start()
        wait_until_served(znodes, "orders", PARTITIONS)
        wait_until_recorded(journal, "broker", "broker_started")
        znodes.elect_preferred([("orders", number) for number in PARTITIONS])
        wait_until_recorded(journal, "leadership", "balance_due")

        recorder.process.kill()
        with segments(journal)[-1].open("ab") as last:
            last.write(b'{"v":1,"cluster_id":"torn')
        znodes.reassign({("orders", 0): [2, 3]})
        wait_until_moved(znodes, "orders", [2, 3])
        recorder.start()
        znodes.reassign({("orders", 0): [1, 2]})
        wait_until_recorded(journal, "assignment", "reassignments_requested")
        wait_until_moved(znodes, "orders", [1, 2])
        wait_until_served(znodes, "orders", PARTITIONS)

        epoch = int(client.get("/controller_epoch")[0])
        kafka.broker(controller).stop()
        wait_until_recorded(journal, "leadership", "controlled_shutdown")
        wait_until_recorded(journal, "controller_elected", "controller_failover")
        kafka.broker(controller).start()
        wait_until_served(znodes, "orders", PARTITIONS)
        serve_topic(znodes, "short-lived", [[1, 2, 3]])
        znodes.mark_for_deletion("short-lived")
        wait_until_recorded(journal, "topic_removed", "topic_deletions_requested")
        wait_until(lambda: fold(read(journal)).proven > 0, "a snapshot proves the history")
        wait_until(lambda: changes(journal)[-1].kind == "controller_alive", "the cluster is at rest")
        recorder.process.stop()

        folded = fold(read(journal))
        assert folded.findings == []
        assert folded.gaps == []
        assert folded.proven > 0
        assert_comes_to(folded, znodes, ["orders"])
        assert folded.controller_epoch == int(client.get("/controller_epoch")[0]) > epoch
        lines = changes(journal)
        assert all(line.inferred for line in lines)
        assert {line.controller_id for line in lines} > {controller}
        assert [line.kind for line in lines].count("recorder_started") == 2
        assert "alter_partition" in causes(journal, "leadership")
        assert "unobserved" not in {line.cause for line in lines}
        assert [line for line in lines if line.unclean] == []


def fill(zookeeper: ZooKeeper) -> None:
    """Write the znodes of a small cluster, in a ZooKeeper that nobody else writes to."""
    with zookeeper.client() as client:
        znodes = {
            "/cluster/id": {"version": "1", "id": "quiet"},
            "/controller": {"version": 2, "brokerid": 1, "timestamp": "0", "kraftControllerEpoch": -1},
            "/brokers/topics/orders": {"version": 2, "partitions": {"0": [1]}},
            "/brokers/topics/orders/partitions/0/state": {
                "version": 1, "leader": 1, "leader_epoch": 0, "controller_epoch": 1, "isr": [1],
            },
        }  # fmt: skip
        for path, content in znodes.items():
            client.create(path, json.dumps(content).encode(), makepath=True)
        client.create("/controller_epoch", b"1")


def test_it_writes_nothing_to_zookeeper_but_the_begin_and_the_end_of_its_session(
    servers_folder: RunFolder, tmp_path: Path
) -> None:
    with ZooKeeper(servers_folder, name="zookeeper-recorded") as zookeeper:
        fill(zookeeper)
        with zookeeper.client() as client:
            client.sync("/")
            before = client.last_zxid
            journal = tmp_path / "journal"
            options = ["--journal-snapshot-interval-seconds", "1", "--journal-alive-interval-seconds", "1"]
            with RecorderProcess(servers_folder, zookeeper.connect, journal, options=options) as recorder:
                wait_until(lambda: fold(read(journal)).proven > 1, "it looked at everything")
                recorder.process.stop()
            client.sync("/")
            assert client.last_zxid == before + 2
        assert fold(read(journal)).findings == []


def test_what_it_cannot_record_into_or_from_is_refused_with_what_to_change(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str, tmp_path: Path
) -> None:
    def refusal(connect: str, directory: Path, *options: str) -> str:
        result = run_command("record", "--zookeeper", connect, "--journal-directory", str(directory), *options)
        assert result.returncode != 0
        return result.stderr

    connect = zookeeper.connect + zookeeper_chroot
    assert "correct the chroot" in refusal(f"{connect}/nowhere", tmp_path / "new")
    with zookeeper.client() as client:
        assert client.exists(f"{zookeeper_chroot}/nowhere") is None
        client.create(f"{zookeeper_chroot}/cluster/id", b'{"version":"1","id":"here"}', makepath=True)
    (tmp_path / "file").touch()
    assert "cannot be written" in refusal(connect, tmp_path / "file")
    line = {
        "v": 1, "cluster_id": "here", "controller_id": 1, "controller_epoch": 1, "seq": 0, "event_time_us": 0,
        "kind": "controller_elected", "cause": "controller_failover", "correlation_id": "1-1",
    }  # fmt: skip
    journal = tmp_path / "journal"
    journal.mkdir()
    segment = journal / "0000000001-000000000000000.jsonl"
    segment.write_text(json.dumps(line) + "\n")
    assert "journal of a controller" in refusal(connect, journal)
    segment.write_text(json.dumps({**line, "cluster_id": "elsewhere", "inferred": True}) + "\n")
    assert "journal of cluster elsewhere, this one is here" in refusal(connect, journal)
    nobody = "127.0.0.1:1"
    assert "no connection to ZooKeeper" in refusal(nobody, tmp_path / "new", "--zookeeper-timeout-ms", "1000")
