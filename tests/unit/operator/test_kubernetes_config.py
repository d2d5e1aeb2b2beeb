"""The default namespace: that of the context in the kubeconfig."""

from pathlib import Path

import pytest
import yaml

from controller_operator.kubernetes.api_server import current_namespace


def kubeconfig(folder: Path, **namespaces: str | None) -> Path:
    """A kubeconfig with a context for each namespace; the first is the current one."""
    contexts = [
        {"name": name, "context": {"cluster": "c", "user": "u", **({"namespace": namespace} if namespace else {})}}
        for name, namespace in namespaces.items()
    ]
    path = folder / "config"
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    content = {"kind": "Config", "clusters": [cluster], "users": [{"name": "u", "user": {}}], "contexts": contexts}
    path.write_text(yaml.safe_dump({**content, "current-context": next(iter(namespaces))}))
    return path


@pytest.mark.parametrize(("context", "namespace"), [(None, "kafka"), ("a", "kafka"), ("b", "shop"), ("c", "default")])
def test_it_is_that_of_the_context(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, context: str | None, namespace: str
) -> None:
    path = kubeconfig(tmp_path, a="kafka", b="shop", c=None)
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    assert current_namespace(context) == namespace


@pytest.mark.parametrize("content", ["", "nonsense", "{", "contexts: 3"])
def test_without_a_usable_kubeconfig_it_is_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    assert current_namespace() == "default"


def test_in_a_pod_it_is_the_pods_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("of-the-pod\n")
    monkeypatch.setattr("controller_operator.kubernetes.api_server._NAMESPACE_OF_POD", tmp_path / "namespace")
    assert current_namespace() == "of-the-pod"
