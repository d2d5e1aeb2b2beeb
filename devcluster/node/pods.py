"""A cluster that really runs pods, with our images. Its kind depends on the machine.

In this order: the cluster of `$KUBECONFIG`, which must be able to pull the images from `$KONTROLLER_IMAGES` (a registry
and a path, such as `registry.example.com/team`); kind, if Docker or Podman runs; a node of our own, which needs root
and some Debian packages but no container engine.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from devcluster.building import progress
from devcluster.building.binaries import coredns_binary, node_binaries
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.fill import fill_cache
from devcluster.filling.parts import API_SERVER, Part
from devcluster.filling.programs import KIND
from devcluster.images import Image, image_archive
from devcluster.images.engine import build_with_engine
from devcluster.node.kind import NoEngine, find_engine, kind_cluster
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
    load_images: Callable[[Iterable[Image]], None] | None = None
    """Builds images and loads them into the nodes; None if they pull."""

    def load(self, *images: Image) -> None:
        """Build images and load them into the nodes; does nothing if they pull."""
        if self.load_images is not None:
            self.load_images(images)


def prepare(images: Sequence[Image] = CHART_IMAGES) -> None:
    """Build and install the requirements of `cluster_with_pods`: minutes at first. Raises NoCluster, MissingToolError
    and BuildError.
    """
    for stage in plan_preparation(images):
        stage()


def plan_preparation(images: Sequence[Image]) -> list[Callable[[], object]]:
    """Return the stages of `prepare`, in order, as functions. Raises NoCluster."""
    if os.environ.get("KUBECONFIG"):
        _read_registry()
        return [partial(fill_cache, API_SERVER)]
    if isinstance(engine := _choose_engine(), str):
        progress.say(f"The cluster will be one of kind, with {engine}")
        builds = (partial(build_with_engine, engine, image) for image in images)
        return [partial(fill_cache, (Part.HELM,)), KIND.path, *builds]
    progress.say(f"The cluster will be a node on this machine, without kind ({engine})")
    parts = [*(_KAFKA_OF[image] for image in images if image in _KAFKA_OF), *API_SERVER]
    archives = (partial(image_archive, image) for image in images)
    return [partial(fill_cache, parts), install_for_a_node, node_binaries, coredns_binary, *archives]


@contextmanager
def cluster_with_pods(folder: RunFolder, images: Sequence[Image] = CHART_IMAGES) -> Iterator[PodCluster]:
    """Yield a cluster for pods; a cluster that was made for it ends with the block. Raises NoCluster."""
    if given := os.environ.get("KUBECONFIG"):
        yield PodCluster(kubernetes=KubernetesCluster(folder, Path(given)), images=_read_registry())
    elif isinstance(engine := _choose_engine(), str):
        with kind_cluster(folder, engine) as kind:
            yield _load(PodCluster(kubernetes=kind, load_images=kind.load_images), images)
    else:
        with Node(folder) as node:

            def load_images(images: Iterable[Image]) -> None:
                node.load_archives([image_archive(image).path for image in images])

            yield _load(PodCluster(kubernetes=node, load_images=load_images), images)


def _choose_engine() -> str | NoEngine:
    """Return the engine for a cluster of kind; for a node without an engine, the reason. Raises NoCluster."""
    try:
        return find_engine()
    except NoEngine as error:
        if (missing := find_missing_for_node()) is not None:
            raise NoCluster(
                f"No cluster can run pods here.\nkind: {error}\nA node without a container engine: {missing}\n"
                "Start Docker or Podman. Or set KUBECONFIG to a cluster, and KONTROLLER_IMAGES to the registry from which "
                "it can pull the images"
            ) from error
        return error


def _load(cluster: PodCluster, images: Sequence[Image]) -> PodCluster:
    cluster.load(*images)
    return cluster


def _read_registry() -> str:
    """Return the prefix of the images' names for the given cluster."""
    images = os.environ.get("KONTROLLER_IMAGES")
    if not images:
        raise NoCluster(
            "KUBECONFIG is set: set KONTROLLER_IMAGES to the registry from which that cluster can pull the images, or "
            "unset KUBECONFIG to have a small cluster on this machine"
        )
    return images.rstrip("/") + "/"
