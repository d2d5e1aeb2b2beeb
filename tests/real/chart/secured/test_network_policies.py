"""Who may connect to whom. Nothing enforces it here; that the selectors and ports fit the pods is what can be shown."""

import json

import pytest

from devcluster.clusters.kubernetes import KubernetesApi
from tests.real.chart.charts import COMPONENTS, SELF_CONTAINED, Object, dry_run, named, rendered, workload

ON = ("--set", "networkPolicy.enabled=true")
GATEWAYS = {"namespaceSelector": {"matchLabels": {"team": "gateways"}}}
PROMETHEUS = {"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}
EVERYBODY = (*ON, "--set-json", "networkPolicy.clients=[{}]", "--set-json", "networkPolicy.monitoring=[{}]")
RESTRICTED = (
    *ON,
    "--set-json",
    'networkPolicy.clients=[{"namespaceSelector":{"matchLabels":{"team":"gateways"}}}]',
    "--set-json",
    'networkPolicy.monitoring=[{"namespaceSelector":{"matchLabels":{"team":"monitoring"}}}]',
)


def policy(api: KubernetesApi, component: str, *values: str) -> Object:
    objects = rendered(api, *SELF_CONTAINED, *values)
    spec: Object = named(objects, "NetworkPolicy", f"kontroller-{component}")["spec"]
    return spec


def peers(spec: Object, port: str) -> list[Object] | None:
    """Who may connect to a port: empty where nobody may, None where everybody may."""
    rules = [each for each in spec["ingress"] if {"port": port} in each["ports"]]
    found: list[Object] | None = rules[0].get("from") if rules else []
    return found


def selects(selector: Object, labels: dict[str, str]) -> bool:
    """Whether a label selector takes labels."""
    wanted = selector.get("matchLabels", {}).items() <= labels.items()
    return wanted and all(labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", ()))


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_policy_is_about_the_component_s_pods_and_ports(api: KubernetesApi, component: str) -> None:
    template = workload(api, component)["template"]
    spec = policy(api, component, *EVERYBODY)
    assert spec["policyTypes"] == ["Ingress"]
    assert selects(spec["podSelector"], template["metadata"]["labels"])
    ports = {port["port"] for rule in spec["ingress"] for port in rule["ports"]}
    assert ports == {port["name"] for port in template["spec"]["containers"][0]["ports"]}


@pytest.mark.parametrize("values", [(), ("--set", "networkPolicy.clients=null,networkPolicy.monitoring=null")])
def test_without_peers_the_release_s_own_pods_may_use_kafka_and_nobody_may_read_metrics(
    api: KubernetesApi, values: tuple[str, ...]
) -> None:
    for component in ("kafka", "controller"):
        (own,) = peers(policy(api, component, *ON, *values), "kafka") or [{}]
        assert list(own) == ["podSelector"]
    for component in ("operator", "controller"):
        assert peers(policy(api, component, *ON, *values), "metrics") == []
    assert peers(policy(api, "operator", *ON, *values), "liveness") is None


def test_an_empty_peer_is_everybody_also_beside_others(api: KubernetesApi) -> None:
    beside = ("--set-json", f"networkPolicy.clients={json.dumps([GATEWAYS, {}])}")
    for values in (EVERYBODY, (*EVERYBODY, *beside)):
        assert peers(policy(api, "kafka", *values), "kafka") is None
        assert peers(policy(api, "controller", *values), "kafka") is None
    for component in ("operator", "controller"):
        assert peers(policy(api, component, *EVERYBODY), "metrics") is None


def test_zookeeper_is_for_the_release_s_own_pods_whoever_else_may_connect(api: KubernetesApi) -> None:
    found = peers(policy(api, "zookeeper", *EVERYBODY), "client")
    assert found is not None
    (only,) = found
    for component in COMPONENTS:
        assert selects(only["podSelector"], workload(api, component)["template"]["metadata"]["labels"])
    assert not selects(
        only["podSelector"], {"app.kubernetes.io/name": "kontroller", "app.kubernetes.io/instance": "kontroller"}
    )
    assert "namespaceSelector" not in only


def test_clients_and_monitoring_can_be_named_and_the_release_itself_stays_allowed(api: KubernetesApi) -> None:
    for component in ("kafka", "controller"):
        found = peers(policy(api, component, *RESTRICTED), "kafka")
        assert found is not None
        assert GATEWAYS in found
        (own,) = (each["podSelector"] for each in found if "podSelector" in each)
        for other in ("kafka", "controller", "operator"):
            assert selects(own, workload(api, other)["template"]["metadata"]["labels"])
    for component in ("operator", "controller"):
        assert peers(policy(api, component, *RESTRICTED), "metrics") == [PROMETHEUS]


def test_the_api_server_takes_the_policies(api: KubernetesApi) -> None:
    for values in (ON, EVERYBODY, RESTRICTED):
        alarms = ("--set", "alarms.enabled=true")
        objects = [each for each in rendered(api, *SELF_CONTAINED, *values, *alarms) if each["kind"] == "NetworkPolicy"]
        assert len(dry_run(api, objects)) == len(COMPONENTS) + 1
