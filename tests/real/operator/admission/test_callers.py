"""With an authority of client certificates the webhook answers the API server that shows one, and nobody else."""

import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from devcluster.clusters.certificates import Authority, CertificateFiles, make_certificate
from devcluster.clusters.kubernetes import CommandError, KubernetesApi, write_private
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.ports import accepts, release_port, reserve_port
from devcluster.running.processes import wait_until
from tests.real.operator.admission.configuration import make_configuration
from tests.real.operator.operated import NAMESPACE, Objects, Operator, operate_namespace, run_operator

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

NOBODY = "127.0.0.1:1"
"""The KafkaCluster needs no server: its list of namespaces is judged before."""
TOPIC: dict[str, Any] = {"partitions": 1, "replicationFactor": 1}


@dataclass(frozen=True, kw_only=True)
class Known:
    """A webhook that knows its callers."""

    objects: Objects
    operator: Operator
    certificate: CertificateFiles
    authority: Authority
    port: int

    def ask(self, shown: CertificateFiles | None) -> int:
        """Ask as somebody else; return the status of the answer."""
        context = ssl.create_default_context(cafile=self.certificate.certificate)
        if shown is not None:
            context.load_cert_chain(shown.certificate, shown.key)
        connection = HTTPSConnection("127.0.0.1", self.port, context=context, timeout=30)
        connection.request("POST", "/validate", body=b"{}")
        status = connection.getresponse().status
        connection.close()
        return status


@pytest.fixture(scope="module")
def known(servers_folder: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    """Run an API server of its own, because a certificate for webhooks is an option of its process."""
    folder = tmp_path_factory.mktemp("callers")
    authority, certificate = Authority(folder), make_certificate(folder, "IP:127.0.0.1")
    port = reserve_port()
    option = f"--admission-control-config-file={_configure_plugin(folder, authority.issue('api-server'))}"
    settings = {
        "KONTROLLER_WEBHOOK": f"https://127.0.0.1:{port}",
        "KONTROLLER_WEBHOOK_CERTIFICATE": str(certificate.certificate),
        "KONTROLLER_WEBHOOK_KEY": str(certificate.key),
        "KONTROLLER_WEBHOOK_CLIENT_CA": str(authority.certificate),
        "KONTROLLER_WEBHOOK_CLIENT_NAME": "api-server",
    }
    try:
        with (
            KubernetesApi(servers_folder, name="kubernetes-callers", options=(option,)) as api,
            operate_namespace(api, NOBODY, allowedNamespaces=[{"namespace": "elsewhere"}]) as objects,
            run_operator(servers_folder, api, env=settings) as operator,
        ):
            wait_until(lambda: accepts(port), "the webhook listens")
            configuration = make_configuration(api, port, certificate, failure_policy="Fail")
            api.kubectl("apply", "-f", "-", stdin=json.dumps(configuration))
            yield Known(objects=objects, operator=operator, certificate=certificate, authority=authority, port=port)
            name = configuration["metadata"]["name"]
            api.kubectl("delete", "validatingwebhookconfiguration", name)
    finally:
        release_port(port)


def _configure_plugin(folder: Path, shown: CertificateFiles) -> Path:
    """Write the configuration that makes an API server show a certificate to every webhook; return its path."""
    user = {"client-certificate": str(shown.certificate), "client-key": str(shown.key)}
    kubeconfig = folder / "webhooks.json"
    write_private(
        kubeconfig, json.dumps({"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]})
    )
    plugin = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(kubeconfig),
    }
    file = folder / "admission.json"
    write_private(
        file,
        json.dumps({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": "ValidatingAdmissionWebhook", "configuration": plugin}],
        }),
    )  # fmt: skip
    return file


def _is_refused(known: Known) -> str:
    """Return the refusal of an object; empty until the webhook's configuration is in force."""
    try:
        known.objects.apply("KafkaTopic", "probe", TOPIC)
    except CommandError as error:
        return str(error)
    known.objects.delete("kafkatopic", "probe")
    return ""


def test_the_api_server_is_answered_with_all_details(known: Known) -> None:
    wait_until(lambda: bool(_is_refused(known)), "the webhook is in force")
    refusal = _is_refused(known)
    assert "denied the request: NamespaceNotAllowed" in refusal
    assert f"KafkaCluster {NAMESPACE}/demo" in refusal


def test_callers_without_the_certificate_are_refused_and_logged(known: Known) -> None:
    assert known.ask(None) == 403
    assert known.ask(known.authority.issue("somebody")) == 403
    assert known.ask(known.authority.issue("api-server")) == 400
    wait_until(lambda: "shows no client certificate" in known.operator.log(), "the log says so")
