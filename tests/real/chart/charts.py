"""The chart as Helm renders it, and what the tests of it ask again and again."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import typer
import yaml

from controller_admin.command_line import main as kontroller
from controller_operator.resources import KINDS
from devcluster.building.binaries import KUBERNETES_VERSION
from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from devcluster.running.processes import wait_until

PROJECT: Final = Path(__file__).parents[3]
CHART: Final = str(PROJECT / "charts" / "kontroller")
RELEASE_NAMESPACE: Final = "kontroller-system"
CRDS: Final = {kind.definition.crd_name for kind in KINDS}
COMPONENTS: Final = ("operator", "controller", "zookeeper", "kafka")

CONTROLLER_ON: Final = ("--set", "controller.enabled=true", "--set", r"controller.zookeeper=zk-0:2181\,zk-1:2181/kafka")
SELF_CONTAINED: Final = ("--set", "controller.enabled=true,zookeeper.enabled=true,kafka.enabled=true")
# Nothing runs the jobs here that Helm would wait for.
NO_JOBS: Final = ("--set", "apiCheck.enabled=false,releaseFinalizers.enabled=false")

ECHO = """#!/bin/sh
printf "%s\\n" "$(basename "$0")" "$@" > "$ARGUMENTS"
printf "%s" "${KAFKA_OPTS:-}" > "$ARGUMENTS.kafka-opts"
"""

Object = dict[str, Any]


def rendered(
    api: KubernetesApi, *values: str, namespace: str = RELEASE_NAMESPACE, release: str = "kontroller"
) -> list[Object]:
    """The objects of the chart, its hooks and tests among them."""
    here = ("--namespace", namespace, "--kube-version", KUBERNETES_VERSION)
    text = api.helm("template", release, CHART, *here, *values)
    return [each for each in yaml.safe_load_all(text) if each]


def named(objects: list[Object], kind: str, name: str) -> Object:
    """The one object of that kind and name."""
    (found,) = (each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def workload(api: KubernetesApi, component: str, *values: str) -> Object:
    """The spec of the Deployment or StatefulSet of a component, in a release with all components."""
    kind = "Deployment" if component == "operator" else "StatefulSet"
    spec: Object = named(rendered(api, *SELF_CONTAINED, *values), kind, f"kontroller-{component}")["spec"]
    return spec


def container(api: KubernetesApi, component: str, *values: str) -> Object:
    """The container of a component's pods."""
    found: Object = workload(api, component, *values)["template"]["spec"]["containers"][0]
    return found


@contextmanager
def installed(api: KubernetesApi, *values: str) -> Iterator[str]:
    """The chart installed with `values`; gives what helm said, and removes everything at the end."""
    yield api.helm("install", "kontroller", CHART, "--namespace", RELEASE_NAMESPACE, *NO_JOBS, *values)
    api.helm("uninstall", "kontroller", "--namespace", RELEASE_NAMESPACE, "--no-hooks")
    remove_definitions(api)


def remove_definitions(api: KubernetesApi) -> None:
    """Deletes the definitions and waits until they are gone."""
    api.kubectl("delete", "crd", "--ignore-not-found", "--wait=false", *CRDS)
    wait_until_no_definitions(api)


def wait_until_no_definitions(api: KubernetesApi) -> None:
    """Waits for definitions that are being deleted.

    When the API server meets one while it sets up its storage, it gives up and looks again only when the definition has
    changed: so they are changed."""

    def are_gone() -> bool:
        left = [each["metadata"]["name"] for each in api.get("crds")["items"]]
        with suppress(CommandError):  # gone meanwhile
            if left:
                api.kubectl("annotate", "crd", *left, "--overwrite", f"tests/looked-at={time.monotonic()}")
        return not left

    wait_until(are_gone, "the definitions are gone", deadline_s=60)


def dry_run(api: KubernetesApi, objects: list[Object], *arguments: str) -> list[str]:
    """What the API server says to each of the objects, in their order; raises CommandError where it refuses one."""
    stdin = "\n---\n".join(json.dumps(each) for each in objects)
    return api.kubectl(
        "create", "--dry-run=server", "--validate=strict", *arguments, "-f", "-", stdin=stdin
    ).splitlines()


def may(api: KubernetesApi, who: str, verb: str, resource: str, namespace: str, called: str = "") -> bool:
    """Whether `who` may; the resource is written as `name[.group][/subresource]`. `called`: with one of that name."""
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


def options_of(*words: str) -> set[str]:
    """The options of a `kontroller` command."""
    command = typer.main.get_command(kontroller)
    for word in words:
        assert isinstance(command, typer.core.TyperGroup)
        command = command.commands[word]
    return {option for parameter in command.params for option in parameter.opts}


def run_as_pod(command: Sequence[str], pod_name: str, folder: Path, variables: Mapping[str, str] = {}) -> list[str]:
    """Runs a container's command with programs that only write down what they were called with; returns that."""
    for program in ("kontroller", "kafka-server-start.sh", "zookeeper-server-start.sh"):
        (folder / program).write_text(ECHO)
        (folder / program).chmod(0o755)
    arguments = folder / "arguments"
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "POD_NAME": pod_name, "ARGUMENTS": str(arguments)}
    subprocess.run(command, env={**environment, **variables}, check=True, timeout=30)
    return arguments.read_text().splitlines()
