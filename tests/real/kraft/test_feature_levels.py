"""Our table of levels says what the tools of each release of Kafka 4 say, and clusters accept it.

The jars of servers have kafka-storage.sh and not kafka-features.sh. Both answer these questions by the same classes."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from controller_core.model.feature_levels.releases import map_release
from devcluster.building.java import plain_server_command
from devcluster.clusters.kontroller import run_command
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.kraft.releases import NEWEST as NEWEST_CLUSTER
from tests.real.kraft.releases import RELEASES

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

VERSIONS = ("3.3-IV3", "3.9", "4.0-IV0", "4.0", "4.1", "4.2-IV0", "4.2", "4.3", "4.4-IV0", "4.4")


def storage_tool(release: str, *arguments: str) -> list[str]:
    """Return the lines of Kafka's tool."""
    at = plain_server_command("kafka.tools.StorageTool", *arguments, options=("-Xmx256m",), version=release)
    done = subprocess.run(at, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("[")]


def command(*arguments: str) -> list[str]:
    """Return the lines of ours."""
    done = run_command("features", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_maps_itself_and_its_levels_as_we_do(release: str) -> None:
    """An older tool knows fewer features, and releases up to its own."""
    last = map_release(release.rpartition(".")[0])
    names: set[str] = set()
    for version in VERSIONS:
        if map_release(version)["metadata.version"] <= last["metadata.version"]:
            said = storage_tool(release, "version-mapping", "--release-version", version)
            names = {line.partition("=")[0] for line in said}
            ours = command("version-mapping", "--release-version", version)
            assert said == [line for line in ours if line.partition("=")[0] in names]
    asked = [
        word for name, level in last.items() if level and name in names for word in ("--feature", f"{name}={level}")
    ]
    assert storage_tool(release, "feature-dependencies", *asked) == command("feature-dependencies", *asked)


@pytest.fixture
def kraft(servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """A cluster with the features of 4.0, which this test changes."""
    with KRaftCluster(servers_folder, name="levelled", release="4.0", version=NEWEST_CLUSTER) as cluster:
        yield cluster


def test_a_cluster_goes_to_the_levels_of_a_release_and_back(kraft: KRaftCluster) -> None:
    at = ("--bootstrap-server", kraft.bootstrap_servers)
    upgrade = ("upgrade", "--release-version", "4.2", *at)

    def is_possible() -> bool:
        done = run_command("features", *upgrade, "--dry-run")
        assert done.returncode == 0 or "not all of the voters support it" in done.stderr
        return done.returncode == 0

    wait_until(is_possible, "each voter has told the leader which levels it supports")
    assert "metadata.version can be upgraded to 29." in command(*upgrade, "--dry-run")
    command(*upgrade, "--yes")
    found = json.loads("".join(command("describe", "--controller", *at)))["finalized_features"]
    levels = {name: each["version"] for name, each in found.items() if name != "epoch"}
    wanted = {name: level for name, level in map_release("4.2").items() if level}
    assert {name: levels.get(name) for name in wanted} == wanted
    assert command("upgrade", "--release-version", "4.2", "--yes", *at) == [
        "every feature is at this level already, so there is nothing to upgrade"
    ]
    command("downgrade", "--release-version", "4.1", "--yes", *at)
    found = json.loads("".join(command("describe", "--controller", *at)))["finalized_features"]
    assert found["metadata.version"]["version"] == map_release("4.1")["metadata.version"]
    assert "streams.version" not in found
