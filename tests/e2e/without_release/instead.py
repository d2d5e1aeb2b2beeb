"""Another release than the one of the tests beside this folder, in its place and in its own namespace."""

import json

from devcluster.node.pods import PodCluster
from tests.e2e.release import Release


def instead(pods: PodCluster, namespace: str, values: str, *options: str) -> Release:
    """Uninstall the first release, make the namespace, and return the other release, which is not installed yet.

    Existing definitions keep their owner.
    """
    Release(pods).uninstall()
    are_there = "kafkatopics.kontroller.dev" in pods.kubernetes.kubectl("get", "crds", "--output", "name")
    pods.kubernetes.kubectl("create", "namespace", namespace)
    definitions = ("--set", f"crds.install={json.dumps(not are_there)}")
    return Release(pods, namespace=namespace, values=values, options=(*options, *definitions))
