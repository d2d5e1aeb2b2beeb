"""The roles that the chart gives to users."""

import pytest

from devcluster.filling.parts import Part
from tests.unit.chart.rendering import EVERYTHING, render

pytestmark = pytest.mark.needs(Part.HELM)


def test_the_roles_of_users_join_the_cluster_s_own() -> None:
    def find_joined(*values: str) -> dict[str, set[str]]:
        prefix = "rbac.authorization.k8s.io/aggregate-to-"
        return {
            each["metadata"]["name"]: {
                label.removeprefix(prefix) for label in each["metadata"]["labels"] if label.startswith(prefix)
            }
            for each in render(*values)
            if each["kind"] == "ClusterRole"
        }

    assert find_joined() == {
        "kontroller-operator": set(),
        "kontroller-release-finalizers": set(),
        "kontroller-view": {"view", "edit", "admin"},
        "kontroller-edit": {"edit", "admin"},
        "kontroller-clusters": set(),
    }
    assert not any(find_joined("--set", "rbac.aggregate=false").values())


def test_the_operator_may_not_read_secrets() -> None:
    rules = [
        rule
        for each in render(*EVERYTHING)
        if each["kind"] in ("ClusterRole", "Role") and "operator" in each["metadata"]["name"]
        for rule in each["rules"]
    ]
    assert rules
    assert {"secrets", "*"}.isdisjoint(resource for rule in rules for resource in rule.get("resources", ()))
