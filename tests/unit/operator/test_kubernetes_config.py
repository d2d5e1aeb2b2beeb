"""The API server and the default namespace: those that kubectl would use."""

from pathlib import Path
from typing import Final

import pytest
import yaml

from controller_operator.kubernetes import api_server
from controller_operator.kubernetes.api_server import NoKubernetes, current_namespace, load_configuration

POD: Final = "https://10.96.0.1:443"


def kubeconfig(path: Path, **namespaces: str | None) -> str:
    """A kubeconfig with a context for each namespace, and a cluster of its name; the first is the current one."""
    contexts = [
        {"name": name, "context": {"cluster": name, "user": "u", **({"namespace": namespace} if namespace else {})}}
        for name, namespace in namespaces.items()
    ]
    clusters = [{"name": name, "cluster": {"server": f"https://{name}.example:6443"}} for name in namespaces]
    content = {"kind": "Config", "clusters": clusters, "users": [{"name": "u", "user": {}}], "contexts": contexts}
    path.write_text(yaml.safe_dump({**content, "current-context": next(iter(namespaces))}))
    return str(path)


@pytest.fixture(autouse=True)
def no_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))


@pytest.fixture
def in_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Has what Kubernetes gives to a container."""
    for name, content in (("token", "t"), ("ca.crt", "c"), ("namespace", "of-the-pod\n")):
        (tmp_path / name).write_text(content)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    library = "kubernetes.aio.config.incluster_config"
    monkeypatch.setattr(f"{library}.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(f"{library}.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setattr(api_server, "_NAMESPACE_OF_POD", tmp_path / "namespace")


@pytest.mark.parametrize(("context", "namespace"), [(None, "kafka"), ("a", "kafka"), ("b", "shop"), ("c", "default")])
def test_it_is_that_of_the_context(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, context: str | None, namespace: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "config", a="kafka", b="shop", c=None))
    assert current_namespace(context) == namespace


@pytest.mark.parametrize("content", ["", "nonsense", "{", "contexts: 3"])
async def test_an_unusable_kubeconfig_has_the_default_namespace_and_no_api_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert current_namespace() == "default"
    with pytest.raises(NoKubernetes, match="set KUBECONFIG"):
        await load_configuration()


async def test_a_pod_without_a_kubeconfig_uses_its_service_account_and_namespace(in_pod: None) -> None:
    assert (await load_configuration()).host == POD
    assert current_namespace() == "of-the-pod"


async def test_a_pod_with_a_kubeconfig_uses_that_as_kubectl_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_pod: None
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "config", prod="payments", test=None))
    assert (await load_configuration()).host == "https://prod.example:6443"
    assert current_namespace() == "payments"
    assert current_namespace("test") == "of-the-pod"


async def test_an_empty_kubeconfig_variable_stands_for_the_file_in_the_home_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_pod: None
) -> None:
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (await load_configuration()).host == POD
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path / ".kube" / "config", home="mine")
    assert (await load_configuration()).host == "https://home.example:6443"
    assert current_namespace() == "mine"


async def test_the_first_of_several_kubeconfigs_names_the_current_context(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = kubeconfig(tmp_path / "first", a="kafka"), kubeconfig(tmp_path / "second", b="shop")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'absent'}:{first}:{second}")
    assert (await load_configuration()).host == "https://a.example:6443"
    assert (current_namespace(), current_namespace("b")) == ("kafka", "shop")
