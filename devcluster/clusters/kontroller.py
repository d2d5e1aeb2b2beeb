"""Our own processes on this machine: a recorder, an operator, and the controller.

The controller is the ordinary one, or a variant that dies at a chosen write, stops before each write, or has another
clock.
"""

import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from devcluster.clients.sessions import SESSION_TIMEOUT_MS
from devcluster.clusters.listeners import ONE_FOR_ALL, ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import SessionHolder
from devcluster.running.places import HERE, Place
from devcluster.running.ports import accepts
from devcluster.running.processes import ManagedProcess
from devcluster.running.scraping import scrape
from devcluster.running.servers import Server
from devcluster.stand_ins.slow_motion_seed import slow_motion_seed

DEFAULT_CONTROLLER_ID = 1000


class ControllerProcess(SessionHolder):
    """A `kontroller controller run` on fixed ports. Entering the context starts it, leaving it kills it.

    It is ready when its metrics say that it is the controller, because `/controller` may still name it for a process
    that was killed. Leaders move only on request, unless `settings` turns the automatic rebalance on. It listens on a
    port for each of the brokers' listeners, or on one for all.
    """

    def __init__(
        self,
        folder: RunFolder,
        zookeeper_connect: str,
        *,
        controller_id: int = DEFAULT_CONTROLLER_ID,
        name: str = "controller",
        settings: Mapping[str, object] | None = None,
        listeners: ListenerNames = ONE_FOR_ALL,
        one_port: bool = False,
        env: Mapping[str, str] | None = None,
        place: Place = HERE,
    ) -> None:
        super().__init__()
        self.place = place
        self.controller_id = controller_id
        self._env = env
        self._zookeeper_connect = zookeeper_connect
        first = self._reserve_port()
        self.ports = {name: first if one_port else self._reserve_port() for name in listeners.names[1:]}
        self.ports[listeners.inter_broker] = first
        self.port = self.ports[listeners.clients]
        self.metrics_port = self._reserve_port()
        self._name = name
        self._folder = folder
        self._settings_path = folder.data(name) / "settings.yaml"
        self._settings_path.write_text(
            yaml.safe_dump(
                {
                    "zookeeper": zookeeper_connect,
                    "id": controller_id,
                    **self._make_listener_settings(listeners, one_port=one_port),
                    "metrics_host": place.address,
                    "metrics_port": self.metrics_port,
                    "zookeeper_session_timeout_ms": SESSION_TIMEOUT_MS,
                    "auto_leader_rebalance_enable": False,
                    "num_partitions": 1,
                    "default_replication_factor": 1,
                    **(settings or {}),
                }
            )
        )
        self.process = self._whole()

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"{self.place.address}:{self.port}"

    def start_to_die(self, at_write: int, *, applied: bool) -> None:
        """Start, without waiting, a controller that kills itself at the given transaction, counted from 1.

        `applied`: after ZooKeeper answered it; otherwise before it is sent.
        """
        when = "after" if applied else "before"
        self.process = self._process(
            "-m", "devcluster.stand_ins.dying_controller", when, str(at_write), str(self._settings_path)
        )
        self.process.spawn()

    def start_stepping(self, path: str) -> None:
        """Start a controller that stops before each write below the path, until `resume`, and wait until it has the
        role.
        """
        self.process = self._process("-m", "devcluster.stand_ins.stepping_controller", path, str(self._settings_path))
        self.start()

    def start_clocked(self) -> None:
        """Start a controller whose clock is set by its environment, and wait until it is the controller."""
        self.process = self._process("-m", "devcluster.stand_ins.clocked_controller", str(self._settings_path))
        self.start()

    def restart_whole(self) -> None:
        """Start an ordinary controller in place of the former process, and wait until it is the controller.

        The former process is killed, and its session lasts, so that nobody else takes the role in between.
        """
        self.kill(ends_session=False)
        self.process = self._whole()
        self.start()

    @contextmanager
    def change_settings(self, **settings: object) -> Iterator[None]:
        """Restart the controller with other settings for the time of the block."""
        own = self._settings_path.read_text()
        self._settings_path.write_text(yaml.safe_dump({**yaml.safe_load(own), **settings}))
        self.restart_whole()
        try:
            yield
        finally:
            self._settings_path.write_text(own)
            self.restart_whole()

    def metric(self, name: str) -> float | None:
        """Return the scraped value of a metric without labels; None if it is missing. Raises OSError."""
        return scrape(self.metrics_port, name, self.place.address)

    def _find_registration(self) -> tuple[str, Collection[int]]:
        return self._zookeeper_connect, [self.controller_id]

    def _make_listener_settings(self, listeners: ListenerNames, *, one_port: bool) -> dict[str, object]:
        listened_on = listeners.names[:1] if one_port else listeners.names
        return {
            "listen": [f"{name}://{self.place.address}:{self.ports[name]}" for name in listened_on],
            **({"client_listener": listeners.clients} if one_port else {}),
            **({"control_plane_listener": listeners.control_plane} if listeners.control_plane else {}),
        }

    def _whole(self) -> ManagedProcess:
        command = "devcluster.stand_ins.slow_controller" if slow_motion_seed() else "kontroller"
        return self._process("-m", command, "controller", "run", "--settings", str(self._settings_path))

    def _process(self, *arguments: str) -> ManagedProcess:
        return ManagedProcess(
            self._name,
            self.place.command([sys.executable, *arguments]),
            log_path=self._folder.log(self._name),
            env=self._env,
            ready=lambda: accepts(self.port, self.place.address) and self.metric("kontroller_active_controller") == 1,
        )


class RecorderProcess(Server):
    """A `kontroller record`. Entering the context starts it, leaving it kills it. It is ready when it records a term."""

    def __init__(
        self,
        folder: RunFolder,
        servers: str,
        journal_directory: Path,
        *,
        servers_option: str = "--zookeeper",
        name: str = "recorder",
        options: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.metrics_port = self._reserve_port()
        arguments = [servers_option, servers, "--journal-directory", str(journal_directory)]
        arguments += ["--metrics-port", str(self.metrics_port), *options]
        self.process = ManagedProcess(
            name,
            [sys.executable, "-m", "kontroller", "record", *arguments],
            log_path=folder.log(name),
            ready=lambda: (self.metric("kontroller_recorder_controller_epoch") or -1) > 0,
        )

    def metric(self, name: str) -> float | None:
        """Return the scraped value of a metric without labels; None if it is missing. Raises OSError."""
        return scrape(self.metrics_port, name)


class OperatorProcess(Server):
    """A `kontroller operator run` with the rights of a kubeconfig. Entering the context starts it, leaving it kills it."""

    def __init__(
        self,
        folder: RunFolder,
        kubeconfig: Path,
        *,
        namespaces: Sequence[str],
        name: str = "operator",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Configure the process; `settings` go to its environment, beside the kubeconfig."""
        super().__init__()
        self.metrics_port = self._reserve_port()
        self.liveness_port = self._reserve_port()
        arguments = [text for namespace in namespaces for text in ("--namespace", namespace)]
        arguments += ["--metrics-port", str(self.metrics_port)]
        arguments += ["--liveness", f"http://127.0.0.1:{self.liveness_port}/healthz"]
        self.process = ManagedProcess(
            name,
            [sys.executable, "-m", "kontroller", "operator", "run", *arguments],
            log_path=folder.log(name),
            env={"KUBECONFIG": str(kubeconfig), **(settings or {})},
            ready=lambda: accepts(self.liveness_port),
        )


def run_command(
    *arguments: str, timeout_s: float = 60, program: str = "kontroller"
) -> subprocess.CompletedProcess[str]:
    """Run a program of this repository to its end; the caller checks the result."""
    command = [sys.executable, "-m", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
