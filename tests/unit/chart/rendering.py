"""The chart as Helm renders it, without a cluster."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import typer
import yaml

from devcluster.building.binaries import KUBERNETES_VERSION
from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.programs import HELM
from kontroller.command_line import main as kontroller

PROJECT: Final = Path(__file__).parents[3]
CHART: Final = str(PROJECT / "charts" / "kontroller")
RELEASE_NAMESPACE: Final = "kontroller-system"
KUBERNETES: Final = ("--kube-version", KUBERNETES_VERSION)
COMPONENTS: Final = ("operator", "controller", "zookeeper", "kafka")

CONTROLLER_FOR_SOME: Final = "controller.enabled=true,controller.access.adminCidrs={10.0.0.0/8}"
"""A controller that only some addresses may ask for changes, because nobody logs in."""
CONTROLLER_ON: Final = ("--set", CONTROLLER_FOR_SOME, "--set", r"controller.zookeeper=zk-0:2181\,zk-1:2181/kafka")
SELF_CONTAINED: Final = ("--set", f"{CONTROLLER_FOR_SOME},zookeeper.enabled=true,kafka.enabled=true")
EVERYTHING: Final = (
    *SELF_CONTAINED,
    "--set",
    "history.enabled=true,history.serve.enabled=true,alarms.enabled=true,networkPolicy.enabled=true,monitoring.dashboard.enabled=true,"
    "controller.journal.token.create=true,kafka.scramUsers.secretName=users",
)
ALL_OF_IT: Final = (
    *EVERYTHING,
    "--set",
    "monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true,approvalPolicy.enabled=true,"
    "deletionGuard.enabled=true,webhook.enabled=true,webhook.certificate.certManager.enabled=true",
)
MAY_BE_NOTHING: Final = {"resources", "podSecurityContext", "securityContext", "labels"}
"""Values that have a default and are useful without it: resource limits, and contexts that OpenShift fills in."""

ECHO = """#!/bin/sh
printf "%s\\n" "$(basename "$0")" "$@" > "$ARGUMENTS"
printf "%s" "${KAFKA_OPTS:-}" > "$ARGUMENTS.kafka-opts"
"""

Object = dict[str, Any]


_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def helm(*arguments: str) -> str:
    """Return Helm's output; raise CommandError if Helm fails. Each command line runs once, so files that it names must
    not change."""
    folders = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "KUBECONFIG")
    done = subprocess.run(
        [str(HELM.path()), *arguments],
        env={**os.environ, **dict.fromkeys(folders, "/nowhere")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CommandError(f"helm {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@cache
def _render_json(*arguments: str) -> str:
    return json.dumps([each for each in yaml.load_all(helm(*arguments), _Loader) if each])


def render(*values: str, namespace: str = RELEASE_NAMESPACE, release: str = "kontroller") -> list[Object]:
    """Return the objects of the chart, with its hooks and tests."""
    objects: list[Object] = json.loads(
        _render_json("template", release, CHART, "--namespace", namespace, *KUBERNETES, *values)
    )
    return objects


def find_object(objects: list[Object], kind: str, name: str) -> Object:
    """The one object of that kind and name."""
    (found,) = (each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def pods(objects: list[Object]) -> Iterator[Object]:
    """Yield the pods of the objects, and the templates of pods."""
    for each in objects:
        match each["kind"]:
            case "Pod":
                yield each
            case "Deployment" | "StatefulSet" | "Job":
                yield each["spec"]["template"]
            case "CronJob":
                yield each["spec"]["jobTemplate"]["spec"]["template"]


def workload(component: str, *values: str) -> Object:
    """The spec of the Deployment or StatefulSet of a component, in a release with all components."""
    kind = "Deployment" if component == "operator" else "StatefulSet"
    spec: Object = find_object(render(*SELF_CONTAINED, *values), kind, f"kontroller-{component}")["spec"]
    return spec


def container(component: str, *values: str) -> Object:
    """The container of a component's pods."""
    found: Object = workload(component, *values)["template"]["spec"]["containers"][0]
    return found


def default_values() -> dict[str, Any]:
    """Return the values of the chart's own file."""
    found: dict[str, Any] = yaml.safe_load((Path(CHART) / "values.yaml").read_text())
    return found


def options_of(*words: str) -> set[str]:
    """The options of a `kontroller` command."""
    command = typer.main.get_command(kontroller)
    for word in words:
        assert isinstance(command, typer.core.TyperGroup)
        command = command.commands[word]
    return {option for parameter in command.params for option in parameter.opts}


def run_as_pod(command: Sequence[str], pod_name: str, folder: Path, variables: Mapping[str, str] = {}) -> list[str]:
    """Run a container's command with stub programs that only write down their arguments; return these."""
    for program in ("kontroller", "kafka-server-start.sh", "zookeeper-server-start.sh"):
        (folder / program).write_text(ECHO)
        (folder / program).chmod(0o755)
    arguments = folder / "arguments"
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "POD_NAME": pod_name, "ARGUMENTS": str(arguments)}
    subprocess.run(command, env={**environment, **variables}, check=True, timeout=30)
    return arguments.read_text().splitlines()
