"""The journals of recorders of clusters without ZooKeeper, and their comparison with the clusters' metadata."""

from pathlib import Path
from typing import Any

from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse

from controller_core.journal.fold import Folded, fold
from controller_core.journal.reader import Record, read
from controller_core.journal.records import Line
from devcluster.clients.requests import send_request
from devcluster.clusters.kontroller import RecorderProcess
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.processes import wait_until

DEADLINE_S = 120
OPTIONS = ["--journal-snapshot-interval-seconds", "5", "--journal-alive-interval-seconds", "1"]


def recorder_of(cluster: KRaftCluster, servers_folder: RunFolder, journal: Path) -> RecorderProcess:
    return RecorderProcess(
        servers_folder,
        cluster.bootstrap_servers,
        journal,
        servers_option="--bootstrap-server",
        name=f"recorder-{journal.name}",
        options=OPTIONS,
    )


def changes(journal: Path) -> list[Line]:
    """Return the records of changes so far."""
    found = [entry.line for entry in read(journal) if isinstance(entry, Record)]
    return [line for line in found if not line.snapshot and not line.kind.startswith("snapshot")]


def metadata(kraft: KRaftCluster) -> MetadataResponse:
    """Return a broker's metadata of all topics."""
    everything = MetadataRequest(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    answer: MetadataResponse = send_request(("127.0.0.1", kraft.broker(1).port), everything)
    return answer


def partitions(said: MetadataResponse) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the partitions of Metadata in the fields of journals."""
    return {
        (str(topic.name), int(each.partition_index)): {
            "leader": int(each.leader_id),
            "isr": sorted(map(int, each.isr_nodes)),
            "leader_epoch": int(each.leader_epoch),
            "replicas": list(map(int, each.replica_nodes)),
        }
        for topic in said.topics
        for each in topic.partitions
    }


def is_served(kraft: KRaftCluster) -> bool:
    """Return True if all replicas of all partitions are in sync."""
    found = partitions(metadata(kraft)).values()
    return bool(found) and all(each["isr"] == sorted(each["replicas"]) for each in found)


def wait_until_all_in_sync(kraft: KRaftCluster) -> None:
    wait_until(lambda: is_served(kraft), "everything is in sync")


def assert_comes_to(folded: Folded, said: MetadataResponse) -> None:
    """Assert that the journal agrees with the cluster's metadata."""
    assert _describe_recorded(folded) == _describe_said(said)


def wait_until_it_comes_to(journal: Path, kraft: KRaftCluster) -> MetadataResponse:
    """Wait until the journal agrees with the cluster's metadata, and return these.

    The broker that is asked may learn of a decision before or after the recorder, so both are read at each look."""
    said = metadata(kraft)

    def agrees() -> bool:
        nonlocal said
        said = metadata(kraft)
        return _describe_recorded(fold(read(journal))) == _describe_said(said)

    wait_until(agrees, "the journal comes to what the cluster says")
    return said


def _describe_recorded(folded: Folded) -> dict[str, object]:
    image = folded.image
    if image is None:
        return {}
    return {
        "brokers": set(image.brokers),
        "topics": {name: topic_id for name, (topic_id, _) in image.topics.items()},
        "partitions": {
            key: {
                "leader": fields["leader"],
                "isr": sorted(fields["isr"]),
                "leader_epoch": fields["leader_epoch"],
                "replicas": image.assignments[key]["replicas"],
            }
            for key, fields in image.leaderships.items()
        },
    }


def _describe_said(said: MetadataResponse) -> dict[str, object]:
    return {
        "brokers": {int(broker.node_id) for broker in said.brokers},
        "topics": {str(topic.name): str(topic.topic_id) for topic in said.topics},
        "partitions": partitions(said),
    }
