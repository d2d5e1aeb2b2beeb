"""A cluster of one node: the start of its servers in order, and the clients' way to it."""

import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from devcluster.building.toolchain import require, run
from devcluster.clusters.kubernetes import CommandError, KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.node import control_plane, kubelet, storage
from devcluster.node.isolation import Isolation
from devcluster.node.pause_image import pause_image
from devcluster.running.processes import ManagedProcess, wait_until
from devcluster.running.servers import Startable

_START_SILENCE_S = 120.0
_CTR: Final = ("ctr", "--address", kubelet.RUNTIME_SOCKET)


class Node(KubernetesCluster, Startable):
    """One-node Kubernetes. Entering the context starts it; leaving, or the end of this process, ends all of it.

    Only this object's `kubectl` and `helm` reach it from outside.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._data = folder.data("node")
        self._isolation = Isolation(folder, folder.path.name)
        super().__init__(folder, control_plane.write_configuration(self._data))
        kubelet.write_configuration(self._data)

    def start(self) -> None:
        """Start everything and wait until the node is ready for pods. Raises StartError and ConditionTimeoutError."""
        self._isolation.start()
        data, api = self._data, self.kubeconfig
        self._server("etcd", control_plane.etcd(data))
        self._server("containerd", kubelet.container_runtime(data), ready=self._runtime_answers)
        self._server("apiserver", control_plane.api_server(data), ready=self._api_answers)
        self._server("controller-manager", control_plane.controller_manager(data))
        self._server("scheduler", control_plane.scheduler(data))
        self._server("dns", control_plane.dns(data))
        self._server("proxy", kubelet.proxy(api))
        self.load_archives([pause_image(kubelet.PAUSE_IMAGE)])
        self._server("kubelet", kubelet.kubelet(data, api))
        self.kubectl("apply", "--filename", "-", stdin=storage.manifests(data))
        wait_until(self._is_ready, "the node is ready for pods", silence_s=_START_SILENCE_S)

    def close(self) -> None:
        """End every process of the node, including its pods, and with them its network and its mounts."""
        self._isolation.close()

    def load_archives(self, archives: Iterable[Path]) -> None:
        """Load images from docker-archives into the node."""
        for archive in archives:
            command = [*_CTR, "--namespace", "k8s.io", "images", "import", str(archive)]
            run(self._isolation.server_command(command), what=f"loading {archive.name}")

    def _clients(self) -> Mapping[str, list[str]]:
        """Return also `curl`, if this machine has it, which then reaches forwarded ports, and `ctr` of the node's container
        runtime."""
        # By their paths: by its name, a script of the same name would find itself.
        own = {"ctr": self._isolation.server_command([require("ctr"), *_CTR[1:]])}
        if curl := shutil.which("curl"):
            own["curl"] = self._client_command([curl])
        return {**super()._clients(), **own}

    def _client_command(self, command: list[str]) -> list[str]:
        return self._isolation.client_command(command)

    def _server(self, name: str, command: list[str], *, ready: Callable[[], bool] = lambda: True) -> None:
        process = ManagedProcess(
            f"node-{name}",
            self._isolation.server_command(command),
            log_path=self._folder.log(f"node-{name}"),
            ready=ready,
            start_silence_s=_START_SILENCE_S,
        )
        process.start()

    def _runtime_answers(self) -> bool:
        asked = self._isolation.server_command([*_CTR, "version"])
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0

    def _api_answers(self) -> bool:
        try:
            self.kubectl("get", "--raw", "/readyz")
            self.kubectl("get", "namespace", "default")
        except CommandError:
            return False
        return True

    def _is_ready(self) -> bool:
        """Return True if pods can start: the node is Ready, and the default service account exists."""
        try:
            (node,) = self.get("nodes")["items"] or [{"status": {"conditions": []}}]
            self.kubectl("get", "serviceaccount", "default")
        except CommandError:
            return False
        conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
        return conditions.get("Ready") == "True"
