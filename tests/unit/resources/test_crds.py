"""The generated CustomResourceDefinitions: they match the models, and Kubernetes accepts them as structural."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from pydantic import Field

from controller_operator.resources import KINDS, KafkaTopic
from controller_operator.resources.common import Definition, Resource, Spec, Status
from controller_operator.resources.conditions import Reason
from controller_operator.resources.crds import SchemaError, custom_resource_definition
from controller_operator.resources.rebalancing.rebalance_plan import MAX_KNOWN_BROKERS, MAX_MOVES
from controller_operator.resources.schema import MAX_PARTITIONS, MAX_STATUS_ENTRIES
from scripts.crds import CHART_FOLDER, CRDS_FOLDER, PAGE, files, reference, write

PROJECT = Path(__file__).parents[3]
KIND_NAMES = [kind.definition.kind for kind in KINDS]


def schema_of(kind: type[Resource[Any, Any]]) -> dict[str, Any]:
    version: dict[str, Any] = custom_resource_definition(kind)["spec"]["versions"][0]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema in a schema, with its path."""
    yield path, schema
    for name, each in schema.get("properties", {}).items():
        yield from nodes(each, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from nodes(schema[keyword], f"{path}[]")


@pytest.mark.parametrize("folder", [CRDS_FOLDER, CHART_FOLDER], ids=["crds", "chart"])
def test_the_committed_definitions_are_those_of_the_models(folder: Path) -> None:
    committed = {path.name: path.read_text() for path in (PROJECT / folder).glob("*.yaml")}
    generated = {path.name: content for path, content in files().items() if path.parent == folder}
    assert committed == generated, "stale: run `make crds`"


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_the_chart_installs_what_kubectl_applies_but_for_its_own_metadata(kind: type[Resource[Any, Any]]) -> None:
    name = f"{kind.definition.plural}.yaml"
    applied = yaml.safe_load((PROJECT / CRDS_FOLDER / name).read_text())
    lines = (PROJECT / CHART_FOLDER / name).read_text().splitlines()
    installed = yaml.safe_load("\n".join(line for line in lines if "{{" not in line))
    assert installed == applied


def test_make_crds_writes_both_folders_and_the_page(tmp_path: Path) -> None:
    recipe = re.search(r"^crds:.*\n\t\$\(BIN\)/python (.+)\n", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    (tmp_path / "docs").mkdir()
    (tmp_path / "examples").symlink_to(PROJECT / "examples")
    subprocess.run([sys.executable, *recipe[1].split()], cwd=tmp_path, check=True)
    folders = (tmp_path / folder.parts[0] for folder in (CRDS_FOLDER, CHART_FOLDER))
    written = {path.relative_to(tmp_path): path.read_text() for folder in folders for path in folder.rglob("*.yaml")}
    assert written == files()
    assert (tmp_path / PAGE).read_text() == reference(PROJECT / "examples")


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_every_field_is_described(kind: type[Resource[Any, Any]]) -> None:
    bare = [
        f"{path}.{name}"
        for path, schema in nodes(schema_of(kind))
        for name, field in schema.get("properties", {}).items()
        if not field.get("description") and f"{path}.{name}" != ".metadata"
    ]
    assert bare == []


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_every_part_of_a_schema_has_a_type_or_says_that_it_may_be_any(kind: type[Resource[Any, Any]]) -> None:
    untyped = {path: schema for path, schema in nodes(schema_of(kind)) if "type" not in schema}
    assert untyped.keys() <= {".spec.config[]"}
    assert all(schema["x-kubernetes-preserve-unknown-fields"] for schema in untyped.values())


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_the_api_server_writes_no_default_into_a_status_or_into_an_entry_of_a_list(
    kind: type[Resource[Any, Any]],
) -> None:
    defaults = [path for path, schema in nodes(schema_of(kind)) if "default" in schema]
    assert [path for path in defaults if path.startswith(".status.") or "[]" in path] == []


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_a_status_that_nobody_has_written_is_of_no_generation(kind: type[Resource[Any, Any]]) -> None:
    status = schema_of(kind)["properties"]["status"]
    assert status["default"] == {"observedGeneration": -1}
    assert status["properties"]["observedGeneration"]["minimum"] == -1


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_lists_and_strings_of_a_spec_are_bounded(kind: type[Resource[Any, Any]]) -> None:
    bounds = {"array": ["maxItems"], "string": ["maxLength"], None: ["maxItems", "maxLength", "maxProperties"]}
    unbounded = [
        path
        for path, schema in nodes(schema_of(kind)["properties"]["spec"])
        if not {*bounds.get(schema.get("type"), ())} <= schema.keys() and "enum" not in schema
    ]
    assert unbounded == []


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_lists_of_a_status_are_bounded_where_they_grow_with_the_cluster(kind: type[Resource[Any, Any]]) -> None:
    status = schema_of(kind)["properties"]["status"]
    grows = {name: field for name, field in status["properties"].items() if field["type"] == "array"}
    grows.pop("conditions")
    planned = grows.pop("plan", None)
    assert planned is None or planned["maxItems"] == MAX_PARTITIONS, (
        "a plan may be as long as a spec that says the same"
    )
    moves = grows.pop("moves", None)
    assert moves is None or moves["maxItems"] == MAX_MOVES, "the moves that run are those that were approved"
    known = grows.pop("knownBrokers", None)
    assert known is None or (known["maxItems"], known["items"]["type"]) == (MAX_KNOWN_BROKERS, "integer")
    assert {name for name, field in grows.items() if not 0 < field.get("maxItems", 0) <= MAX_STATUS_ENTRIES} == set()


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_conditions_are_merged_by_their_type(kind: type[Resource[Any, Any]]) -> None:
    conditions = schema_of(kind)["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_the_columns_read_fields_that_there_are(kind: type[Resource[Any, Any]]) -> None:
    known = {path for path, _ in nodes(schema_of(kind))} | {".metadata.creationTimestamp"}
    paths = [column.json_path for column in kind.definition.columns]
    assert [path for path in paths if path not in known and not path.startswith(".status.conditions[?")] == []


def test_a_description_of_the_reason_tells_what_each_reason_means() -> None:
    conditions = schema_of(KafkaTopic)["properties"]["status"]["properties"]["conditions"]
    description = conditions["items"]["properties"]["reason"]["description"]
    assert all(f"{reason}: {reason.meaning}" in description for reason in Reason)


def test_the_definitions_of_kinds_that_are_no_more_are_removed(tmp_path: Path) -> None:
    crds, chart = tmp_path / "crds", tmp_path / "chart"
    crds.mkdir()
    (crds / "brokers.yaml").write_text("of a kind that is no more")
    (crds / "README.md").write_text("not ours")
    write(crds, chart)
    plurals = {f"{kind.definition.plural}.yaml" for kind in KINDS}
    assert {path.name for path in crds.iterdir()} == plurals | {"README.md"}
    assert {path.name for path in chart.iterdir()} == plurals


class TwoTypesSpec(Spec):
    """A spec that no structural schema can describe."""

    size: int | str = Field(description="A number or a word.")


class TwoTypes(Resource[TwoTypesSpec, Status]):
    """A kind with it."""

    definition: ClassVar = Definition(kind="TwoTypes", plural="twotypes", short_name="tt", columns=())


class TemplateSpec(Spec):
    """A spec with a text that Helm would take for a template: {{ .Values.surprise }}."""


class Template(Resource[TemplateSpec, Status]):
    """A kind with it."""

    definition: ClassVar = Definition(kind="Template", plural="templates", short_name="te", columns=())


def test_a_field_of_two_types_is_refused() -> None:
    with pytest.raises(SchemaError, match="one type"):
        custom_resource_definition(TwoTypes)


def test_a_text_that_helm_would_take_for_a_template_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.crds.KINDS", (Template,))
    with pytest.raises(SchemaError, match="Helm"):
        files()


def test_the_files_are_yaml_without_anchors() -> None:
    for path, content in files().items():
        if path.parent == CRDS_FOLDER:
            assert yaml.safe_load(content)["kind"] == "CustomResourceDefinition"
            assert not any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content))
