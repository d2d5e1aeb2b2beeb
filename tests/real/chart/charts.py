"""Helpers of the chart's tests for a real API server."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from controller_operator.resources import KINDS
from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from devcluster.running.processes import wait_until
from tests.unit.chart.rendering import CHART, RELEASE_NAMESPACE, Object

CRDS: Final = {kind.definition.crd_name for kind in KINDS}
# Nothing here runs the jobs that Helm would wait for.
NO_JOBS: Final = ("--set", "apiCheck.enabled=false,releaseFinalizers.enabled=false")


@contextmanager
def install_chart(api: KubernetesApi, *values: str) -> Iterator[str]:
    """Install the chart with `values` and yield helm's output; remove everything at the end.

    As the job that is left out would, wait until the API server serves the definitions.
    """
    notes = api.helm("install", "kontroller", CHART, "--namespace", RELEASE_NAMESPACE, *NO_JOBS, *values)
    api.wait_until_established()
    yield notes
    api.helm("uninstall", "kontroller", "--namespace", RELEASE_NAMESPACE, "--no-hooks")
    remove_definitions(api)


def remove_definitions(api: KubernetesApi) -> None:
    """Delete the definitions and wait until they are gone."""
    api.kubectl("delete", "crd", "--ignore-not-found", "--wait=false", *CRDS)
    wait_until_no_definitions(api)


def wait_until_no_definitions(api: KubernetesApi) -> None:
    """Wait for definitions that are being deleted.

    If the API server meets one while it sets up its storage, it gives up until the definition changes. So this changes
    them.
    """

    def are_gone() -> bool:
        left = [each["metadata"]["name"] for each in api.get("crds")["items"]]
        with suppress(CommandError):  # gone in between
            if left:
                api.kubectl("annotate", "crd", *left, "--overwrite", f"tests/looked-at={time.monotonic()}")
        return not left

    wait_until(are_gone, "the definitions are gone")


def dry_run(api: KubernetesApi, objects: list[Object], *arguments: str) -> list[str]:
    """Return the API server's answer for each of the objects, in order. Raises CommandError if it refuses one."""
    stdin = "\n---\n".join(json.dumps(each) for each in objects)
    return api.kubectl(
        "create", "--dry-run=server", "--validate=strict", *arguments, "-f", "-", stdin=stdin
    ).splitlines()


def may(api: KubernetesApi, who: str, verb: str, resource: str, namespace: str, called: str = "") -> bool:
    """Return True if `who` has a right; the resource is `name[.group][/subresource]`. `called`: the name of one object."""
    whole, _, subresource = resource.partition("/")
    name, _, group = whole.partition(".")
    attributes = {"verb": verb, "group": group, "resource": name, "subresource": subresource, "namespace": namespace}
    attributes |= {"name": called}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": who, "resourceAttributes": attributes},
    }
    answer = json.loads(api.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(review)))
    allowed: bool = answer["status"]["allowed"]
    return allowed


def wait_until_may(api: KubernetesApi, who: str, verb: str, resource: str, namespace: str, called: str = "") -> None:
    """Wait until `who` has a right: the API server takes a moment to learn of new roles and bindings."""
    wait_until(lambda: may(api, who, verb, resource, namespace, called), f"{who} may {verb} {resource} in {namespace}")
