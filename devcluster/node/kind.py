"""A cluster of kind (https://kind.sigs.k8s.io), in containers of Docker or Podman."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from devcluster.building import progress
from devcluster.building.cache import cache_folder
from devcluster.building.toolchain import BuildError, run
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.programs import KIND
from devcluster.images import Image
from devcluster.images.engine import BUILD_ENVIRONMENT, build_with_engine, save_image
from devcluster.node import cgroups

_ENGINES: Final = ("docker", "podman")
_PROVIDER: Final = "KIND_EXPERIMENTAL_PROVIDER"
"""The variable that names the engine to kind, which otherwise takes the first one that is installed, even if it does
not run.
"""
_ANSWER_S: Final = 30
_START_DEADLINE: Final = "5m"
_ON_CGROUP_V1: Final = """\
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
kubeadmConfigPatches:
  - |
    kind: KubeletConfiguration
    apiVersion: kubelet.config.k8s.io/v1beta1
    failCgroupV1: false
"""
"""The settings of a cluster on cgroups of version 1, where the kubelet of Kubernetes 1.35 refuses to start by default."""


class NoEngine(Exception):
    """No container engine can be used; the message says why for each."""


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
        _run_kind(self._engine, *arguments, "--name", self._name, what=what)


def find_engine() -> str:
    """Return the first engine that can run kind and build our images, among Docker and Podman or the one that kind's
    variable names. Raises NoEngine.
    """
    given = os.environ.get(_PROVIDER)
    engines = (given,) if given else _ENGINES
    reasons = []
    for engine in filter(shutil.which, engines):
        reason = _find_failure(engine)
        if reason is None:
            return engine
        reasons.append(reason)
    raise NoEngine("; ".join(reasons) or f"{' and '.join(engines)} not found on the PATH")


def _find_failure(engine: str) -> str | None:
    """Return the reason why an engine cannot be used; None if it can."""
    try:
        version = _ask(engine, "--version").stdout
        if engine == "docker" and not version.startswith("Docker version"):
            # The package podman-docker has such a program, with which kind's support of Docker does not work.
            return f"docker is not Docker: {version.strip()}"
        if (asked := _ask(engine, "info")).returncode != 0:
            return f"{engine} does not answer: {_find_complaint(asked)}"
        if (asked := _ask(engine, "build", "--help")).returncode != 0:
            return f"{engine} cannot build images: {_find_complaint(asked)}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{engine} does not answer: {error}"
    return None


def _ask(engine: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **BUILD_ENVIRONMENT}
    command = [engine, *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_ANSWER_S,
        check=False,
        stdin=subprocess.DEVNULL,
        env=environment,
    )


def _find_complaint(asked: "subprocess.CompletedProcess[str]") -> str:
    """Return the error in an engine's output. Old Docker writes it to its standard output, with less to the other one."""
    lines = [*asked.stdout.splitlines(), *asked.stderr.splitlines()]
    errors = [line for line in lines if line.lower().startswith("error:")]
    return (errors or asked.stderr.strip().splitlines()[-1:] or [f"exit status {asked.returncode}"])[0]


@contextmanager
def kind_cluster(folder: RunFolder, engine: str) -> Iterator[Kind]:
    """Create a cluster, which is deleted at the end of the block, even if its creation failed. Raises BuildError."""
    # The name of a folder may have characters that kind refuses in names.
    name = folder.path.name.replace("_", "-")
    cluster = Kind(folder, name, engine)
    kubeconfig = ("--kubeconfig", str(cluster.kubeconfig))
    options = [*kubeconfig, "--wait", _START_DEADLINE]
    if cgroups.is_version_1():
        settings = folder.data("kind") / "cluster.yaml"
        settings.write_text(_ON_CGROUP_V1)
        options += ["--config", str(settings)]

    _delete_left_over()
    with _record(name, engine) as record:

        def delete() -> None:
            cluster.call("delete", "cluster", *kubeconfig, what="deleting the cluster of kind")
            record.unlink()

        try:
            cluster.call("create", "cluster", *options, what="creating a cluster of kind")
            yield cluster
        except BaseException:
            with suppress(BuildError):  # the first error says more
                delete()
            raise
        delete()


@contextmanager
def _record(name: str, engine: str) -> Iterator[Path]:
    """Make a file for a cluster, which is locked while the block runs. A killed run leaves the file without the lock."""
    path = _records() / name
    hidden = path.with_name(f".{name}")
    with hidden.open("w") as record:
        fcntl.flock(record, fcntl.LOCK_EX)
        record.write(engine)
        record.flush()
        hidden.rename(path)  # other runs must not see it without its lock
        yield path


def _delete_left_over() -> None:
    """Delete the clusters of killed runs: their containers live on, and start again with the machine."""
    for path in _records().glob("[!.]*"):
        with suppress(BlockingIOError, FileNotFoundError, BuildError), path.open() as record:
            fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with tempfile.TemporaryDirectory() as folder, progress.step("Deleting the cluster of a killed run"):
                command = ("delete", "cluster", "--kubeconfig", f"{folder}/kubeconfig", "--name", path.name)
                _run_kind(record.read(), *command, what="deleting the cluster of a killed run")
            path.unlink()


def _records() -> Path:
    folder = cache_folder() / "kind-clusters"
    folder.mkdir(exist_ok=True)
    return folder


def _run_kind(engine: str, *arguments: str, what: str) -> None:
    run([str(KIND.path()), *arguments], what=what, env={_PROVIDER: engine})
