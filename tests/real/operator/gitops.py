"""The GitOps examples as the tools use them: apply, health, and the fields that must not change."""

import json
from pathlib import Path
from typing import Any

import yaml

from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.health import Health, judge

EXAMPLES = Path(__file__).parents[3] / "examples" / "gitops"
CHECKS = EXAMPLES / "argocd" / "health"
MANAGER = "gitops"


def expressions() -> dict[str, dict[str, str]]:
    """Return the healthCheckExprs of the Flux example, by kind."""
    documents = yaml.safe_load_all((EXAMPLES / "flux" / "kafka.yaml").read_text())
    entries = [entry for each in documents for entry in each["spec"].get("healthCheckExprs", ())]
    return {entry["kind"]: {name: entry[name] for name in ("current", "inProgress", "failed")} for entry in entries}


def health_of(resource: dict[str, Any]) -> Health:
    """Return the health that the tools give an object, with the checks of the examples."""
    kind = resource["kind"]
    return judge(resource, lua=(CHECKS / kind / "health.lua").read_text(), expressions=expressions()[kind])


def apply(api: KubernetesCluster, folder: Path) -> list[dict[str, Any]]:
    """Apply a folder as Argo CD (ServerSideApply=true) and Flux do; returns the objects."""
    printed = api.kubectl("apply", "--server-side", "--field-manager", MANAGER, "-k", str(folder), "-o", "json")
    answer = json.loads(printed)
    return list(answer["items"]) if answer["kind"] == "List" else [answer]


def differences(api: KubernetesCluster, folder: Path) -> str:
    """Return the changes that applying the folder would make, as in `kubectl diff`; empty if there are none."""
    return api.kubectl("diff", "--server-side", "--field-manager", MANAGER, "-k", str(folder))


def find_stable_parts(api: KubernetesCluster, applied: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an object that must not change if nothing changes in Git."""
    where = applied["metadata"]
    found = api.get(applied["kind"], where["name"], "--namespace", where["namespace"], "--show-managed-fields")
    fields = [each for each in found["metadata"]["managedFields"] if each.get("subresource") != "status"]
    return {
        "spec": found["spec"],
        "generation": found["metadata"]["generation"],
        "managed fields": fields,
        "owners of the spec": [each["manager"] for each in fields if "f:spec" in each["fieldsV1"]],
    }
