"""The connections that the network policies allow. Nothing enforces them in these tests; they show that selectors and
ports fit the pods."""

import json

import pytest

from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import COMPONENTS, SELF_CONTAINED, Object, find_object, render, workload

pytestmark = pytest.mark.needs(Part.HELM)

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


def policy(component: str, *values: str) -> Object:
    objects = render(*SELF_CONTAINED, *values)
    spec: Object = find_object(objects, "NetworkPolicy", f"kontroller-{component}")["spec"]
    return spec


def peers(spec: Object, port: str) -> list[Object] | None:
    """Return the peers that may connect to a port: empty if none may, None if all may."""
    rules = [each for each in spec["ingress"] if {"port": port} in each["ports"]]
    found: list[Object] | None = rules[0].get("from") if rules else []
    return found


def selects(selector: Object, labels: dict[str, str]) -> bool:
    """Return True if a label selector matches the labels."""
    wanted = selector.get("matchLabels", {}).items() <= labels.items()
    return wanted and all(labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", ()))


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_policy_is_about_the_component_s_pods_and_ports(component: str) -> None:
    template = workload(component)["template"]
    spec = policy(component, *EVERYBODY)
    assert spec["policyTypes"] == ["Ingress"]
    assert selects(spec["podSelector"], template["metadata"]["labels"])
    ports = {port["port"] for rule in spec["ingress"] for port in rule["ports"]}
    assert ports == {port["name"] for port in template["spec"]["containers"][0]["ports"]}


@pytest.mark.parametrize("values", [(), ("--set", "networkPolicy.clients=null,networkPolicy.monitoring=null")])
def test_without_peers_the_release_s_own_pods_may_use_kafka_and_nobody_may_read_metrics(
    values: tuple[str, ...],
) -> None:
    for component in ("kafka", "controller"):
        (own,) = peers(policy(component, *ON, *values), "kafka") or [{}]
        assert list(own) == ["podSelector"]
    for component in ("operator", "controller"):
        assert peers(policy(component, *ON, *values), "metrics") == []
    assert peers(policy("operator", *ON, *values), "liveness") is None


def test_an_empty_peer_is_everybody_also_beside_others() -> None:
    beside = ("--set-json", f"networkPolicy.clients={json.dumps([GATEWAYS, {}])}")
    for values in (EVERYBODY, (*EVERYBODY, *beside)):
        assert peers(policy("kafka", *values), "kafka") is None
        assert peers(policy("controller", *values), "kafka") is None
    for component in ("operator", "controller"):
        assert peers(policy(component, *EVERYBODY), "metrics") is None


def test_zookeeper_is_for_the_release_s_own_pods_whoever_else_may_connect() -> None:
    found = peers(policy("zookeeper", *EVERYBODY), "client")
    assert found is not None
    (only,) = found
    for component in COMPONENTS:
        assert selects(only["podSelector"], workload(component)["template"]["metadata"]["labels"])
    assert not selects(
        only["podSelector"], {"app.kubernetes.io/name": "kontroller", "app.kubernetes.io/instance": "kontroller"}
    )
    assert "namespaceSelector" not in only


def test_clients_and_monitoring_can_be_named_and_the_release_itself_stays_allowed() -> None:
    for component in ("kafka", "controller"):
        found = peers(policy(component, *RESTRICTED), "kafka")
        assert found is not None
        assert GATEWAYS in found
        (own,) = (each["podSelector"] for each in found if "podSelector" in each)
        for other in ("kafka", "controller", "operator"):
            assert selects(own, workload(other)["template"]["metadata"]["labels"])
    for component in ("operator", "controller"):
        assert peers(policy(component, *RESTRICTED), "metrics") == [PROMETHEUS]


def test_each_component_has_one_policy() -> None:
    for values in (ON, EVERYBODY, RESTRICTED):
        alarms = ("--set", "alarms.enabled=true")
        objects = [each for each in render(*SELF_CONTAINED, *values, *alarms) if each["kind"] == "NetworkPolicy"]
        assert len(objects) == len(COMPONENTS) + 1


NAME_SERVERS = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
API_SERVER = {"ports": [{"port": 443}, {"port": 6443}]}
ELSEWHERE = {"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}], "ports": [{"port": 9092}]}
LEAVING = (*ON, "--set", "networkPolicy.egress.enabled=true")


@pytest.mark.parametrize("component", COMPONENTS)
def test_pods_may_connect_to_their_release_to_name_servers_and_as_the_rules_say(component: str) -> None:
    more = ("--set-json", f"networkPolicy.egress.{component}={json.dumps([ELSEWHERE])}")
    spec = policy(component, *LEAVING, *more)
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    release, *others = spec["egress"]
    assert others == [NAME_SERVERS, ELSEWHERE]
    (peer,) = release["to"]
    for other in COMPONENTS:
        assert selects(peer["podSelector"], workload(other)["template"]["metadata"]["labels"])
    assert "ports" not in release


def test_the_operator_alone_may_reach_the_api_server_unless_the_rules_say_so() -> None:
    assert API_SERVER in policy("operator", *LEAVING)["egress"]
    for component in ("controller", "kafka", "zookeeper"):
        assert API_SERVER not in policy(component, *LEAVING)["egress"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("--set", "networkPolicy.egress.enabled=true"), r"set networkPolicy\.enabled=true too"),
        (
            (*LEAVING, "--set", "controller.zookeeper=zk:2181"),
            r"keeps controller from .*networkPolicy\.egress\.controller",
        ),
        ((*LEAVING, "--set", "kafka.enabled=false"), r"keeps controller from .*networkPolicy\.egress\.controller"),
        ((*LEAVING, "--set", "kafka.zookeeper=zk:2181"), r"keeps kafka from .*networkPolicy\.egress\.kafka"),
        (
            (*LEAVING, "--set", "controller.audit.syslog=udp://log:514"),
            r"keeps controller from .* controller\.audit\.syslog: .*networkPolicy\.egress\.controller",
        ),
        (
            (*LEAVING, "--set", "alarms.enabled=true,alarms.alertmanagers={http://alertmanager:9093}"),
            r"keeps alarms from .* alarms\.alertmanagers: .*networkPolicy\.egress\.alarms",
        ),
    ],
)
def test_policies_that_keep_a_component_from_its_servers_are_refused(values: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        render(*SELF_CONTAINED, *values)


def test_servers_of_others_can_be_named() -> None:
    rule = ("--set-json", f"networkPolicy.egress.controller={json.dumps([ELSEWHERE])}")
    assert ELSEWHERE in policy("controller", *LEAVING, "--set", "controller.zookeeper=zk:2181", *rule)["egress"]
