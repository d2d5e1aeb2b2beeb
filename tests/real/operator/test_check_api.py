"""`kontroller check api` with a real API server."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from controller_operator.resources import KINDS
from devcluster.clusters.kontroller import run_command
from devcluster.clusters.kubernetes import KubernetesCluster

PROJECT = Path(__file__).parents[3]
NAMESPACE = "test-check"


@pytest.fixture
def api(kubernetes_api: KubernetesCluster) -> KubernetesCluster:
    """An API server with the committed definitions, and a service account without rights."""
    kubernetes_api.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(PROJECT / "crds"))
    for kind, name in (("Namespace", NAMESPACE), ("ServiceAccount", "nobody")):
        described = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
        arguments = () if kind == "Namespace" else ("--namespace", NAMESPACE)
        kubernetes_api.kubectl("apply", "-f", "-", *arguments, stdin=json.dumps(described))
    return kubernetes_api


def check(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, *arguments: str, timeout_s: int = 60
) -> subprocess.CompletedProcess[str]:
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(kubeconfig))
    return run_command("check", "api", "--timeout-ms", str(timeout_s * 1000), *arguments, timeout_s=timeout_s + 60)


def test_the_definitions_are_found_and_nothing_is_created(
    api: KubernetesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = check(monkeypatch, api.kubeconfig, "--namespace", NAMESPACE)
    assert checked.returncode == 0, checked
    assert all(kind.definition.kind in checked.stdout for kind in KINDS)
    assert api.get("kafkatopics", "--namespace", NAMESPACE)["items"] == []


def test_missing_rights_and_namespaces_are_reported(
    api: KubernetesCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nobody = api.service_account_kubeconfig(NAMESPACE, "nobody")
    forbidden = check(monkeypatch, nobody, "--namespace", NAMESPACE, timeout_s=5)
    assert forbidden.returncode == 1
    assert "allow this service account to create kafkatopics in namespace test-check" in forbidden.stderr
    nowhere = check(monkeypatch, api.kubeconfig, "--namespace", "not-there", timeout_s=5)
    assert (nowhere.returncode, "namespace not-there does not exist" in nowhere.stderr) == (1, True), nowhere
    (tmp_path / "kubeconfig").write_text("nonsense")
    unusable = check(monkeypatch, tmp_path / "kubeconfig", timeout_s=5)
    assert unusable.returncode == 1
    assert "set KUBECONFIG to one" in unusable.stderr
    assert "Traceback" not in unusable.stderr
