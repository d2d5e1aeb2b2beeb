"""A container without an engine, as strict as Kubernetes may be.

An image's archive is unpacked like by an engine. Commands run in it as its user, with its environment and a root file
system that is read-only except for /tmp.
"""

import gzip
import hashlib
import json
import os
import signal
import socket
import subprocess
import tarfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devcluster.images import ImageArchive
from devcluster.images.layers import Layer, unpack
from devcluster.running.processes import spawn

_ENTER = """\
set -e
root=$1 user=$2
shift 2
mount --bind -o ro "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
exec chroot --userspec="$user" --groups= "$root" /usr/bin/env -i "$@"
"""


class Image:
    """An image archive, unpacked below `folder`; `config` is its configuration."""

    def __init__(self, archive: ImageArchive, folder: Path) -> None:
        self.root = folder / "root"
        self._folder = folder
        with tarfile.open(archive.path) as file:
            file.extractall(folder, filter="data")
        (self.manifest,) = json.loads((folder / "manifest.json").read_text())
        self.config: dict[str, Any] = json.loads((folder / self.manifest["Config"]).read_text())
        self.diff_ids: list[str] = self.config["rootfs"]["diff_ids"]
        layers = [folder / name for name in self.manifest["Layers"]]
        unpack([Layer(path=path, diff_id="") for path in layers], self.root)
        self.layer_digests = [_digest(path) for path in layers]
        # An engine writes this file for each container; the network is this machine's.
        (self.root / "etc" / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")

    def command(self, *words: str) -> list[str]:
        """Return the command line that runs `words` in a container as its first process."""
        namespaces = ["--mount", "--propagation=private", "--pid", "--fork", "--kill-child"]
        settings = self.config["config"]
        enter = ["sh", "-c", _ENTER, "sh", os.fspath(self.root), settings["User"], *settings["Env"]]
        return ["unshare", *namespaces, *enter, *words]

    def run(self, *words: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; the caller checks the result."""
        return subprocess.run(self.command(*words), capture_output=True, text=True, check=False, timeout=timeout_s)

    def start(self, *words: str, log: Path) -> "Container":
        """Start a command that runs until the caller's block ends; it is the container."""
        with log.open("wb") as output:
            return Container(spawn(self.command(*words), stdin=subprocess.DEVNULL, stdout=output, stderr=output))


class Container:
    """A running container; if it still runs, it is killed at the end of a `with` block."""

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        self._process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A process that changed its user does not end with its parent. The parent waits for it, and ends then.
        if not self._signal(signal.SIGKILL):
            self._process.kill()
        self._process.wait()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def terminate(self) -> int:
        """Send SIGTERM to its first process, as Kubernetes does, and return the exit status."""
        self._signal(signal.SIGTERM)
        return self._process.wait(60)

    @property
    def first_process(self) -> int | None:
        """The id of the container's first process, seen from outside; None if it has ended."""
        if not self.is_running:
            return None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def _signal(self, number: signal.Signals) -> bool:
        """Send a signal to the first process; return False if there is none."""
        first = self.first_process
        if first is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(first, number)
        return True


def _digest(layer: Path) -> str:
    with gzip.open(layer) as content:
        return "sha256:" + hashlib.file_digest(content, "sha256").hexdigest()
