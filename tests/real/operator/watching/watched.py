"""An operator that watches objects without a cluster, and changes of the objects and their definitions."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from devcluster.clusters.kubernetes import CommandError, KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.ports import release_port, reserve_port
from devcluster.running.processes import wait_until
from tests.real.operator.operated import PROJECT, Objects, Operator, run_operator

NOWHERE = "127.0.0.1:1"
"""A ZooKeeper that does not exist: these tests are about objects."""
_DEFINITION = PROJECT / "crds" / "featuresets.yaml"


@contextmanager
def run_watching_operator(folder: RunFolder, api: KubernetesCluster) -> Iterator[Operator]:
    with ExitStack() as stack:
        port = reserve_port()
        stack.callback(release_port, port)
        settings = {"KONTROLLER_METRICS_PORT": str(port)}
        operator = stack.enter_context(run_operator(folder, api, env=settings))
        operator.metrics_port = port
        wait_until(lambda: operator.trouble() is None, "it is ready")
        yield operator


def a_topic(objects: Objects, name: str) -> None:
    objects.apply("KafkaTopic", name, {"partitions": 1, "replicationFactor": 1})


def is_seen(objects: Objects, name: str) -> bool:
    return bool(objects.condition("kafkatopic", name))


def remove_definition(api: KubernetesCluster) -> None:
    api.kubectl("delete", "-f", str(_DEFINITION), "--wait=true")


def restore_definition(api: KubernetesCluster) -> None:
    def is_applied() -> bool:
        try:
            api.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(_DEFINITION))
        except CommandError:  # the earlier one is being deleted
            return False
        return True

    wait_until(is_applied, "the definition is there")
    api.wait_until_established("featuresets.kontroller.dev")
