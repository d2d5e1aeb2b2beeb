"""SIGKILL for what runs in a pod: from within nobody can kill its first process, and a deleted pod ends in order."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from devcluster.node.pods import PodCluster
from tests.e2e.release import Release

_KILL = """
import os, pathlib, signal, sys
for process in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        if f"POD_NAME={sys.argv[1]}" in (process / "environ").read_text().split("\\0"):
            os.kill(int(process.name), signal.SIGKILL)
    except OSError:
        continue
"""


@contextmanager
def killed(pods: PodCluster, release: Release, pod: str) -> Iterator[None]:
    """Kills what runs in a pod that knows its name by the variable POD_NAME."""
    release.apply(_killer(f"{pods.images}kontroller:0.1.0", pod))
    try:
        yield
    finally:
        release.kubectl("delete", "pod", "killer", "--grace-period=0", "--force")


def _killer(image: str, pod: str) -> dict[str, Any]:
    container = {
        "name": "killer",
        "image": image,
        "command": ["/opt/kontroller/bin/python", "-c", _KILL, pod],
        "securityContext": {"privileged": True, "runAsUser": 0},
    }
    spec = {"hostPID": True, "restartPolicy": "Never", "enableServiceLinks": False, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "killer"}, "spec": spec}
