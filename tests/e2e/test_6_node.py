"""Our own node leaves nothing on the machine, however it ends, and another one beside it is not disturbed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.clusters.run_folder import run_folder
from devcluster.node.cgroups import remove_left_over
from devcluster.node.node import Node
from devcluster.node.requirements import find_missing_for_node
from devcluster.running.processes import spawn, wait_until

MISSING = find_missing_for_node()

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(300),
    pytest.mark.skipif(MISSING is not None, reason=f"no node of our own here: {MISSING}"),
]

HOLD_A_NODE = """
import time
from devcluster.node.node import Node
from devcluster.clusters.run_folder import run_folder
with run_folder("node") as folder, Node(folder):
    print(folder.path, flush=True)
    time.sleep(600)
"""


def traces(run: str) -> list[str]:
    """Return processes, mounts, interfaces and firewall rules that a node has left on the machine."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            processes.append(folder.joinpath("cmdline").read_text())
        except OSError:
            continue
    found = [line for line in processes if run in line]
    found += [line for line in Path("/proc/self/mounts").read_text().splitlines() if run in line]
    interfaces = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    found += [line for line in interfaces.splitlines() if line.startswith(("cni", "veth"))]
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
    return found + [line for line in rules.splitlines() if "KUBE" in line]


def cgroups(run: str) -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"*/**/kontroller-node-{Path(run).name}"))


def no_cgroups_left(run: str) -> bool:
    remove_left_over()
    return not cgroups(run)


def test_a_node_that_was_killed_leaves_nothing_and_another_beside_it_goes_on() -> None:
    with run_folder("node") as folder, Node(folder) as other:
        held = spawn([sys.executable, "-c", HOLD_A_NODE], stdout=subprocess.PIPE, text=True)
        assert held.stdout is not None
        run = held.stdout.readline().strip()
        assert run
        assert cgroups(run)
        os.kill(held.pid, signal.SIGKILL)
        held.wait()
        wait_until(lambda: not traces(run), "nothing of the killed node is left on the machine")
        wait_until(lambda: no_cgroups_left(run), "the next run can remove what the kernel keeps")
        assert "Ready" in other.kubectl("get", "nodes")
