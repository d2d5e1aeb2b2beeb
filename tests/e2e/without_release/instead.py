"""Another release than that of the tests beside this folder, in its place and in a namespace of its own."""

import json

from devcluster.node.pods import PodCluster
from tests.e2e.release import Release


def instead(pods: PodCluster, namespace: str, values: str, *options: str) -> Release:
    """Uninstalls the one, makes the namespace, and returns the other, which is not installed yet. Definitions that are
    there stay whose they are."""
    Release(pods).uninstall()
    are_there = "kafkatopics.kontroller.dev" in pods.kubernetes.kubectl("get", "crds", "--output", "name")
    pods.kubernetes.kubectl("create", "namespace", namespace)
    definitions = ("--set", f"crds.install={json.dumps(not are_there)}")
    return Release(pods, namespace=namespace, values=values, options=(*options, *definitions))
