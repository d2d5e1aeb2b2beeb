"""The page of the resources says everything: each kind, each field, each condition, each reason."""

import re
from pathlib import Path

import pytest
import yaml

from controller_operator.resources import KINDS
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.crds import custom_resource_definition
from scripts.crds import reference
from scripts.resources_page.advice import CONDITIONS, REMEDIES, NoAdvice, remedy
from scripts.resources_page.fields import cell, table
from scripts.resources_page.lifecycles import LIFECYCLES, NoLifecycle, diagram
from scripts.resources_page.page import page

PROJECT = Path(__file__).parents[3]
OPERATIONS = (PROJECT / "docs/operations.md").read_text()
PAGE = reference(PROJECT / "examples")
KIND_NAMES = [kind.definition.kind for kind in KINDS]
SECTIONS = {kind: PAGE.split(f"\n## {kind}\n", 1)[1].split("\n## ", 1)[0] for kind in KIND_NAMES}


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_kind_has_an_example_a_diagram_and_its_fields(kind: str) -> None:
    shown = [yaml.safe_load(block)["kind"] for block in re.findall(r"```yaml\n(.*?)```", SECTIONS[kind], re.DOTALL)]
    assert set(shown) == {kind}
    assert "```mermaid\nstateDiagram-v2\n" in SECTIONS[kind]
    assert "| `spec.clusterRef.name` | string; required; 1 to" in SECTIONS[kind] or kind == "KafkaCluster"


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_every_field_of_spec_and_status_has_a_row(kind: type) -> None:
    (version,) = custom_resource_definition(kind)["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    section = SECTIONS[kind.definition.kind] + PAGE.split("\n## Conditions\n", 1)[1]  # type: ignore[attr-defined]
    fields = [f"{part}.{name}" for part in ("spec", "status") for name in properties[part]["properties"]]
    assert [field for field in fields if f"\n| `{field}` |" not in section] == []


def test_a_field_shows_its_type_default_bounds_and_description() -> None:
    topic = SECTIONS["KafkaTopic"]
    assert "\n| `spec.replicationFactor` | integer; 1 to 20 | Number of replicas of each partition;" in topic
    assert "\n| `spec.driftPolicy` | `Enforce`, `Report`, `Ignore`; default `Enforce` |" in topic
    assert "\n| `spec.config` | map to string, number or boolean; at most 200 keys; each at most 32,768 chara" in topic
    assert "\n| `status.drift[].key` | string; required |" in topic
    assert "- `spec.clusterRef`: clusterRef cannot change" in topic
    assert "- the object: topicName cannot change" in topic


def test_what_would_break_a_table_is_escaped() -> None:
    shown = table(
        "spec", {"properties": {"a": {"type": "string", "pattern": "^(a|b)$", "description": "a | b\n<c> *"}}}
    )
    assert shown.splitlines()[-1] == r"| `spec.a` | string; `^(a\|b)$` | a \| b &lt;c> \* |"
    assert cell("one\n  line") == "one line"


def test_all_rows_have_as_many_cells_as_their_heads() -> None:
    tables = re.findall(r"(?:^\|.*\|\n)+", PAGE, re.MULTILINE)
    assert len(tables) == 2 * len(KINDS) + 3
    for rows in (found.splitlines() for found in tables):
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {len(re.findall(r"\|", rows[0]))}


def test_each_condition_and_each_reason_says_what_to_do() -> None:
    assert CONDITIONS.keys() == set(ConditionType)
    assert REMEDIES.keys() == set(Reason)
    assert all(f"\n| `{reason}` | {cell(reason.meaning)} | {remedy(reason)} |\n" in PAGE for reason in Reason)


def test_a_reason_without_advice_and_a_phase_without_a_place_in_the_diagram_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scripts.resources_page.advice.REMEDIES", {})
    with pytest.raises(NoAdvice, match="Reconciled"):
        remedy(Reason.RECONCILED)
    with pytest.raises(NoLifecycle, match="Dreaming"):
        diagram("PartitionReassignment", ("Pending", "Dreaming"))
    with pytest.raises(NoLifecycle, match="Teapot"):
        diagram("Teapot")


def test_no_diagram_is_about_a_kind_or_phase_that_is_gone() -> None:
    assert LIFECYCLES.keys() == set(KIND_NAMES)
    for kind in KINDS:
        (version,) = custom_resource_definition(kind)["spec"]["versions"]
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        if "phase" in status:
            states = {each for change in LIFECYCLES[kind.definition.kind] for each in (change.before, change.after)}
            assert states == {*status["phase"]["enum"], "[*]"}


def test_the_labels_of_a_diagram_end_where_mermaid_ends_them() -> None:
    for line in re.findall(r"^    \S+ --> .*$", PAGE, re.MULTILINE):
        assert re.fullmatch(r"    \S+ --> [\w\[*\]]+: [^:;]+", line)


def test_the_advice_leads_to_sections_that_there_are() -> None:
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
             for heading in re.findall(r"^#+ (.+)$", OPERATIONS, re.MULTILINE)}  # fmt: skip
    links = re.findall(r"\(operations\.md#([^)]+)\)", PAGE)
    assert links
    assert set(links) <= slugs


def test_an_example_that_appears_is_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("kind: KafkaTopic\n# one\n---\nkind: FeatureSet\n# two\n")
    definitions = {name: custom_resource_definition(kind) for name, kind in zip(KIND_NAMES, KINDS, strict=True)}
    shown = page(definitions, tmp_path)
    assert "```yaml\nkind: KafkaTopic\n# one\n```" in shown
    assert "```yaml\nkind: FeatureSet\n# two\n```" in shown
