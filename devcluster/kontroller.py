"""Our own processes on this machine: the controller core, whole or made to die at a chosen write to ZooKeeper."""

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from devcluster.ports import accepts, release_port, reserve_port
from devcluster.processes import ManagedProcess
from devcluster.run_folder import RunFolder
from devcluster.znodes import ClusterZnodes
from devcluster.zookeeper import connected_client

DEFAULT_CONTROLLER_ID = 1000


class ControllerProcess:
    """A `kontroller controller run` on fixed loopback ports. Entering the context starts it, leaving it kills it.

    It is ready when it listens and `/controller` names it."""

    def __init__(
        self,
        folder: RunFolder,
        zookeeper_connect: str,
        *,
        controller_id: int = DEFAULT_CONTROLLER_ID,
        name: str = "controller",
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.controller_id = controller_id
        self.port = reserve_port()
        self.metrics_port = reserve_port()
        self._zookeeper_connect = zookeeper_connect
        self._name = name
        self._folder = folder
        self._settings_path = folder.data(name) / "settings.yaml"
        self._settings_path.write_text(
            yaml.safe_dump(
                {
                    "zookeeper": zookeeper_connect,
                    "id": controller_id,
                    "listen": f"PLAINTEXT://{self.address}",
                    "metrics_port": self.metrics_port,
                    "zookeeper_session_timeout_ms": 4000,
                    **(settings or {}),
                }
            )
        )
        self.process = self._whole()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts and waits until it is the controller. Raises `StartError`."""
        self.process.start()

    def start_to_die(self, at_write: int, *, applied: bool) -> None:
        """Starts, without waiting, a controller that kills itself at the given transaction of its life, counted from 1.

        `applied`: after ZooKeeper answered it; otherwise before it is sent."""
        when = "after" if applied else "before"
        self.process = self._process("-m", "devcluster.dying_controller", when, str(at_write), str(self._settings_path))
        self.process.spawn()

    def restart_whole(self) -> None:
        """Starts an ordinary controller, whatever ran before, and waits until it is the controller."""
        self.process.kill()
        self.process = self._whole()
        self.start()

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def pause(self) -> None:
        """SIGSTOP: the process hangs, its session expires."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        release_port(self.port)
        release_port(self.metrics_port)

    def holds_the_role(self) -> bool:
        """Whether `/controller` names this process's id."""
        with connected_client(self._zookeeper_connect) as client:
            return ClusterZnodes(client).controller() == self.controller_id

    def _whole(self) -> ManagedProcess:
        return self._process("-m", "controller_admin", "controller", "run", "--settings", str(self._settings_path))

    def _process(self, *arguments: str) -> ManagedProcess:
        return ManagedProcess(
            self._name,
            [sys.executable, *arguments],
            log_path=self._folder.log(self._name),
            ready=lambda: accepts(self.port) and self.holds_the_role(),
        )


class OperatorProcess:
    """A `kontroller operator run` with the rights of a kubeconfig. Entering the context starts it, leaving it kills it."""

    def __init__(
        self, folder: RunFolder, kubeconfig: Path, *, namespaces: Sequence[str], name: str = "operator"
    ) -> None:
        self.metrics_port = reserve_port()
        self.liveness_port = reserve_port()
        arguments = [text for namespace in namespaces for text in ("--namespace", namespace)]
        arguments += ["--metrics-port", str(self.metrics_port)]
        arguments += ["--liveness", f"http://127.0.0.1:{self.liveness_port}/healthz"]
        self.process = ManagedProcess(
            name,
            [sys.executable, "-m", "controller_admin", "operator", "run", *arguments],
            log_path=folder.log(name),
            env={"KUBECONFIG": str(kubeconfig)},
            ready=lambda: accepts(self.liveness_port),
        )

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        release_port(self.metrics_port)
        release_port(self.liveness_port)


def run_command(*arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs the `kontroller` command to its end; the caller judges the result."""
    command = [sys.executable, "-m", "controller_admin", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
