"""HTTPS and access for the ports of metrics and journals: processes, probes, Prometheus and readers fit together."""

import pytest

from controller_core.process.settings import ControllerProcessSettings
from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import EVERYTHING, RELEASE_NAMESPACE, Object, find_object, render

pytestmark = pytest.mark.needs(Part.HELM)

MONITOR = ("--set", "monitoring.serviceMonitor.enabled=true,controller.journal.token.create=false")
HTTPS = (
    "--set",
    "monitoring.http.certificateSecret=web,monitoring.http.clientCaSecret=ca,monitoring.http.tokenSecret=key",
)
WORKLOADS = {"controller": "StatefulSet", "operator": "Deployment", "alarms": "Deployment", "reports": "Deployment"}
FILES = {
    "certificate": "/etc/kontroller/metrics-certificate/tls.crt",
    "key": "/etc/kontroller/metrics-certificate/tls.key",
    "client-ca": "/etc/kontroller/metrics-client-ca/ca.crt",
    "token-file": "/etc/kontroller/metrics-token/token",
}


def pod_of(component: str, *values: str) -> Object:
    workload = find_object(render(*EVERYTHING, *values), WORKLOADS[component], f"kontroller-{component}")
    return dict(workload["spec"]["template"]["spec"])


@pytest.mark.parametrize("component", WORKLOADS)
def test_each_process_has_the_files_of_the_secrets(component: str) -> None:
    pod = pod_of(component, *MONITOR, *HTTPS)
    (container,) = pod["containers"]
    options = {f"--metrics-{name}={file}" for name, file in FILES.items()}
    assert options <= set(container["args"])
    assert {option.partition("=")[0].strip("-").replace("-", "_") for option in options} <= set(
        ControllerProcessSettings.model_fields
    )
    secrets = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    mounts = {each["mountPath"]: secrets.get(each["name"]) for each in container["volumeMounts"]}
    assert [mounts[file.rpartition("/")[0]] for file in FILES.values()] == ["web", "web", "ca", "key"]
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("liveness", "readiness")]
    assert [probe.get("scheme") for probe in probes] == ([None] * 2 if component == "operator" else ["HTTPS"] * 2)


@pytest.mark.parametrize("component", WORKLOADS)
def test_prometheus_has_what_it_needs(component: str) -> None:
    def endpoint(*values: str) -> Object:
        monitor = find_object(render(*EVERYTHING, *MONITOR, *values), "ServiceMonitor", f"kontroller-{component}")
        return dict(monitor["spec"]["endpoints"][0])

    assert endpoint() == {"port": "metrics", "interval": "30s"}
    secured = endpoint(*HTTPS)
    assert secured["scheme"] == "https"
    assert secured["tlsConfig"] == {
        "ca": {"secret": {"name": "web", "key": "ca.crt"}},
        "serverName": f"kontroller-{component}.{RELEASE_NAMESPACE}.svc",
    }
    assert secured["authorization"] == {"credentials": {"name": "key", "key": "token"}}
    own = endpoint(*HTTPS, "--set", "monitoring.serviceMonitor.tlsConfig.insecureSkipVerify=true")
    assert own["tlsConfig"] == {"insecureSkipVerify": True}


def test_alarms_and_history_read_the_journals_by_https_and_show_the_token() -> None:
    objects = render(*EVERYTHING, *MONITOR, *HTTPS)
    job = find_object(objects, "CronJob", "kontroller-history")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for pod in (pod_of("alarms", *MONITOR, *HTTPS), job):
        containers = [*pod.get("initContainers", []), *pod["containers"]]
        (container,) = [
            each for each in containers if any(argument.startswith("--journal=") for argument in each["args"])
        ]
        journals = [each.partition("=")[2] for each in container["args"] if each.startswith("--journal=")]
        assert journals
        assert all(journal.startswith("https://kontroller-controller-") for journal in journals)
        tokens = {f"--journal-token-file={journal}=/etc/kontroller/journal-token/token" for journal in journals}
        assert {*tokens, "--journal-ca=/etc/kontroller/journal-ca/ca.crt"} <= set(container["args"])
        volumes = {each["name"]: each.get("secret", {}).get("secretName") for each in pod["volumes"]}
        assert (volumes["journal-ca"], volumes["journal-token"]) == ("web", "key")
        assert {"journal-ca", "journal-token"} <= {each["name"] for each in container["volumeMounts"]}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("monitoring.http.clientCaSecret=ca", "needs monitoring.http.certificateSecret"),
        ("monitoring.http.clientCaSecret=ca,monitoring.http.certificateSecret=web", "set monitoring.http.tokenSecret"),
    ],
)
def test_values_that_do_not_fit_together_are_refused(values: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        render(*EVERYTHING, *MONITOR, "--set", values)
