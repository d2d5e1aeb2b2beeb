"""A network for processes: a network namespace, and a mount namespace with its own `/etc/hosts` and name server.

An idle process holds both and ends with this one, in whatever way. Its interfaces, rules and mounts go with it, and the
rest of this machine never sees them. Namespaces have no names, so any number of them can exist side by side.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from devcluster.building.toolchain import BuildError, MissingToolError, require
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.processes import ManagedProcess
from devcluster.running.servers import Startable

_ENDS_WITH_US: Final = ("setpriv", "--pdeathsig", "KILL", "--")
_MAKE: Final = ("unshare", "--net", "--mount", "--")
_HOLD: Final = (
    'ip link set lo up && mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/resolv.conf && echo ready'
    " && exec setpriv --pdeathsig KILL -- sleep infinity"
)
_CLONE_NEWNET: Final = 0x40000000


def why_impossible() -> str | None:
    """Return the reason why this machine lets us make no networks, or None. Installs missing programs, on Debian as
    root.
    """
    if os.geteuid() != 0:
        return "networks of one's own need root"
    try:
        for program in ("ip", "iptables", "unshare", "nsenter"):
            require(program)
        tried = subprocess.run(
            [*_MAKE, "iptables", "-A", "FORWARD", "-m", "statistic", "--mode", "random", "--probability", "0.5"],
            capture_output=True,
            text=True,
            check=False,
        )
    except (MissingToolError, BuildError, OSError) as error:
        return f"networks of one's own are not possible: {error}"
    return f"networks of one's own are not possible: {tried.stderr.strip()}" if tried.returncode else None


class Namespace(Startable):
    """A namespace from `start` to `close`. It has no host names and no name server until `know` and `ask` set them.

    The name must be unique in the run folder.
    """

    def __init__(self, folder: RunFolder, name: str) -> None:
        self.name = name
        self._log = folder.log(f"machine-{name}")
        files = folder.data(f"machine-{name}")
        self._hosts, self._resolver = files / "hosts", files / "resolv.conf"
        self.know({})
        self.ask(None)
        command = [*_MAKE, "sh", "-c", _HOLD, "sh", str(self._hosts), str(self._resolver)]
        self._holder = ManagedProcess(f"machine-{name}", command, log_path=self._log, ready=self._is_ready)

    def start(self) -> None:
        """Make the namespace. Raises `StartError`."""
        self._holder.start()

    def close(self) -> None:
        """Remove the namespace; processes in it continue without a network."""
        self._holder.kill()

    @property
    def pid(self) -> int:
        """The id of the process that holds it. Raises `ProcessNotRunningError`."""
        return self._holder.pid

    @property
    def entering(self) -> Sequence[str]:
        """The beginning of a command line that runs in the namespace."""
        return ("nsenter", "--target", str(self.pid), "--net", "--mount", "--", *_ENDS_WITH_US)

    def run(self, *command: str) -> None:
        """Run a command in the namespace to its end. Raises `CalledProcessError`, with its output."""
        subprocess.run([*self.entering, *command], check=True, capture_output=True, text=True)

    def know(self, names: Mapping[str, str]) -> None:
        """Set the addresses of these host names. All other names need the name server."""
        known = {"localhost": "127.0.0.1", **names}
        self._hosts.write_text("".join(f"{address} {name}\n" for name, address in known.items()))

    def ask(self, name_server: str | None) -> None:
        """Set the name server for all other names, with long timeouts; None: there is none, so they are unknown."""
        patiently = f"nameserver {name_server}\noptions timeout:30 attempts:5\n"
        self._resolver.write_text(patiently if name_server else "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Move this thread into the network, with the threads and connections that it starts in the block.

        It still sees the files of this machine.
        """
        with Path("/proc/thread-self/ns/net").open() as outside, Path(f"/proc/{self.pid}/ns/net").open() as inside:
            _enter(inside.fileno())
            try:
                yield
            finally:
                _enter(outside.fileno())

    def _is_ready(self) -> bool:
        return "ready" in self._log.read_text().splitlines()


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "this thread cannot enter a network")
