"""SIGKILL for the processes of a pod: its first process cannot be killed from within, and a deleted pod ends
gracefully.
"""

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
def kill_pod(pods: PodCluster, release: Release, pod: str) -> Iterator[None]:
    """Kill the processes of a pod that has its name in the variable POD_NAME."""
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
