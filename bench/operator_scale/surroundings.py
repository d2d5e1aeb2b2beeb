"""The servers around the operator: an API server with our definitions and roles, a ZooKeeper with a simulated cluster."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.operator_scale.paper_controller import PaperController
from devcluster.clusters.kontroller import OperatorProcess
from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import wait_until

NAMESPACE: Final = "kafka"
CLUSTER: Final = "paper"
PROJECT: Final = Path(__file__).resolve().parents[2]
_RELEASE: Final = "kontroller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Running servers. The measurement starts the operators."""

    folder: RunFolder
    kubernetes: KubernetesApi
    zookeeper: ZooKeeper
    controller: PaperController

    def operator(self, *, name: str, resync_interval_s: float) -> OperatorProcess:
        """Return an operator, not started, with exactly the rights that the chart gives it."""
        settings = {"KONTROLLER_RESYNC_INTERVAL_SECONDS": str(resync_interval_s)}
        return make_operator(self.folder, self.kubernetes, name=name, settings=settings)


@contextmanager
def surroundings(folder: RunFolder, *, zookeeper_heap_mb: int) -> Iterator[Surroundings]:
    """Start everything, with the namespace and a KafkaCluster in it; all of it ends with the block."""
    with (
        KubernetesApi(folder) as kubernetes,
        ZooKeeper(folder, heap_mb=zookeeper_heap_mb) as zookeeper,
        PaperController(zookeeper.connect) as controller,
    ):
        install(kubernetes, zookeeper.connect)
        yield Surroundings(folder=folder, kubernetes=kubernetes, zookeeper=zookeeper, controller=controller)


def install(kubernetes: KubernetesApi, connect: str) -> None:
    """Install the definitions, the chart's roles, and a KafkaCluster at a ZooKeeper, in their namespace."""
    kubernetes.kubectl("apply", "--server-side", "-f", str(PROJECT / "crds"))
    kubernetes.wait_until_established()
    kubernetes.kubectl("create", "namespace", NAMESPACE)
    values = ("--set", "crds.install=false", "--set", f"watchNamespaces={{{NAMESPACE}}}")
    chart = str(PROJECT / "charts" / _RELEASE)
    kubernetes.helm("install", _RELEASE, chart, "--no-hooks", "--namespace", NAMESPACE, *values)
    wait_until(lambda: _is_taken(kubernetes, connect), "the KafkaCluster is taken")


def make_operator(
    folder: RunFolder, kubernetes: KubernetesApi, *, name: str = "operator", settings: Mapping[str, str] | None = None
) -> OperatorProcess:
    """Return an operator, not started, with exactly the rights that the chart gives it."""
    kubeconfig = kubernetes.service_account_kubeconfig(NAMESPACE, f"{_RELEASE}-operator")
    return OperatorProcess(folder, kubeconfig, namespaces=[NAMESPACE], name=name, settings=settings)


def topic(number: int, partitions: int) -> dict[str, Any]:
    """Return the n-th KafkaTopic, as a user would write it."""
    return _object(
        "KafkaTopic",
        f"topic-{number:05}",
        {
            "clusterRef": {"name": CLUSTER},
            "partitions": partitions,
            "replicationFactor": 3,
            "config": {"retention.ms": "86400000", "min.insync.replicas": "2"},
        },
    )


def _is_taken(kubernetes: KubernetesApi, connect: str) -> bool:
    """Return True once the KafkaCluster is accepted: a definition is established a moment before its objects are
    served.
    """
    cluster = _object("KafkaCluster", CLUSTER, {"zookeeper": {"connect": connect}})
    try:
        kubernetes.kubectl("apply", "-f", "-", stdin=json.dumps(cluster))
    except CommandError as error:
        sys.stderr.write(f"not yet: {error}\n")
        return False
    return True


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "kontroller.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
