"""A cluster of kind (https://kind.sigs.k8s.io), in containers of Docker or Podman."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from devcluster.building.toolchain import BuildError, run
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.programs import KIND
from devcluster.images import Image
from devcluster.images.engine import build_with_engine, save_image

_ENGINES: Final = ("docker", "podman")
_PROVIDER: Final = "KIND_EXPERIMENTAL_PROVIDER"
"""The variable that names the engine to kind, which otherwise takes the first one that is installed, even if it does
not run.
"""
_ANSWER_S: Final = 30
_START_DEADLINE: Final = "5m"


class NoEngine(Exception):
    """No container engine runs; the message says why for each."""


class Kind(KubernetesCluster):
    """A cluster of one container of an engine. `name` tells clusters on this machine apart."""

    def __init__(self, folder: RunFolder, name: str, engine: str) -> None:
        self._name = name
        self._engine = engine
        super().__init__(folder, folder.data("kind") / "kubeconfig")

    def load_images(self, images: Iterable[Image]) -> None:
        """Build images with the engine, and load them into the node. Raises BuildError."""
        for image in images:
            build_with_engine(self._engine, image)
            archive = self._folder.data("images") / f"{image}.tar"
            save_image(self._engine, image, archive)
            self.call("load", "image-archive", str(archive), what=f"loading the image {image}")
            archive.unlink()

    def call(self, *arguments: str, what: str) -> None:
        """Run kind on this cluster. Raises BuildError with the end of its output."""
        run([str(KIND.path()), *arguments, "--name", self._name], what=what, env={_PROVIDER: self._engine})


def find_engine() -> str:
    """Return the first engine that runs, among those that kind knows or the one that its variable names. Raises
    NoEngine.
    """
    given = os.environ.get(_PROVIDER)
    engines = (given,) if given else _ENGINES
    reasons = []
    for engine in filter(shutil.which, engines):
        reason = _find_failure(engine)
        if reason is None:
            return engine
        reasons.append(f"{engine} does not answer: {reason}")
    raise NoEngine("; ".join(reasons) or f"{' and '.join(engines)} not found on the PATH")


def _find_failure(engine: str) -> str | None:
    try:
        asked = subprocess.run([engine, "info"], capture_output=True, text=True, timeout=_ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if asked.returncode == 0:
        return None
    return (asked.stderr.strip() or f"exit status {asked.returncode}").splitlines()[-1]


@contextmanager
def kind_cluster(folder: RunFolder, engine: str) -> Iterator[Kind]:
    """Create a cluster, which is deleted at the end of the block, even if its creation failed. Raises BuildError."""
    # The name of a folder may have characters that kind refuses in names.
    cluster = Kind(folder, folder.path.name.replace("_", "-"), engine)
    kubeconfig = ("--kubeconfig", str(cluster.kubeconfig))

    def delete() -> None:
        cluster.call("delete", "cluster", *kubeconfig, what="deleting the cluster of kind")

    try:
        cluster.call("create", "cluster", *kubeconfig, "--wait", _START_DEADLINE, what="creating a cluster of kind")
        yield cluster
    except BaseException:
        with suppress(BuildError):  # the first error says more
            delete()
        raise
    delete()
