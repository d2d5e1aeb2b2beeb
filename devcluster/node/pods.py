"""A cluster that really runs pods, with our images. Its kind depends on the machine.

In this order: the cluster of `$KUBECONFIG`, which must be able to pull the images from `$KONTROLLER_IMAGES` (a registry
and a path, such as `registry.example.com/team`); a node of our own, which needs root and some Debian packages but no
container engine; kind, if Docker or Podman runs.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pytest_kind import KindCluster

from devcluster.building.binaries import coredns_binary, kind_binary, node_binaries
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.fill import fill_cache
from devcluster.filling.parts import API_SERVER, Part
from devcluster.filling.programs import KUBECTL
from devcluster.images import ImageArchive, image_archives
from devcluster.node.node import Node
from devcluster.node.requirements import find_missing_for_node, install_for_a_node

_ENGINES = ("docker", "podman")


class NoCluster(Exception):
    """No cluster can run pods here; the message says what each kind lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCluster:
    """A cluster whose nodes can start our images."""

    kubernetes: KubernetesCluster
    images: str = ""
    """The prefix of the images' names, with a slash at its end; empty if they were loaded."""
    load_archive: Callable[[Path], None] | None = None
    """Loads an image into the nodes; None if they pull."""

    def load(self, build: Callable[[], ImageArchive]) -> None:
        """Build another image and load it into the nodes; does nothing if they pull."""
        if self.load_archive is not None:
            self.load_archive(build().path)


def prepare() -> None:
    """Build and install the requirements of `cluster_with_pods`: minutes at first. Raises MissingToolError and
    BuildError.
    """
    if os.environ.get("KUBECONFIG"):
        fill_cache(API_SERVER)
        return
    fill_cache([Part.KAFKA, *API_SERVER])
    if find_missing_for_node() is None:
        install_for_a_node()
        for part in (node_binaries, coredns_binary, image_archives):
            part()
    elif _has_engine():
        kind_binary()
        image_archives()


@contextmanager
def cluster_with_pods(folder: RunFolder) -> Iterator[PodCluster]:
    """Yield a cluster for pods; a cluster that was made for it ends with the block. Raises NoCluster."""
    if given := os.environ.get("KUBECONFIG"):
        yield _use_given_cluster(folder, Path(given))
    elif (missing := find_missing_for_node()) is None:
        with Node(folder) as node:
            node.load_images(archive.path for archive in image_archives())
            yield PodCluster(kubernetes=node, load_archive=lambda path: node.load_images([path]))
    elif _has_engine():
        yield from _kind(folder)
    else:
        raise NoCluster(
            f"no cluster can run pods here. A node of our own: {missing}. kind: no container engine runs. "
            "Set KUBECONFIG to a cluster, and KONTROLLER_IMAGES to where it can pull the images from"
        )


def _use_given_cluster(folder: RunFolder, kubeconfig: Path) -> PodCluster:
    images = os.environ.get("KONTROLLER_IMAGES")
    if not images:
        raise NoCluster("KUBECONFIG is set: set KONTROLLER_IMAGES to where that cluster can pull the images from")
    return PodCluster(kubernetes=KubernetesCluster(folder, kubeconfig), images=images.rstrip("/") + "/")


def _has_engine() -> bool:
    engines = filter(shutil.which, _ENGINES)
    return any(subprocess.run([engine, "info"], capture_output=True, check=False).returncode == 0 for engine in engines)


def _kind(folder: RunFolder) -> Iterator[PodCluster]:
    kubeconfig = folder.data("kind") / "kubeconfig"
    kind = KindCluster(
        folder.path.name,
        kubeconfig=kubeconfig,
        kind_path=kind_binary(),
        kubectl_path=KUBECTL.path(),
    )
    try:
        kind.create()
        for archive in image_archives():
            _load_into_kind(kind.name, archive.path)
        load = partial(_load_into_kind, kind.name)
        yield PodCluster(kubernetes=KubernetesCluster(folder, kubeconfig), load_archive=load)
    finally:
        kind.delete()


def _load_into_kind(name: str, archive: Path) -> None:
    subprocess.run([kind_binary(), "load", "image-archive", archive, "--name", name], check=True)
