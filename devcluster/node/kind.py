"""A cluster of kind (https://kind.sigs.k8s.io), in containers of Docker or Podman."""

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from devcluster.building.binaries import kind_binary
from devcluster.building.toolchain import run
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder

_ENGINES: Final = ("docker", "podman")
_START_DEADLINE: Final = "5m"


class Kind(KubernetesCluster):
    """A cluster of one container. `name` tells clusters on this machine apart."""

    def __init__(self, folder: RunFolder, name: str) -> None:
        self._name = name
        super().__init__(folder, folder.data("kind") / "kubeconfig")

    def load_images(self, archives: Iterable[Path]) -> None:
        """Load images from docker-archives into the nodes."""
        for archive in archives:
            self.call("load", "image-archive", str(archive), what=f"loading {archive.name}")

    def call(self, *arguments: str, what: str) -> None:
        """Run kind on this cluster. Raises BuildError with the end of its output."""
        run([str(kind_binary()), *arguments, "--name", self._name], what=what)


def has_engine() -> bool:
    """Return True if Docker or Podman runs."""
    engines = filter(shutil.which, _ENGINES)
    return any(subprocess.run([engine, "info"], capture_output=True, check=False).returncode == 0 for engine in engines)


@contextmanager
def kind_cluster(folder: RunFolder) -> Iterator[Kind]:
    """Create a cluster, which is deleted at the end of the block, even if its creation failed. Raises BuildError."""
    cluster = Kind(folder, folder.path.name)
    kubeconfig = ("--kubeconfig", str(cluster.kubeconfig))
    try:
        cluster.call("create", "cluster", *kubeconfig, "--wait", _START_DEADLINE, what="creating a cluster of kind")
        yield cluster
    finally:
        cluster.call("delete", "cluster", *kubeconfig, what="deleting the cluster of kind")
