"""`python -m devcluster.node.first_process NAME DATA LOGS`: the first process of a node's namespaces, which live as
long.

It joins the node's cgroup, makes the namespaces and becomes their process 1. It prepares the environment that a kubelet
and a container runtime expect, prints `ready`, and from then on only reaps orphans.
"""

import os
import subprocess
import sys
from pathlib import Path

from devcluster.node.cgroups import NodeCgroup, hierarchies, mount_name

ADDRESS = "10.88.0.1"
BRIDGE = "cni0"
SERVICES = "10.0.0.0/24"
"""The range of services' addresses. The API server calls some services itself, such as webhooks.

kube-proxy only redirects packets that have a route, so a route to this range is needed.
"""
READY = "ready"

_NAMESPACES = ("--net", "--mount", "--pid", "--cgroup", "--uts", "--ipc")
_SETTINGS = {
    "net/ipv4/ip_forward": "1",
    "net/bridge/bridge-nf-call-iptables": "1",
}
# Folders at fixed paths are bound to the run's folder, so that nodes do not share them and nothing stays.
_STATE_FOLDERS = ("/var/lib/kubelet", "/var/lib/cni", "/var/log/containers")
_POD_LOGS = "/var/log/pods"


def main() -> None:
    if sys.argv[1] == "--inside":
        _prepare(Path(sys.argv[2]), Path(sys.argv[3]))
        print(READY, flush=True)
        _reap_for_ever()
    name, *folders = sys.argv[1:]
    cgroup = NodeCgroup(name)
    cgroup.make()
    cgroup.join()
    again = [sys.executable, "-m", "devcluster.node.first_process", "--inside", *folders]
    os.execvp("unshare", ["unshare", *_NAMESPACES, "--fork", "--kill-child", "--mount-proc", "--", *again])


def _prepare(data: Path, logs: Path) -> None:
    _run("hostname", "node")
    _run("mount", "-t", "sysfs", "sysfs", "/sys")
    _mount_cgroups()
    _run("mount", "-t", "tmpfs", "tmpfs", "/run")
    own_folders = {folder: data / "state" / folder.lstrip("/").replace("/", "-") for folder in _STATE_FOLDERS}
    for folder, own in {**own_folders, _POD_LOGS: logs}.items():
        own.mkdir(parents=True, exist_ok=True)
        Path(folder).mkdir(parents=True, exist_ok=True)
        _run("mount", "--bind", str(own), folder)
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    _run("ip", "address", "add", f"{ADDRESS}/16", "dev", BRIDGE)
    _run("ip", "link", "set", BRIDGE, "up")
    _run("ip", "route", "add", SERVICES, "dev", BRIDGE)
    for setting, value in _SETTINGS.items():
        Path("/proc/sys", setting).write_text(value)


def _mount_cgroups() -> None:
    """Mount the hierarchies as seen from the node's cgroup, which is the root in this cgroup namespace."""
    _run("mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup")
    for controllers, _path in hierarchies():
        folder = Path("/sys/fs/cgroup", mount_name(controllers))
        folder.mkdir()
        _run("mount", "-t", "cgroup", "-o", controllers, "cgroup", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _reap_for_ever() -> None:
    # Orphans of every namespaced process become children of this one.
    keeper = subprocess.Popen(["sleep", "infinity"])
    while True:
        pid, _status = os.wait()
        if pid == keeper.pid:
            raise SystemExit("the process that keeps the namespaces was killed")


if __name__ == "__main__":
    main()
