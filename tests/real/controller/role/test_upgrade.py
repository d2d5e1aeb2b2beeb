"""A rolling upgrade with a hot standby: an older revision of this project runs beside the present one, under load."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.building.revisions import NoSuchRevision, environment_of, export_revision
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_controlled_by, wait_until_hot
from tests.real.controller.clusters import OurCluster

OLDER = "7b955fb5153dfcdc9b03103cfea8495fe7d877a6"
"""A revision without requests for the role."""


@pytest.fixture
def older(our_cluster: OurCluster, servers_folder: RunFolder, tmp_path: Path) -> Iterator[ControllerProcess]:
    try:
        source = export_revision(OLDER, tmp_path)
    except NoSuchRevision as error:
        pytest.skip(f"NOT RUN, the upgrade of a running cluster is not shown here: {error}")
    process = ControllerProcess(
        servers_folder,
        our_cluster.kafka.zookeeper_connect,
        controller_id=1005,
        name="older-controller",
        env=environment_of(source),
    )
    process.process.spawn()
    yield process
    process.close()


def test_the_role_passes_from_an_older_revision_to_this_one_and_back_under_load(
    our_cluster: OurCluster, older: ControllerProcess
) -> None:
    znodes, ours = our_cluster.znodes, our_cluster.controller
    our_cluster.serve_topic("upgraded", [[1, 2, 3]], {"min.insync.replicas": "2"})
    with nothing_lost(our_cluster.kafka.bootstrap_servers, "upgraded"):
        wait_until_hot(znodes, older.controller_id)
        assert "leads_under" not in (znodes.read("/kontroller/processes/1005") or {}), "it is the older one that runs"
        ours.stop()
        wait_until_controlled_by(znodes, older.controller_id)
        our_cluster.serve_topic("made-by-the-older", [[4, 5]])
        ours.process.spawn()
        wait_until_hot(znodes, ours.controller_id)
        older.stop()
        wait_until_controlled_by(znodes, ours.controller_id)
        our_cluster.serve_topic("made-by-the-newer", [[4, 5]])
