"""A network of its own for processes: a network namespace, and a mount namespace with its own `/etc/hosts` and name server.

A process that does nothing holds both and ends with this one, in whichever way: with it go the interfaces, rules and
mounts, which the rest of this machine never saw. Nothing has a name, so any number of them are side by side.
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
    """Why this machine lets us make no networks; None where it does. Installs what is missing, on Debian as root."""
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
    """Lives from `start` to `close`. Nobody has a name in it, and no name server answers, until it is told otherwise. No
    other one of the run folder has had its name."""

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
        """Makes it. Raises `StartError`."""
        self._holder.start()

    def close(self) -> None:
        """Takes it away; what runs in it goes on without a network."""
        self._holder.kill()

    @property
    def pid(self) -> int:
        """Of the process that holds it. Raises `ProcessNotRunningError`."""
        return self._holder.pid

    @property
    def entering(self) -> Sequence[str]:
        """What a command line begins with that is to run in it."""
        return ("nsenter", "--target", str(self.pid), "--net", "--mount", "--", *_ENDS_WITH_US)

    def run(self, *command: str) -> None:
        """Runs a command in it to its end. Raises `CalledProcessError`, with what it said."""
        subprocess.run([*self.entering, *command], check=True, capture_output=True, text=True)

    def know(self, names: Mapping[str, str]) -> None:
        """From now on these names have these addresses, and no other name has one but by the name server."""
        known = {"localhost": "127.0.0.1", **names}
        self._hosts.write_text("".join(f"{address} {name}\n" for name, address in known.items()))

    def ask(self, name_server: str | None) -> None:
        """From now on all other names are asked for at this address, patiently; None: nowhere, and they are not known."""
        patiently = f"nameserver {name_server}\noptions timeout:30 attempts:5\n"
        self._resolver.write_text(patiently if name_server else "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is in the network, with all threads and connections that it begins meanwhile; the files it sees are
        this machine's."""
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
