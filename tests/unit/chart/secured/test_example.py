"""Brokers, ZooKeeper and controllers that speak TLS: the example of it fits together, and secrets are files of the pods."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest
import yaml

from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import (
    PROJECT,
    SELF_CONTAINED,
    Object,
    container,
    find_object,
    options_of,
    render,
    run_as_pod,
    workload,
)

pytestmark = pytest.mark.needs(Part.HELM)

EXAMPLES: Final = PROJECT / "examples" / "helm"
SECURED: Final = ("--values", str(EXAMPLES / "secured-values.yaml"))
FILES: Final = "/etc/kontroller/connection"
FILE: Final = f"--properties={FILES}/server.properties"
STORES: Final = {"tls-combined.pem", "ca.crt"}
"""The keys of the Secrets of certificates."""


def render_example(*values: str) -> list[Object]:
    """The objects of the example, in the namespace that it names."""
    return render(*SECURED, *values, namespace="kafka")


def example(name: str) -> list[Object]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def connection() -> dict[str, dict[str, str]]:
    """Return the properties of the example's Secret, by file."""
    (secret,) = example("secured-connection.yaml")
    return {name: properties(text) for name, text in secret["stringData"].items()}


def properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if line)


def pods(objects: list[Object]) -> dict[str, Object]:
    """The specs of the pods of each component."""
    kinds = {"StatefulSet": ("controller", "zookeeper", "kafka"), "Deployment": ("operator",)}
    return {
        component: find_object(objects, kind, f"kontroller-{component}")["spec"]["template"]["spec"]
        for kind, components in kinds.items()
        for component in components
    }


def secrets(pod: Object) -> set[str]:
    """The names of the Secrets that a pod mounts."""
    volumes = pod["volumes"]
    projected = {
        source["secret"]["name"] for each in volumes if "projected" in each for source in each["projected"]["sources"]
    }
    return projected | {each["secret"]["secretName"] for each in volumes if "secret" in each}


def test_the_example_s_certificates_have_the_names_of_all_pods_and_are_mounted_where_they_are_needed() -> None:
    certificates = {
        each["spec"]["secretName"]: each["spec"]
        for each in example("secured-certificates.yaml")[1:]
        if "secretName" in each["spec"]
    }
    mounted = {component: secrets(pod) for component, pod in pods(render_example()).items()}
    assert mounted == {
        "zookeeper": {"zookeeper-tls"},
        "kafka": {"kafka-connection", "kafka-tls"},
        "operator": {"kafka-connection", "kafka-tls"},
        "controller": {"kafka-connection", "kafka-tls", "kontroller-controller-journal-token"},
    }

    def find_uncovered(secret: str, component: str) -> list[str]:
        service = f"kontroller-{component}"
        names = [f"{service}-{number}.{service}.kafka.svc" for number in range(3)]
        patterns: Iterable[str] = certificates[secret]["dnsNames"]
        return [name for name in names if not any(fnmatchcase(name, pattern) for pattern in patterns)]

    for secret, component in (("kafka-tls", "kafka"), ("kafka-tls", "controller"), ("zookeeper-tls", "zookeeper")):
        assert find_uncovered(secret, component) == []
    assert connection()["server.properties"]["super.users"] == f"User:CN={certificates['kafka-tls']['commonName']}"
    for secret in ("kafka-tls", "zookeeper-tls"):
        assert certificates[secret]["additionalOutputFormats"] == [{"type": "CombinedPEM"}]


def test_the_example_s_files_name_what_is_beside_them_and_the_chart_s_own_zookeeper() -> None:
    files = connection()
    for told in files.values():
        assert {value for name, value in told.items() if name.endswith(".location")} == STORES
    (argument,) = (
        each
        for each in pods(render_example())["controller"]["containers"][0]["args"]
        if each.startswith("--zookeeper=")
    )
    assert argument == f"--zookeeper={files['server.properties']['zookeeper.connect']}"


def test_a_broker_has_what_is_secret_from_a_file_and_the_chart_s_settings_go_before_it(tmp_path: Path) -> None:
    objects = render_example()
    (tmp_path / "config").mkdir()
    config = find_object(objects, "ConfigMap", "kontroller-kafka")["data"]["server.properties"]
    (tmp_path / "config" / "server.properties").write_text(config)
    (tmp_path / "connection").mkdir()
    (tmp_path / "connection" / "server.properties").write_text("ssl.key.password=secret\nbroker.id=9\nlisteners=A://:1")
    script = [
        part.replace("/etc/kafka/", f"{tmp_path}/config/")
        .replace(FILES, f"{tmp_path}/connection")
        .replace("/tmp/server.properties", f"{tmp_path}/made.properties")
        for part in pods(objects)["kafka"]["containers"][0]["command"]
    ]
    run_as_pod(script, "kontroller-kafka-0", tmp_path)
    made = properties((tmp_path / "made.properties").read_text())
    assert (made["ssl.key.password"], made["broker.id"], made["listeners"]) == ("secret", "1", "SSL://:9092")
    assert made["advertised.listeners"] == "SSL://kontroller-kafka-0.kontroller-kafka.kafka.svc:9092"
    assert (tmp_path / "made.properties").stat().st_mode & 0o077 == 0


def test_what_asks_the_brokers_finds_how_in_the_file_that_they_have(tmp_path: Path) -> None:
    objects = render_example()
    pod = pods(objects)["kafka"]["containers"][0]
    asked = {
        "drain": run_as_pod(pod["lifecycle"]["preStop"]["exec"]["command"], "kontroller-kafka-0", tmp_path),
        "ready": run_as_pod(pod["readinessProbe"]["exec"]["command"], "kontroller-kafka-0", tmp_path),
    }
    for command, words in asked.items():
        assert words[1] == command
        assert FILE in words
        assert "--properties" in options_of(command)
    test = find_object(objects, "Pod", "kontroller-test-cluster")["spec"]
    assert FILE in test["containers"][0]["args"]
    assert "--properties" in options_of("check", "cluster")
    for each in (pod, test["containers"][0]):
        assert {"name": "connection", "mountPath": FILES, "readOnly": True} in each["volumeMounts"]
    assert secrets(test) == {"kafka-connection", "kafka-tls"}


def test_zookeeper_with_tls_is_open_to_its_own_pod_alone() -> None:
    objects = render_example()
    config = properties(find_object(objects, "ConfigMap", "kontroller-zookeeper")["data"]["zoo.cfg"])
    assert (config["clientPort"], config["clientPortAddress"]) == ("2181", "127.0.0.1")
    assert (config["secureClientPort"], config["ssl.clientAuth"], config["sslQuorum"]) == ("2281", "need", "true")
    (mount,) = (each for each in pods(objects)["zookeeper"]["containers"][0]["volumeMounts"] if each["name"] == "tls")
    stores = {value for name, value in config.items() if name.endswith("Store.location")}
    assert stores == {f"{mount['mountPath']}/{name}" for name in STORES}
    ports = {each["name"]: each["containerPort"] for each in pods(objects)["zookeeper"]["containers"][0]["ports"]}
    assert ports == {"client": 2281, "peer": 2888, "election": 3888}
    changed = render_example("--set", r"zookeeper.config.ssl\.clientAuth=none")
    assert "ssl.clientAuth=none" in find_object(changed, "ConfigMap", "kontroller-zookeeper")["data"]["zoo.cfg"]


def test_without_secrets_nothing_speaks_tls() -> None:
    zookeeper = container("zookeeper")
    assert {"name": "client", "containerPort": 2181} in zookeeper["ports"]
    for component in ("kafka", "zookeeper", "controller"):
        text = str(workload(component)).lower()
        assert [word for word in ("tls", "ssl", "2281", "kontroller/connection", "--properties") if word in text] == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("kafka.listenerName=SSL,controller.listenerName=SSL", "no Secret secures it: name Secrets"),
        ("kafka.listenerName=SSL,kafka.connectionSecrets={a}", "set controller.listenerName=SSL"),
        ("controller.listenerName=SSL", "set controller.listenerName=PLAINTEXT"),
        (r"zookeeper.tls.secretName=a,zookeeper.config.secureClientPort=1", "may not set secureClientPort"),
        ("kafka.listenerName=", "/kafka/listenerName"),
        ("operator.connectionSecrets[0]=", "/operator/connectionSecrets/0"),
    ],
)
def test_values_that_do_not_fit_are_refused(values: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render(*SELF_CONTAINED, "--set", values)
