"""The node components: the kubelet, its container runtime with a network for pods, and kube-proxy."""

import json
from pathlib import Path

import yaml

from devcluster.building.binaries import node_binaries
from devcluster.building.toolchain import require
from devcluster.node.first_process import ADDRESS, BRIDGE

NODE_NAME = "node"
PAUSE_IMAGE = "docker.io/library/pause:1"
RUNTIME_SOCKET = "/run/containerd/containerd.sock"

_RUNTIME = """\
version = 2
root = "{data}/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{data}/cni"
"""

_NETWORK = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": BRIDGE,
            "isGateway": True,
            "ipMasq": True,
            # Without hairpin mode, a pod could not reach itself through its service.
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": "10.88.0.0/16", "rangeStart": "10.88.0.10"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


def write_configuration(data: Path) -> None:
    """Write the settings of the runtime and the kubelet."""
    runtime = _RUNTIME.format(data=data, socket=RUNTIME_SOCKET, pause=PAUSE_IMAGE)
    (data / "containerd.toml").write_text(runtime)
    (data / "cni").mkdir(exist_ok=True)
    (data / "cni" / "10-pods.conflist").write_text(json.dumps(_NETWORK))
    (data / "kubelet.yaml").write_text(yaml.safe_dump(_kubelet_settings()))


def container_runtime(data: Path) -> list[str]:
    """Return containerd's command line."""
    return [require("containerd"), "--config", str(data / "containerd.toml")]


def kubelet(data: Path, kubeconfig: Path) -> list[str]:
    """Return the kubelet's command line."""
    return [
        str(node_binaries() / "kubelet"),
        f"--kubeconfig={kubeconfig}",
        f"--config={data / 'kubelet.yaml'}",
        f"--node-ip={ADDRESS}",
        f"--hostname-override={NODE_NAME}",
    ]


def proxy(kubeconfig: Path) -> list[str]:
    """Return kube-proxy's command line."""
    return [
        str(node_binaries() / "kube-proxy"),
        f"--kubeconfig={kubeconfig}",
        "--proxy-mode=iptables",
        "--conntrack-max-per-core=0",
        f"--hostname-override={NODE_NAME}",
    ]


def _kubelet_settings() -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{RUNTIME_SOCKET}",
        "clusterDomain": "cluster.local",
        "clusterDNS": [ADDRESS],
        # Only the node's own pods, which we run, can reach the kubelet.
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        # Pods have no cgroup of their own here, and a kubelet that considers resizing one reads its limits and crashes.
        "featureGates": {"InPlacePodVerticalScaling": False},
        "enforceNodeAllocatable": [],
        "oomScoreAdj": 0,
        "failSwapOn": False,
        # A full disk of the machine is no reason to evict pods from a node that lives for minutes.
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "50Mi"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "maxPods": 50,
        "serializeImagePulls": False,
    }
