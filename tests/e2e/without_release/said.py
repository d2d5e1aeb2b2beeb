"""Everything that a release shows without access to its Secrets: logs, command lines, objects, metrics, journals."""

import json
from collections.abc import Iterator
from typing import Any, Final

from devcluster.clusters.kubernetes import CommandError
from tests.e2e.release import NAME, Release

PYTHON: Final = "/opt/kontroller/bin/python"
_PROCESSES: Final = "for each in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do cat $each 2>/dev/null || true; done"
_METRICS_PORTS: Final = {"controller": 9404, "operator": 9405}
_KINDS: Final = "pods,services,endpoints,configmaps,statefulsets,deployments,jobs,events,leases,kontroller"


def everything_said(release: Release) -> dict[str, str]:
    """Return all texts, by their source."""
    return dict(_everything(release))


def _everything(release: Release) -> Iterator[tuple[str, str]]:
    for pod in release.get("pods")["items"]:
        yield from _list_pod_logs(release, pod)
    yield "objects", json.dumps(release.get(_KINDS))
    for what in ("notes", "values"):
        yield f"helm {what}", release.kubernetes.helm("get", what, NAME, "--namespace", release.namespace)
    yield "journal", json.dumps(release.journal())


def _list_pod_logs(release: Release, pod: dict[str, Any]) -> Iterator[tuple[str, str]]:
    name, status = pod["metadata"]["name"], pod["status"]
    for each in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
        yield from _logs(release, name, each["name"], has_restarted=each["restartCount"] > 0)
    if status["phase"] == "Running":
        yield f"processes {name}", release.kubectl("exec", name, "--", "sh", "-c", _PROCESSES)
    component = pod["metadata"].get("labels", {}).get("app.kubernetes.io/component")
    if port := _METRICS_PORTS.get(component):
        script = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{port}/metrics').read().decode())"
        yield f"metrics {name}", release.kubectl("exec", name, "--", PYTHON, "-c", script)


def _logs(release: Release, pod: str, container: str, *, has_restarted: bool) -> Iterator[tuple[str, str]]:
    yield f"log {pod} {container}", release.kubectl("logs", pod, "--container", container)
    if has_restarted:
        try:
            yield f"log {pod} before", release.kubectl("logs", pod, "--container", container, "--previous")
        except CommandError:
            return  # the runtime has removed it
