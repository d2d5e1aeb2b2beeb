"""The chart's ValidatingWebhookConfiguration, for a webhook on this machine."""

from base64 import b64encode
from typing import Any

import yaml

from devcluster.building.binaries import KUBERNETES_VERSION
from devcluster.clusters.certificates import CertificateFiles
from devcluster.clusters.kubernetes import KubernetesCluster
from tests.real.operator.operated import NAMESPACE, PROJECT, RELEASE


def make_configuration(
    api: KubernetesCluster, port: int, certificate: CertificateFiles, *, failure_policy: str = "Ignore"
) -> dict[str, Any]:
    """Return the chart's configuration with another address, because nothing here serves a Service."""
    values = {
        "webhook.enabled": "true",
        "webhook.failurePolicy": failure_policy,
        "webhook.certificate.secretName": "unused",
        "webhook.certificate.caBundle": b64encode(certificate.certificate.read_bytes()).decode(),
        "watchNamespaces": f"{{{NAMESPACE}}}",
    }
    given = [argument for name, value in values.items() for argument in ("--set", f"{name}={value}")]
    where = ("--namespace", NAMESPACE, "--kube-version", KUBERNETES_VERSION)
    chart = (str(PROJECT / "charts" / RELEASE), *where, "--show-only", "templates/webhook.yaml")
    (found,) = (
        each
        for each in yaml.safe_load_all(api.helm("template", RELEASE, *chart, *given))
        if each["kind"] == "ValidatingWebhookConfiguration"
    )
    for webhook in found["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{path}"
    configuration: dict[str, Any] = found
    return configuration
