"""The namespaces that a node lives in, and how a process is started in them.

They exist from `start` to `close`, or until this process ends in any way: their first process goes with it, and with
that one every process, mount, interface and iptables rule in them.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from devcluster.clusters.run_folder import RunFolder
from devcluster.node import cgroups, first_process
from devcluster.node.cgroups import NodeCgroup
from devcluster.running.processes import ConditionTimeoutError, ManagedProcess, wait_until
from devcluster.running.servers import Startable


class Isolation(Startable):
    """Namespaces of one node. `name` tells nodes on this machine apart."""

    def __init__(self, folder: RunFolder, name: str) -> None:
        self._cgroup = NodeCgroup(name)
        self._name = name
        self._log = folder.log("namespaces")
        command = [
            sys.executable,
            "-m",
            "devcluster.node.first_process",
            name,
            str(folder.data("node")),
            str(self._log.with_name("pods")),
        ]
        self._process = ManagedProcess("namespaces", command, log_path=self._log, ready=self._is_ready)

    def start(self) -> None:
        """Makes them. Raises StartError."""
        cgroups.remove_left_over()
        self._process.start()

    def close(self) -> None:
        """Ends every process in them and removes what is left of them."""
        self._process.kill()
        with suppress(ConditionTimeoutError):
            # The kernel ends the processes of a PID namespace after its first one, not with it.
            wait_until(self._cgroup.remove, "the node's processes have ended")

    @property
    def first_pid(self) -> int:
        """The first process in them, by the id it has outside. Raises ProcessNotRunningError."""
        outer = self._process.pid
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    def client_command(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a client with the node's network, and otherwise as it would run here."""
        return ["nsenter", "--target", str(self.first_pid), "--net", "--", *command]

    def server_command(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a server inside: it is a process of the node in every respect."""
        return [sys.executable, "-m", "devcluster.node.enter", self._name, str(self.first_pid), *command]

    def _is_ready(self) -> bool:
        return first_process.READY in self._log.read_text().splitlines()
