"""The objects for Prometheus and Grafana: they exist on request, select the right things, and alerts say what to do."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from scripts.runbook import FILE, SOURCE, file, runbook
from tests.unit.chart.rendering import (
    CONTROLLER_FOR_SOME,
    EVERYTHING,
    RELEASE_NAMESPACE,
    SELF_CONTAINED,
    Object,
    find_object,
    render,
)

pytestmark = pytest.mark.needs(Part.HELM)

ALL_ON = ("--set", "monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true")
RUNBOOK = runbook(SOURCE.read_text())
SELECTOR = re.compile(r"kontroller_\w+\{([^}]*)\}|\bup\{([^}]*)\}")


def rules(*values: str) -> list[Object]:
    spec = find_object(render(*ALL_ON, *values), "PrometheusRule", "kontroller")["spec"]
    return [rule for group in spec["groups"] for rule in group["rules"]]


def test_nothing_of_it_is_there_unless_asked_for() -> None:
    kinds = {each["kind"] for each in render(*SELF_CONTAINED)}
    assert {"ServiceMonitor", "PrometheusRule", "NetworkPolicy"}.isdisjoint(kinds)
    assert "kontroller-dashboard" not in str(render(*SELF_CONTAINED))


@pytest.mark.parametrize("component", ["operator", "controller", "alarms", "reports"])
def test_the_monitor_finds_the_service_and_its_port(component: str) -> None:
    more = "alarms.enabled=true,history.enabled=true,history.serve.enabled=true"
    objects = render(*SELF_CONTAINED, *ALL_ON, "--set", more)
    monitor = find_object(objects, "ServiceMonitor", f"kontroller-{component}")["spec"]
    labels = monitor["selector"]["matchLabels"].items()
    services = [each for each in objects if each["kind"] == "Service" and labels <= each["metadata"]["labels"].items()]
    (service,) = services
    assert monitor["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_every_alert_says_what_it_is_what_to_do_and_where_to_read_on() -> None:
    alerts = rules(*SELF_CONTAINED)
    assert len({rule["alert"] for rule in alerts}) == len(alerts)
    for rule in alerts:
        said = rule["annotations"]
        assert re.fullmatch(r"Kontroller[A-Za-z]+", rule["alert"])
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert said["summary"].endswith(".")
        assert len(said["description"]) > 60
        assert "Means." in said["runbook"]
        assert "{{" not in said["runbook"], "Prometheus would take it for a template"


def test_alerts_have_links_only_to_a_page_that_exists() -> None:
    assert [rule["alert"] for rule in rules(*EVERYTHING) if "runbook_url" in rule["annotations"]] == []
    page = "https://wiki.example/kontroller/operations.md"
    headings = re.findall(r"^### (\w+)$", SOURCE.read_text(), re.MULTILINE)
    linked = rules(*EVERYTHING, "--set", f"monitoring.prometheusRule.runbookUrl={page}")
    assert linked
    for rule in linked:
        url, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert url == page
        assert anchor in {heading.lower() for heading in headings}


@pytest.mark.parametrize("path", ["docs/operations.md", "https://wiki.example/page#alerts"])
def test_a_link_that_leads_nowhere_is_refused(path: str) -> None:
    with pytest.raises(CommandError, match="/monitoring/prometheusRule/runbookUrl"):
        rules("--set", f"monitoring.prometheusRule.runbookUrl={path}")


def test_the_commands_of_a_runbook_are_about_this_release() -> None:
    texts = {rule["alert"]: rule["annotations"]["runbook"] for rule in rules(*EVERYTHING)}
    command = "kubectl --namespace kafka delete pod kontroller-controller-0"
    assert command in RUNBOOK["KontrollerControllerMissing"]
    ours = command.replace("kafka", RELEASE_NAMESPACE)
    assert ours in texts["KontrollerControllerMissing"]
    named_otherwise = {
        rule["alert"]: rule["annotations"]["runbook"]
        for group in find_object(
            render(*ALL_ON, *EVERYTHING, "--set", "fullnameOverride=kontroller-kafka"),
            "PrometheusRule",
            "kontroller-kafka",
        )["spec"]["groups"]
        for rule in group["rules"]
    }
    assert (
        ours.replace("kontroller-controller", "kontroller-kafka-controller")
        in named_otherwise["KontrollerControllerMissing"]
    )


def test_the_chart_s_runbook_is_that_of_the_operations() -> None:
    assert FILE.read_text() == file(), "stale: run `make runbook`"
    assert {rule["alert"] for rule in rules(*EVERYTHING)} == RUNBOOK.keys()


def test_alerts_look_at_this_release_alone() -> None:
    services = {"kontroller-operator", "kontroller-controller"}
    for rule in rules(*SELF_CONTAINED):
        selectors = ["".join(found) for found in SELECTOR.findall(rule["expr"])]
        assert selectors, rule["expr"]
        for selector in selectors:
            assert f'namespace="{RELEASE_NAMESPACE}"' in selector
            assert any(f'job="{service}"' in selector for service in services)


def test_a_watch_that_does_not_run_is_missed() -> None:
    alarms = ("--set", "alarms.enabled=true")
    missed = {rule["alert"]: rule for rule in rules(*SELF_CONTAINED, *alarms)}["KontrollerWatchDown"]
    service = find_object(render(*SELF_CONTAINED, *alarms), "Service", "kontroller-alarms")["metadata"]
    wanted = f'up{{namespace="{service["namespace"]}",job="{service["name"]}"}}'
    assert wanted in missed["expr"]
    assert "KontrollerWatchDown" not in {rule["alert"] for rule in rules(*SELF_CONTAINED)}


@pytest.mark.parametrize("journal", ["kontroller_journal", "kontroller_journal_topic"])
def test_a_failing_journal_is_noticed_in_its_folder_and_in_its_topic(journal: str) -> None:
    expression = {rule["alert"]: rule["expr"] for rule in rules(*SELF_CONTAINED)}["KontrollerJournalFailing"]
    assert f"{journal}_failing{{" in expression
    assert f"{journal}_gaps_total{{" in expression


def test_what_does_not_run_has_no_alerts() -> None:
    assert {"KontrollerNoController", "KontrollerBrokerMissing"}.isdisjoint(rule["alert"] for rule in rules())
    without = rules("--set", f"operator.enabled=false,{CONTROLLER_FOR_SOME},controller.zookeeper=zk:2181")
    assert "KontrollerOperatorDown" not in {rule["alert"] for rule in without}
    assert "KontrollerNoController" in {rule["alert"] for rule in without}
    assert "KontrollerJournalFailing" in {rule["alert"] for rule in without}
    unrecorded = rules(*SELF_CONTAINED, "--set", "controller.journal.enabled=false")
    assert "KontrollerJournalFailing" not in {rule["alert"] for rule in unrecorded}


def test_the_dashboard_is_a_config_map_that_a_sidecar_finds() -> None:
    on = "monitoring.dashboard.enabled=true,monitoring.dashboard.annotations.grafana_folder=Kafka"
    dashboard = find_object(render("--set", on), "ConfigMap", "kontroller-dashboard")
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert dashboard["metadata"]["annotations"] == {"grafana_folder": "Kafka"}
    assert json.loads(dashboard["data"]["kontroller.json"])["title"] == "Kontroller"
    assert json.loads(dashboard["data"]["kontroller-service-levels.json"])["title"] == "Kontroller: service levels"


SERIES: Final = [
    {"__name__": name, "namespace": namespace, "job": f"{release}-{component}", "cluster": f"cluster of {release}"}
    for namespace, release, components in (
        ("kafka", "blue", ("controller", "operator", "reports")),
        ("kafka", "blue-green", ("controller", "operator", "reports")),
        ("audit", "further", ("controller", "reports")),
    )
    for component in components
    for name in {
        "controller": ["kontroller_active_controller"],
        "operator": ["kontroller_operator_queue_depth"],
        "reports": ["kontroller_history_report_timestamp_seconds", "kontroller_history_availability_ratio"],
    }[component]
]
"""Series of three releases: two in one namespace, and one without an operator."""
MATCHER: Final = re.compile(r'(\w+)(=~?)"([^"]*)"')


def read_dashboards() -> list[Any]:
    """Return the dashboards of the chart: the one of controllers and operators, and the one of service levels."""
    on = ("--set", "monitoring.dashboard.enabled=true")
    texts = find_object(render(*on), "ConfigMap", "kontroller-dashboard")["data"]
    return [json.loads(texts[name]) for name in ("kontroller.json", "kontroller-service-levels.json")]


def does_select(selector: str, labels: Mapping[str, str], **chosen: str) -> bool:
    """Return True if a selector of Prometheus finds a series, with the chosen values of the dashboard's variables."""
    for variable, value in chosen.items():
        selector = selector.replace(f"${variable}", value)
    name, _, rest = selector.partition("{")
    matchers = [(label, value if "~" in sign else re.escape(value)) for label, sign, value in MATCHER.findall(rest)]
    wanted = [*matchers, *([("__name__", name)] if name else [])]
    return all(re.fullmatch(value, labels[label]) for label, value in wanted)


def list_options(dashboard: Any, variable: str, **chosen: str) -> list[str]:
    """Return the values of a variable that Grafana offers."""
    (found,) = (each for each in dashboard["templating"]["list"] if each["name"] == variable)
    query = re.fullmatch(r"label_values\((.*), (\w+)\)", found["query"]["query"])
    assert query is not None
    labels = {each[query[2]] for each in SERIES if does_select(query[1], each, **chosen)}
    matches = (re.search(found.get("regex", "/(.*)/").strip("/"), each) for each in labels)
    return sorted({match[1] for match in matches if match is not None})


def test_a_dashboard_offers_each_release_also_one_without_an_operator() -> None:
    for dashboard in read_dashboards():
        assert list_options(dashboard, "namespace") == ["audit", "kafka"]
        assert list_options(dashboard, "release", namespace="kafka") == ["blue", "blue-green"]
        assert list_options(dashboard, "release", namespace="audit") == ["further"]


def test_the_dashboard_of_service_levels_offers_the_clusters_of_one_release() -> None:
    _, levels = read_dashboards()
    assert list_options(levels, "cluster", namespace="kafka", release="blue") == ["cluster of blue"]


def find_components(metric: str) -> set[str]:
    """Return the components that have a metric."""
    for prefix, component in (("kontroller_operator_", "operator"), ("kontroller_history_", "reports")):
        if metric.startswith(prefix):
            return {component}
    return {
        "kontroller_refused_total": {"controller", "operator", "alarms", "reports"},
        "kontroller_audit_records_total": {"controller", "operator"},
    }.get(metric, {"controller"})


def test_every_panel_shows_the_components_of_one_release() -> None:
    services = [each["metadata"]["name"] for each in render(*EVERYTHING) if each["kind"] == "Service"]
    panels = [panel for dashboard in read_dashboards() for panel in dashboard["panels"]]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    selectors = [each for query in queries for each in re.findall(r"\b(kontroller_\w+)(\{[^}]*\})?", query)]
    assert selectors
    for metric, braces in selectors:
        assert 'namespace="$namespace"' in braces
        (job,) = re.findall(r'\bjob=~?"[^"]*"', braces)
        found = {each for each in services if does_select(f"{{{job}}}", {"job": each}, release="kontroller")}
        assert found == {f"kontroller-{component}" for component in find_components(metric)}


def test_a_release_without_anything_to_watch_has_no_rules() -> None:
    objects = render(*ALL_ON, "--set", "operator.enabled=false")
    assert [each for each in objects if each["kind"] == "PrometheusRule"] == []
