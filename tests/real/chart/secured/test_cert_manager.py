"""The objects of the examples and the chart for cert-manager: it accepts them, and makes the Secrets that pods mount."""

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from devcluster.building import cert_manager
from devcluster.building.toolchain import run
from devcluster.clusters.kubernetes import KubernetesApi
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.ports import release_port, reserve_port
from devcluster.running.processes import ManagedProcess, wait_until
from tests.real.chart.charts import dry_run, wait_until_no_definitions
from tests.unit.chart.rendering import PROJECT, Object, render

EXAMPLES: Final = PROJECT / "examples" / "helm"
CERTIFICATES: Final = EXAMPLES / "secured-certificates.yaml"
SIGNED: Final = {"kafka-tls", "zookeeper-tls"}
WEBHOOK: Final = "webhook.enabled=true,webhook.certificate.certManager.enabled=true"
SILENCE_S: Final = 120.0


@pytest.fixture
def definitions(api: KubernetesApi) -> Iterator[None]:
    """cert-manager's definitions, which this API server does not have for other tests."""
    made = cert_manager.definitions()
    names = [str(each["metadata"]["name"]) for each in made]  # type: ignore[index]  # of YAML
    api.kubectl("apply", "--server-side", "-f", "-", stdin="\n---\n".join(map(json.dumps, made)))
    api.wait_until_established(*names)
    yield
    api.kubectl("delete", "crd", "--wait=false", *names)
    wait_until_no_definitions(api)


@pytest.fixture
def signing(api: KubernetesApi, definitions: None, servers_folder: RunFolder) -> Iterator[None]:
    """cert-manager's controller beside the API server."""
    port = reserve_port()
    command = [
        str(cert_manager.controller_binary()),
        f"--kubeconfig={api.kubeconfig}",
        "--feature-gates=AdditionalCertificateOutputFormats=true",
        "--leader-election-namespace=audit",
        "--cluster-resource-namespace=audit",
        f"--metrics-listen-address=127.0.0.1:{port}",
    ]
    process = ManagedProcess("cert-manager", command, log_path=servers_folder.log("cert-manager"), ready=lambda: True)
    process.start()
    yield
    process.stop()
    release_port(port)


def secrets(api: KubernetesApi) -> dict[str, dict[str, str]]:
    """Return the contents of the namespace's Secrets, by name."""
    found: list[Object] = api.get("secrets", "--namespace", "payments")["items"]
    return {
        each["metadata"]["name"]: {key: b64decode(data).decode() for key, data in each.get("data", {}).items()}
        for each in found
    }


def test_it_takes_what_the_example_and_the_webhook_ask_for(api: KubernetesApi, definitions: None) -> None:
    asked = [*yaml.safe_load_all(CERTIFICATES.read_text())]
    asked += [each for each in render("--set", WEBHOOK) if "cert-manager" in each["apiVersion"]]
    assert {each["kind"] for each in asked} == {"Issuer", "Certificate"}
    for each in asked:
        each["metadata"].pop("namespace", None)
    assert len(dry_run(api, asked, "--namespace", "payments")) == len(asked)


@pytest.mark.timeout(1800)
@pytest.mark.nightly("building cert-manager takes minutes")
def test_what_it_signs_for_the_example_is_what_pods_mount(api: KubernetesApi, signing: None, tmp_path: Path) -> None:
    api.kubectl("apply", "--namespace", "payments", "--filename", str(CERTIFICATES))
    wait_until(lambda: secrets(api).keys() >= SIGNED, "both certificates are signed", silence_s=SILENCE_S)
    for name in SIGNED:
        made = secrets(api)[name]
        wanted: dict[str, Any] = next(
            each["spec"]
            for each in yaml.safe_load_all(CERTIFICATES.read_text())
            if each["spec"].get("secretName") == name
        )
        assert {"ca.crt", "tls-combined.pem"} <= made.keys()
        assert made["tls-combined.pem"].startswith("-----BEGIN PRIVATE KEY-----"), "PKCS 8, as Java reads it"
        store, authority = (tmp_path / key for key in ("tls-combined.pem", "ca.crt"))
        for file in (store, authority):
            file.write_text(made[file.name])
        run(["openssl", "verify", "-CAfile", str(authority), str(store)], what="verifying")
        shown = ("-noout", "-subject", "-nameopt", "RFC2253", "-ext", "subjectAltName")
        said = run(["openssl", "x509", "-in", str(store), *shown], what="reading the certificate")
        assert said.splitlines()[0] == f"subject=CN={wanted['commonName']}"
        assert sorted(said.splitlines()[2].strip().split(", ")) == sorted(f"DNS:{each}" for each in wanted["dnsNames"])
