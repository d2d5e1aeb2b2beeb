"""`hand-over` and `take-over` on unmodified brokers, under load: between two of ours, to Kafka's controller, and back."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_controlled_by, wait_until_hot
from tests.real.controller.clusters import OurCluster

log = structlog.get_logger()

OTHER = 1004


@contextmanager
def hot_standby(cluster: OurCluster, folder: RunFolder) -> Iterator[ControllerProcess]:
    other = ControllerProcess(
        folder, cluster.kafka.zookeeper_connect, controller_id=OTHER, name="controller-to-move-to"
    )
    other.process.spawn()
    try:
        wait_until_hot(cluster.znodes, OTHER)
        yield other
    finally:
        other.kill()


def says(cluster: OurCluster, process: int, name: str) -> object:
    """Return a field of a process's own znode; None while it is hindered."""
    said = cluster.znodes.read(f"/kontroller/processes/{process}") or {}
    return said.get(name) if said.get("hindrance") is None else None


def move_role(cluster: OurCluster, *arguments: str) -> None:
    """Run a command that moves the role to its end, and log the time without a controller that it prints."""
    done = run_command("controller", *arguments, "--zookeeper", cluster.kafka.zookeeper_connect, "--yes")
    assert done.returncode == 0, done.stderr
    assert re.search(r"there was no controller for [0-9.]+ s", done.stdout) is not None, done.stdout
    log.info("moved the role", arguments=arguments, said=done.stdout.splitlines()[-1])


def test_the_role_goes_to_another_of_ours_to_kafka_and_back_under_load_and_nothing_is_lost(
    our_cluster: OurCluster, servers_folder: RunFolder
) -> None:
    znodes, ours = our_cluster.znodes, our_cluster.controller
    our_cluster.serve_topic("moved-about", [[1, 2, 3]], {"min.insync.replicas": "2"})
    with (
        nothing_lost(our_cluster.kafka.bootstrap_servers, "moved-about"),
        hot_standby(our_cluster, servers_folder) as other,
    ):
        epoch = int(znodes.read("/controller_epoch"))
        move_role(our_cluster, "hand-over", "--to", str(OTHER))
        assert (znodes.controller(), int(znodes.read("/controller_epoch"))) == (OTHER, epoch + 1)
        our_cluster.serve_topic("made-by-the-other", [[4, 5]])
        move_role(our_cluster, "hand-over")
        assert znodes.controller() in our_cluster.znodes.live_brokers()
        our_cluster.serve_topic("made-by-a-broker", [[4, 5]])
        assert says(our_cluster, OTHER, "whereabouts") is not None, "it could lead, and does not"
        move_role(our_cluster, "take-over", "--id", str(OTHER))
        assert znodes.controller() == OTHER
        epoch = int(znodes.read("/controller_epoch"))
        other.stop()
        wait_until_controlled_by(znodes, ours.controller_id)
        assert int(znodes.read("/controller_epoch")) == epoch + 1, "no broker had it in between"
        our_cluster.serve_topic("made-by-us-again", [[4, 5]])


def test_what_is_in_the_way_is_said_and_nothing_changes(our_cluster: OurCluster) -> None:
    zookeeper = our_cluster.kafka.zookeeper_connect
    epoch = our_cluster.znodes.read("/controller_epoch")
    refused = run_command("controller", "hand-over", "--zookeeper", zookeeper, "--to", "77", "--yes")
    assert refused.returncode == 1
    assert "obstacle: Kontroller process 77 does not stand by (processes: 1000)" in refused.stdout
    checked = run_command("controller", "hand-over", "--zookeeper", zookeeper, "--check")
    assert (checked.returncode, checked.stdout.splitlines()[0]) == (0, "Kontroller process 1000 has the role")
    nowhere = run_command("controller", "take-over", "--zookeeper", f"{zookeeper}/nowhere", "--check")
    assert nowhere.returncode == 1
    assert our_cluster.znodes.read("/controller_epoch") == epoch
