"""The runbook in docs/operations.md: commands for a person at 3 a.m., about objects that the chart makes."""

import re
from typing import Final

import pytest

from devcluster.filling.parts import Part
from scripts.runbook import SOURCE, runbook
from tests.unit.chart.rendering import ALL_OF_IT, find_object, pods, render

pytestmark = pytest.mark.needs(Part.HELM)

PAGE: Final = SOURCE.read_text()
COMMANDS: Final = re.findall(r"^ {4,}(kubectl .+)$", PAGE, re.MULTILINE)
COMPONENT: Final = r"app\.kubernetes\.io/component(?:=(\w+)| in \(([\w,]+)\))"
OURS: Final = r"\b((?:statefulset|deployment|lease|pod|exec|logs)[ /]kontroller-[a-z]+)(?:-\d+)?\b"
TABLE: Final = PAGE.split("\n## By symptom\n", 1)[1].split("\n## ", 1)[0]
RUNBOOKS: Final = re.findall(r"^### (.+)$", PAGE.split("\n## Runbooks\n", 1)[1].split("\n## ", 1)[0], re.MULTILINE)


def alerts(severity: str) -> list[str]:
    groups = find_object(render(*ALL_OF_IT), "PrometheusRule", "kontroller")["spec"]["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"] if rule["labels"]["severity"] == severity]


def test_a_critical_alert_has_commands_in_its_own_section() -> None:
    sections = runbook(PAGE)
    critical = alerts("critical")
    assert len(critical) > 5
    assert [alert for alert in critical if len(re.findall(r"^ {4}kubectl ", sections[alert], re.MULTILINE)) < 2] == []


def test_the_objects_of_the_commands_are_those_of_a_release() -> None:
    kinds = {"statefulset": "StatefulSet", "deployment": "Deployment", "lease": "Deployment"}
    made = {(each["kind"], each["metadata"]["name"]) for each in render(*ALL_OF_IT)}
    used = {found for command in COMMANDS for found in re.findall(OURS, command)}
    assert used
    for kind, name in (re.split("[ /]", found) for found in used):
        assert (kinds.get(kind, "StatefulSet"), name) in made, name


def test_the_components_of_the_commands_are_those_of_a_release() -> None:
    components = {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods(render(*ALL_OF_IT))}
    used = {name for found in re.findall(COMPONENT, PAGE) for name in ",".join(found).strip(",").split(",")}
    assert used
    assert used - components == set()


def test_a_command_in_a_namespace_names_that_of_the_page() -> None:
    namespaces = {found for command in COMMANDS for found in re.findall(r"--namespace[ =](\S+)", command)}
    assert namespaces == {"kafka"}


def test_every_runbook_is_found_by_a_symptom() -> None:
    assert len(RUNBOOKS) > 10
    linked = re.findall(r"\]\(#([^)]+)\)", TABLE)
    assert [each for each in RUNBOOKS if each.lower().replace(" ", "-") not in linked] == []
