"""The namespaces of a node, and the command lines that run processes in them.

They exist from `start` to `close`, or until this process ends in any way. Their first process ends with it, and with
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
    """The namespaces of one node. `name` tells nodes on this machine apart."""

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
        """Make the namespaces. Raises StartError."""
        cgroups.remove_left_over()
        self._process.start()

    def close(self) -> None:
        """End every process in the namespaces and remove their cgroups."""
        self._process.kill()
        with suppress(ConditionTimeoutError):
            # The kernel ends the processes of a PID namespace after its first one, not with it.
            wait_until(self._cgroup.remove, "the node's processes have ended")

    @property
    def first_pid(self) -> int:
        """The id, outside the namespaces, of their first process. Raises ProcessNotRunningError."""
        outer = self._process.pid
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    def client_command(self, command: Sequence[str]) -> list[str]:
        """Return the command line that runs a client in the node's network, and otherwise as outside."""
        return ["nsenter", "--target", str(self.first_pid), "--net", "--", *command]

    def server_command(self, command: Sequence[str]) -> list[str]:
        """Return the command line that runs a server inside, as a process of the node in every respect."""
        return [sys.executable, "-m", "devcluster.node.enter", self._name, str(self.first_pid), *command]

    def _is_ready(self) -> bool:
        return first_process.READY in self._log.read_text().splitlines()
