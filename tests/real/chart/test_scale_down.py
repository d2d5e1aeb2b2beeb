"""An upgrade to fewer brokers than in the API server first checks the replicas of the removed brokers."""

import json
from collections.abc import Iterator

import pytest
import yaml

from devcluster.clusters.kubernetes import KubernetesApi
from tests.unit.chart.rendering import (
    CHART,
    KUBERNETES,
    RELEASE_NAMESPACE,
    SELF_CONTAINED,
    Object,
    find_object,
    options_of,
    render,
)

NAME = "kontroller-drain-brokers-first"
FIVE = ("--set", "kafka.replicas=5,kafka.firstBrokerId=100")


@pytest.fixture(scope="module")
def five_brokers(api: KubernetesApi) -> Iterator[KubernetesApi]:
    brokers = find_object(render(*SELF_CONTAINED, *FIVE), "StatefulSet", "kontroller-kafka")
    api.kubectl("apply", "-f", "-", stdin=json.dumps(brokers))
    yield api
    api.kubectl("delete", "statefulset", "kontroller-kafka", "--namespace", RELEASE_NAMESPACE)


def jobs(api: KubernetesApi, *values: str) -> list[Object]:
    """Return the jobs of an upgrade, rendered over the objects of the API server."""
    where = ("--namespace", RELEASE_NAMESPACE, "--dry-run=server", *KUBERNETES)
    text = api.helm("template", "kontroller", CHART, *where, *SELF_CONTAINED, *FIVE, *values)
    return [each for each in yaml.safe_load_all(text) if each and each["metadata"]["name"] == NAME]


def test_an_upgrade_to_fewer_brokers_asks_those_that_would_end(five_brokers: KubernetesApi) -> None:
    (job,) = jobs(five_brokers, "--set", "kafka.replicas=3")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
    assert job["spec"]["backoffLimit"] == 0
    (container,) = job["spec"]["template"]["spec"]["containers"]
    command, options = container["args"][:2], container["args"][2:]
    assert options == [
        f"--bootstrap-server=kontroller-kafka.{RELEASE_NAMESPACE}.svc:9092",
        "--timeout-ms=60000",
        "--broker=103",
        "--broker=104",
    ]
    assert {option.split("=")[0] for option in options} <= options_of(*command)
    five_brokers.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=json.dumps(job))


def test_secured_brokers_are_asked_with_the_files_that_brokers_have(five_brokers: KubernetesApi) -> None:
    secured = "kafka.replicas=4,kafka.listenerName=SSL,controller.listenerName=SSL,kafka.connectionSecrets={brokers}"
    (job,) = jobs(five_brokers, "--set", f"{secured},controller.connectionSecrets={{brokers}}")
    pod = job["spec"]["template"]["spec"]
    assert "--properties=/etc/kontroller/connection/server.properties" in pod["containers"][0]["args"]
    assert "connection" in {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize(
    "values", ["kafka.replicas=5", "kafka.replicas=6", "kafka.replicas=1,kafka.scaleDownCheck.enabled=false"]
)
def test_nobody_is_asked_if_no_broker_would_end_or_nobody_wants_to_know(
    five_brokers: KubernetesApi, values: str
) -> None:
    assert jobs(five_brokers, "--set", values) == []
