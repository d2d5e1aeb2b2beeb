"""A cluster that really runs pods, with our images. Its kind depends on the machine.

In this order: the cluster of `$KUBECONFIG`, which must be able to pull the images from `$KONTROLLER_IMAGES` (a registry
and a path, such as `registry.example.com/team`); kind, if Docker or Podman runs; a node of our own, which needs root
and some Debian packages but no container engine.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devcluster.building.binaries import coredns_binary, kind_binary, node_binaries
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.fill import fill_cache
from devcluster.filling.parts import API_SERVER, Part
from devcluster.images import Image, image_archive
from devcluster.node.kind import Kind, has_engine, kind_cluster
from devcluster.node.node import Node
from devcluster.node.requirements import find_missing_for_node, install_for_a_node

CHART_IMAGES: Final = (Image.KONTROLLER, Image.KAFKA)
"""The images that the chart needs for a cluster with ZooKeeper."""
_KAFKA_OF: Final = {Image.KAFKA: Part.KAFKA, Image.KAFKA_4: Part.KRAFT}
"""The release of Kafka in an image."""


class NoCluster(Exception):
    """No cluster can run pods here; the message says what each kind lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCluster:
    """A cluster whose nodes can start our images."""

    kubernetes: KubernetesCluster
    images: str = ""
    """The prefix of the images' names, with a slash at its end; empty if they were loaded."""
    load_archives: Callable[[Iterable[Path]], None] | None = None
    """Loads images into the nodes; None if they pull."""

    def load(self, *images: Image) -> None:
        """Build images and load them into the nodes; does nothing if they pull."""
        if self.load_archives is not None:
            self.load_archives([image_archive(image).path for image in images])


def prepare(images: Sequence[Image] = CHART_IMAGES) -> None:
    """Build and install the requirements of `cluster_with_pods`: minutes at first. Raises MissingToolError and
    BuildError.
    """
    if os.environ.get("KUBECONFIG"):
        fill_cache(API_SERVER)
        return
    fill_cache([*(_KAFKA_OF[image] for image in images if image in _KAFKA_OF), *API_SERVER])
    if has_engine():
        kind_binary()
    elif find_missing_for_node() is None:
        install_for_a_node()
        node_binaries()
        coredns_binary()
    else:
        return
    for image in images:
        image_archive(image)


@contextmanager
def cluster_with_pods(folder: RunFolder, images: Sequence[Image] = CHART_IMAGES) -> Iterator[PodCluster]:
    """Yield a cluster for pods; a cluster that was made for it ends with the block. Raises NoCluster."""
    if given := os.environ.get("KUBECONFIG"):
        yield _use_given_cluster(folder, Path(given))
    elif has_engine():
        with kind_cluster(folder) as kind:
            yield _load_images(kind, images)
    elif (missing := find_missing_for_node()) is None:
        with Node(folder) as node:
            yield _load_images(node, images)
    else:
        raise NoCluster(
            f"no cluster can run pods here. A node of our own: {missing}. kind: no container engine runs. "
            "Set KUBECONFIG to a cluster, and KONTROLLER_IMAGES to where it can pull the images from"
        )


def _load_images(cluster: Node | Kind, images: Sequence[Image]) -> PodCluster:
    loaded = PodCluster(kubernetes=cluster, load_archives=cluster.load_images)
    loaded.load(*images)
    return loaded


def _use_given_cluster(folder: RunFolder, kubeconfig: Path) -> PodCluster:
    images = os.environ.get("KONTROLLER_IMAGES")
    if not images:
        raise NoCluster("KUBECONFIG is set: set KONTROLLER_IMAGES to where that cluster can pull the images from")
    return PodCluster(kubernetes=KubernetesCluster(folder, kubeconfig), images=images.rstrip("/") + "/")
