"""The example in which all clients log in by SCRAM: users are created before brokers start, and passwords are only in
files."""

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from devcluster.filling.parts import Part
from tests.unit.chart.rendering import PROJECT, SELF_CONTAINED, Object, find_object, options_of, render

pytestmark = pytest.mark.needs(Part.HELM)

EXAMPLES: Final = PROJECT / "examples" / "helm"
VALUES: Final = ("--values", str(EXAMPLES / "secured-logins-values.yaml"))
STORES: Final = {"tls-combined.pem", "ca.crt"}


def files() -> dict[str, dict[str, str]]:
    """Return the Secrets of the example, by name."""
    documents = yaml.safe_load_all((EXAMPLES / "secured-logins-connection.yaml").read_text())
    return {each["metadata"]["name"]: each["stringData"] for each in documents}


def properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if line)


def brokers(objects: list[Object]) -> Object:
    spec: Object = find_object(objects, "StatefulSet", "kontroller-kafka")["spec"]["template"]["spec"]
    return spec


def login(jaas: str) -> tuple[str, str]:
    (name, password), *none = re.findall(r'username="([^"]+)" password="([^"]+)"', jaas)
    assert none == []
    return name, password


def test_who_logs_in_is_among_the_users_that_are_made() -> None:
    users = files()["kafka-users"]
    server = properties(files()["kafka-connection"]["server.properties"])
    listener = render(*VALUES, namespace="kafka")
    assert "--listen=SASL_SSL://0.0.0.0:9093" in str(listener)
    of_brokers = login(server["listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"])
    of_client = login(properties(files()["app-connection"]["client.properties"])["sasl.jaas.config"])
    assert dict([of_brokers, of_client]) == users
    assert server["super.users"] == f"User:{of_brokers[0]}"
    assert {value for name, value in server.items() if name.endswith(".location")} == STORES


def test_users_are_made_before_a_broker_starts_in_the_zookeeper_of_the_brokers() -> None:
    objects = render(*VALUES, namespace="kafka")
    spec = brokers(objects)
    (made,) = spec["initContainers"]
    assert made["args"][0] == "scram-users"
    given = dict(each.removeprefix("--").split("=", 1) for each in made["args"][1:])
    assert {f"--{name}" for name in given} <= options_of("scram-users")
    server = properties(files()["kafka-connection"]["server.properties"])
    assert given["zookeeper"] == server["zookeeper.connect"]
    assert given["mechanism"] == server["sasl.mechanism.inter.broker.protocol"]
    mounts = {each["mountPath"]: each["name"] for each in made["volumeMounts"]}
    assert mounts[str(Path(given["properties"]).parent)] == "connection"
    (volume,) = (each for each in spec["volumes"] if each["name"] == mounts[given["directory"]])
    assert volume["secret"]["secretName"] == "kafka-users"
    assert made["securityContext"] == spec["containers"][0]["securityContext"]
    assert "initContainers" not in brokers(render(*SELF_CONTAINED))


def test_no_object_of_the_chart_has_a_password() -> None:
    assert "change-me" not in str(render(*VALUES, namespace="kafka"))
