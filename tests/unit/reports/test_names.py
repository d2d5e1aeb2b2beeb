"""Names, environments and owners come from a file, which is checked before anything is computed."""

from dataclasses import replace
from pathlib import Path

import pytest

from kontroller.history.reports.names import MOST_BYTES, Names, UnusableNames, read_names
from kontroller.history.reports.rendering.naming import add_names
from kontroller.history.reports.rendering.page import page
from tests.unit.reports.facts import HOSTILE, fleet_report, full_report
from tests.unit.reports.html import Page

FILE = """
clusters:
  - {id: prod-eu, name: Orders, environment: prod, owner: team-orders}
  - {id: c2, environment: test}
topics:
  - {pattern: 'pay.*', cluster: prod-eu, owner: team-payments, name: Payments}
  - {pattern: '.*[.]log', environment: any}
"""


def read(tmp_path: Path, text: str) -> Names:
    path = tmp_path / "names.yaml"
    path.write_text(text)
    return read_names(path)


def test_a_topic_has_the_first_pattern_that_matches_and_the_rest_from_its_cluster(tmp_path: Path) -> None:
    names = read(tmp_path, FILE)
    described = names.describe_topic("prod-eu", "pay.log")
    assert described == {"name": "Payments", "environment": "prod", "owner": "team-payments"}
    assert names.describe_topic("c2", "pay.log") == {"name": "", "environment": "any", "owner": ""}
    assert names.describe_topic("c2", "repay") == {"name": "", "environment": "test", "owner": ""}
    assert (names.say("prod-eu"), names.say("c2"), names.say("c3")) == ("Orders (prod)", "c2", "c3")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clusters: {", "is not YAML"),
        ("clusters:\n- {name: x}", "clusters.0.id: Field required"),
        ("clusters:\n- {id: x, ownr: y}", "clusters.0.ownr: Extra inputs are not permitted"),
        ("clusters:\n- {id: x}\n- {id: x}", "cluster x is named twice: remove one"),
        ("topics:\n- {pattern: '('}", "topics.0.pattern: ( is not a regular expression"),
        ("- 1", "the file: "),
        (f"clusters:\n- {{id: x, name: {'n' * 201}}}", "clusters.0.name: "),
        ("#" * (MOST_BYTES + 1), "bytes: name fewer"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UnusableNames) as refused:
        read(tmp_path, text)
    assert said in str(refused.value)
    assert str(tmp_path / "names.yaml") in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableNames, match="cannot be read: No such file"):
        read_names(tmp_path / "none.yaml")
    assert read(tmp_path, "") == Names()


def test_the_page_shows_them(tmp_path: Path) -> None:
    names = read(tmp_path, FILE)
    report = replace(full_report(name="prod-eu"), names=names)
    shown = Page(page(report))
    assert "Orders (prod)" in shown.text.split("Available")[0]
    assert "team-orders" in shown.sections["topics"]
    listed = add_names(report.listings["topics"], names)
    assert [column.title for column in listed.columns][1:5] == ["Topic", "Name", "Environment", "Owner"]
    assert add_names(report.listings["incidents"], names) is report.listings["incidents"]
    assert add_names(report.listings["topics"], Names()) is report.listings["topics"]


def test_a_hostile_name_is_text(tmp_path: Path) -> None:
    report = fleet_report(2, days=1)
    cluster = str(report.listings["clusters"].rows[0]["cluster_id"])
    hostile = HOSTILE.replace("\x00", "")[:100]
    names = Names.model_validate({"clusters": [{"id": cluster, "name": hostile, "owner": hostile}]})
    source = page(replace(report, names=names))
    assert "<img" not in source
    assert "evil.example" in source
