"""The control plane of a node: etcd, the API server, the controller manager, the scheduler, and the cluster's DNS."""

import json
from pathlib import Path

from devcluster.building.binaries import coredns_binary, node_binaries
from devcluster.clusters.kubernetes import (
    CERTIFICATE,
    KEY,
    api_server_command,
    etcd_command,
    kubeconfig,
    make_credentials,
    write_private,
)
from devcluster.node.first_process import ADDRESS

_ETCD_PORT, _ETCD_PEER_PORT, _API_PORT = 2379, 2380, 6443
_KUBECONFIG = "admin.json"

_DNS_ZONES = """\
.:53 {{
    bind {address}
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig} devcluster
        pods insecure
        ttl 5
    }}
}}
"""


def write_configuration(data: Path) -> Path:
    """Write the configuration of the servers and an administrator's kubeconfig; returns the path of the kubeconfig."""
    token = make_credentials(data)
    path = data / _KUBECONFIG
    cluster = {"server": f"https://{ADDRESS}:{_API_PORT}", "certificate-authority": str(data / CERTIFICATE)}
    write_private(path, json.dumps(kubeconfig(cluster, token, "default")))
    (data / "Corefile").write_text(_DNS_ZONES.format(address=ADDRESS, kubeconfig=path))
    return path


def etcd(data: Path) -> list[str]:
    """Return etcd's command line."""
    return etcd_command(data, clients=_ETCD_PORT, peers=_ETCD_PEER_PORT)


def api_server(data: Path) -> list[str]:
    """Return the API server's command line; it listens on the node's address."""
    return [
        *api_server_command(data, etcd_port=_ETCD_PORT),
        f"--secure-port={_API_PORT}",
        f"--advertise-address={ADDRESS}",
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
    ]


def controller_manager(data: Path) -> list[str]:
    """Return the command line of the controllers of Deployments, StatefulSets, Jobs, ..."""
    return [
        str(node_binaries() / "kube-controller-manager"),
        f"--kubeconfig={data / _KUBECONFIG}",
        f"--service-account-private-key-file={data / KEY}",
        f"--root-ca-file={data / CERTIFICATE}",
        "--leader-elect=false",
    ]


def scheduler(data: Path) -> list[str]:
    """Return the scheduler's command line."""
    return [str(node_binaries() / "kube-scheduler"), f"--kubeconfig={data / _KUBECONFIG}", "--leader-elect=false"]


def dns(data: Path) -> list[str]:
    """Return the command line of the DNS server for the names of services and of StatefulSets' pods."""
    return [str(coredns_binary()), "-conf", str(data / "Corefile")]
