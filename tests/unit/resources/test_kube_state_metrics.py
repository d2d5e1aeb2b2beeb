"""The configuration of kube-state-metrics names fields that the definitions have, of every kind."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller_operator.resources import KINDS
from controller_operator.resources.common import GROUP, VERSION
from controller_operator.resources.crds import custom_resource_definition

PROJECT = Path(__file__).parents[3]
VALUES: dict[str, Any] = yaml.safe_load((PROJECT / "examples/monitoring/kube-state-metrics-values.yaml").read_text())
RESOURCES: dict[str, dict[str, Any]] = {
    each["groupVersionKind"]["kind"]: each for each in VALUES["customResourceState"]["config"]["spec"]["resources"]
}
METADATA = {"type": "object", "properties": {name: {"type": "string"} for name in ("name", "namespace")}}


def schema_of(kind: str) -> Mapping[str, Any]:
    (found,) = (each for each in KINDS if each.definition.kind == kind)
    (version,) = custom_resource_definition(found)["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return {**schema, "properties": {**schema["properties"], "metadata": METADATA}}


def field(schema: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
    """Return the schema of a field; raises KeyError if there is none."""
    for part in path:
        schema = schema["properties"][part]
    return schema


def labels(around: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    yield from around.get("labelsFromPath", {}).values()


def test_every_kind_has_its_metrics() -> None:
    assert set(RESOURCES) == {kind.definition.kind for kind in KINDS}
    for resource in RESOURCES.values():
        assert resource["groupVersionKind"] == {**resource["groupVersionKind"], "group": GROUP, "version": VERSION}
        assert "condition_info" in {metric["name"] for metric in resource["metrics"]}
    (rights,) = (rule for rule in VALUES["rbac"]["extraRules"] if rule["apiGroups"] == [GROUP])
    assert rights["resources"] == sorted(kind.definition.plural for kind in KINDS)


@pytest.mark.parametrize("kind", RESOURCES)
def test_each_path_leads_to_a_field_that_gives_a_number_or_labels(kind: str) -> None:
    schema, resource = schema_of(kind), RESOURCES[kind]
    for metric in resource["metrics"]:
        each = metric["each"]
        assert [field(schema, path)["type"] for around in (resource, metric) for path in labels(around)]
        if each["type"] == "Info":
            entries = field(schema, each["info"]["path"])["items"]
            assert {field(entries, path)["type"] for path in labels(each["info"])} == {"string"}
            continue
        found = field(schema, each["gauge"]["path"])
        numbers = found["properties"].values() if "labelFromKey" in each["gauge"] else [found]
        assert all(each["type"] == "integer" or each.get("format") == "date-time" for each in numbers), metric["name"]
