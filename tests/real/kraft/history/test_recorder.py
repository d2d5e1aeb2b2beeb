"""A recorder of a cluster without ZooKeeper: it follows the controllers' log and misses nothing, even when killed."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller_core.client.admin_client import AdminClient
from controller_core.client.features import FeatureUpdate
from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import parse_addresses
from controller_core.controller.loop.clock import SystemClock
from controller_core.journal.fold import fold
from controller_core.journal.reader import Record, read
from controller_core.journal.records import Line
from controller_core.journal.segments import segments
from controller_core.recorder.event_numbers import read_position
from controller_core.recorder.polled.looking import PolledLooker
from controller_core.recorder.recorder import Recorder
from devcluster.clusters.kraft import KRaftCluster, KRaftNode
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_recorded
from tests.real.kraft.history.recordings import (
    DEADLINE_S,
    assert_comes_to,
    changes,
    metadata,
    recorder_of,
    wait_until_all_in_sync,
    wait_until_it_comes_to,
)
from tests.real.kraft.releases import RAISED, RELEASES
from tests.unit.journal.memory import MemoryJournal
from tests.unit.recorder.watching import Settings

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(600)]

TOPIC = "orders"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetful:
    """A cluster whose controller keeps only its last snapshot, and the log after it."""

    cluster: KRaftCluster
    journal: Path
    """The journal of a recorder that was killed early on."""


@pytest.fixture(scope="module")
def forgetful(servers_folder: RunFolder) -> Iterator[Forgetful]:
    properties = {"metadata.log.max.record.bytes.between.snapshots": 2000, "metadata.max.retention.bytes": 1}
    with KRaftCluster(servers_folder, brokers=1, controllers=1, name="forgetful", properties=properties) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        journal = servers_folder.data("came-back")
        with recorder_of(cluster, servers_folder, journal) as recorder:
            asyncio.run(admin.create_topic("seen", replica_assignment="1"))
            wait_until_recorded(journal, "leadership", "topics_changed")
            recorder.process.kill()
        asyncio.run(admin.create_topic("missed", replica_assignment="1"))
        yield Forgetful(cluster=cluster, journal=journal)


@pytest.fixture(scope="module", params=RELEASES)
def kraft(request: pytest.FixtureRequest, servers_folder: RunFolder, forgetful: Forgetful) -> Iterator[KRaftCluster]:
    """Three brokers and three controllers, whose features can be upgraded.

    The other cluster is there already, because a controller deletes nothing of its log before it has been up for a
    minute.
    """
    name, raised = f"recorded-{request.param}", RAISED[request.param]
    with KRaftCluster(servers_folder, name=name, release=raised.release, version=request.param) as cluster:
        yield cluster


def move(kraft: KRaftCluster, replicas: list[int]) -> None:
    """Move the first partition of the topic."""
    to = {"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": replicas}]}
    asked = AdminClient({"bootstrap.servers": kraft.bootstrap_servers}).reassign_partitions(json.dumps(to))
    asyncio.run(asyncio.wait_for(asked, DEADLINE_S))


def versions(lines: list[Line], partition: int) -> list[int]:
    """Return the versions of a partition's state, in the order in which they were recorded."""
    deltas = [
        line.delta for line in lines if (line.topic, line.partition, line.kind) == (TOPIC, partition, "leadership")
    ]
    return [delta.partition_epoch for delta in deltas if delta is not None and delta.partition_epoch is not None]


def test_the_history_comes_to_what_the_cluster_says_and_a_killed_recorder_misses_nothing(
    kraft: KRaftCluster, servers_folder: RunFolder, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    admin = AdminClient({"bootstrap.servers": kraft.bootstrap_servers})
    with recorder_of(kraft, servers_folder, journal) as recorder:
        configs = {"min.insync.replicas": "1"}
        asyncio.run(admin.create_topic(TOPIC, replica_assignment="1:2,2:3,3:1", configs=configs))
        wait_until_recorded(journal, "leadership", "topics_changed", 3)

        kraft.broker(2).kill()
        wait_until_recorded(journal, "broker_removed", "broker_failed")
        wait_until_recorded(journal, "leadership", "broker_failed", 2)
        kraft.broker(2).start()
        wait_until_recorded(journal, "broker", "broker_started")
        wait_until_all_in_sync(kraft)
        asyncio.run(admin.preferred_replica_leader_election())
        wait_until_recorded(journal, "leadership", "balance_due")

        recorder.process.kill()
        with segments(journal)[-1].open("ab") as last:
            last.write(b'{"v":1,"cluster_id":"torn')
        move(kraft, [2, 3])  # no recorder runs: it is in the log
        recorder.start()
        wait_until_recorded(journal, "assignment", "reassignments_requested", 2)
        move(kraft, [1, 2])
        wait_until_recorded(journal, "assignment", "reassignments_requested", 4)

        asyncio.run(
            admin.update_features([FeatureUpdate(feature="metadata.version", level=RAISED[kraft.version].to_level)])
        )
        wait_until_recorded(journal, "features", "features_changed")

        leader = changes(journal)[-1].controller_id
        kraft.controller(leader).kill()
        wait_until_recorded(journal, "controller_elected", "controller_failover")
        kraft.broker(3).stop()
        wait_until_recorded(journal, "leadership", "controlled_shutdown")
        kraft.broker(3).start()
        kraft.controller(leader).start()
        wait_until_all_in_sync(kraft)
        asyncio.run(admin.create_topic("short-lived", replica_assignment="1:2:3"))
        asyncio.run(admin.delete_topic("short-lived"))
        wait_until_recorded(journal, "topic_removed", "topic_deletions_requested")
        said = wait_until_it_comes_to(journal, kraft)
        recorder.process.stop()

    folded = fold(read(journal))
    assert folded.findings == []
    assert folded.gaps == []
    assert folded.proven > 0
    assert_comes_to(folded, said)
    lines = changes(journal)
    assert all(line.inferred for line in lines)
    assert [line.kind for line in lines].count("recorder_started") == 1, "the killed one was gone on from"
    assert [line.kind for line in lines].count("controller_resigned") == 1
    for partition in range(3):
        recorded = versions(lines, partition)
        assert recorded == list(range(len(recorded))), "each version once, and none is missing"
    assert "alter_partition" in {line.cause for line in lines if line.kind == "leadership"}
    assert "unobserved" not in {line.cause for line in lines}
    assert [line for line in lines if line.unclean] == []


async def test_brokers_that_are_only_asked_tell_the_same_but_for_epochs(kraft: KRaftCluster) -> None:
    """As if the controllers' log could not be read."""
    admin, journal = AdminClient({"bootstrap.servers": kraft.bootstrap_servers}), MemoryJournal()
    looker = PolledLooker(
        lambda: (KeptClient(parse_addresses(kraft.bootstrap_servers)), "PLAINTEXT"), SystemClock(), timeout_ms=60_000
    )
    recorder = Recorder(looker, journal, SystemClock(), Settings())
    with closing(looker):
        await recorder.look()
        await admin.create_topic("asked", replica_assignment="1:2,2:3", configs={"retention.ms": "86400000"})
        async with asyncio.timeout(DEADLINE_S):
            while "topic_config" not in {entry.line.kind for entry in records_in(journal) if not entry.line.snapshot}:
                await looker.wait(1000)
                await recorder.look()
        await asyncio.to_thread(wait_until_all_in_sync, kraft)
        await recorder.look()
    folded = fold(journal.entries())
    assert folded.findings == []
    assert_comes_to(folded, metadata(kraft))
    told = [entry.line for entry in records_in(journal) if entry.line.topic == "asked"]
    assert {line.cause for line in told} <= {"topics_changed", "alter_partition"}
    assert {line.delta.partition_epoch for line in told if line.kind == "leadership" and line.delta} <= {-1, None}


def records_in(journal: MemoryJournal) -> list[Record]:
    return [entry for entry in journal.entries() if isinstance(entry, Record)]


def snapshots(controller: KRaftNode) -> list[int]:
    """Return the ends of a controller's snapshots."""
    found = (controller.data_folder / "__cluster_metadata-0").glob("*.checkpoint")
    return sorted(int(path.name.partition("-")[0]) for path in found)


def test_one_that_begins_or_comes_back_when_the_log_is_deleted_goes_on_from_the_snapshot(
    forgetful: Forgetful, servers_folder: RunFolder, tmp_path: Path
) -> None:
    cluster, came_back, new = forgetful.cluster, forgetful.journal, tmp_path / "new"
    ended = max(read_position(line.correlation_id) or 0 for line in changes(came_back))
    wait_until(lambda: snapshots(cluster.controller(101))[:1] > [ended], "the log is deleted")

    with (
        recorder_of(cluster, servers_folder, came_back) as again,
        recorder_of(cluster, servers_folder, new) as beginner,
    ):
        assert {each.metric("kontroller_recorder_polls") for each in (again, beginner)} == {0}
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        asyncio.run(admin.create_topic("followed", replica_assignment="1"))
        wait_until_recorded(came_back, "leadership", "topics_changed", 2)
        wait_until_recorded(new, "leadership", "topics_changed")
        for journal in (came_back, new):
            said = wait_until_it_comes_to(journal, cluster)
        again.process.stop()
        beginner.process.stop()

    for journal, begins in ((came_back, 2), (new, 1)):
        folded, lines = fold(read(journal)), changes(journal)
        assert (folded.findings, folded.gaps) == ([], [])
        assert_comes_to(folded, said)
        assert [line.kind for line in lines].count("recorder_started") == begins
        assert {line.topic for line in lines if line.kind == "topic"} <= {"seen", "followed"}
        assert "unobserved" not in {line.cause for line in lines}
