"""All names in the documents exist: tests, modules, alerts, commands, metrics, log lines, settings."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from controller_core.process.settings import ControllerProcessSettings
from controller_operator.settings import OperatorSettings
from kontroller.command_line import main
from scripts.crds import PAGE, reference
from tests.unit.seed_map import definitions

ROOT = Path(__file__).resolve().parents[2]
KNOWN_BUGS = (ROOT / "docs" / "known-bugs.md").read_text()
VERSIONS = (ROOT / "docs" / "versions.md").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
VALUES = yaml.safe_load((ROOT / "charts" / "kontroller" / "values.yaml").read_text())
STATUS_FIELDS = {"controller.kind", "controller.epoch", "zookeeper.connect"}
"""Fields of a KafkaCluster, or of the brokers, that look like values of the chart."""
SOURCES = [
    path.read_text() for folder in ("controller_core", "operator") for path in sorted((ROOT / folder).rglob("*.py"))
]
TESTS = sorted(set(re.findall(r"`((?:unit|real|contract|e2e|spark)/[\w/]+\.py(?:::\w+)?)`", f"{KNOWN_BUGS}{VERSIONS}")))
RELEASES = ("2.8", "3.0", "3.3", "3.6", "3.9", "4.2")
FEATURES = VERSIONS.partition(f"| | {' | '.join(RELEASES)} | shown by |\n")[2].partition("\n\n")[0].splitlines()[1:]


def exists(test: str) -> bool:
    """Return True if the file defines the named test, or any test if none is named."""
    path, _, name = test.partition("::")
    names = {defined.rpartition(".")[2] for defined in definitions(ROOT / "tests" / path)}
    return name in names if name else any(defined.startswith("test_") for defined in names)


def test_a_test_that_is_named_exists() -> None:
    assert TESTS
    assert [test for test in TESTS if not exists(test)] == []


def test_every_known_bug_has_a_test() -> None:
    rows = [line for line in KNOWN_BUGS.splitlines()[8:] if line.startswith("|")]
    assert rows
    assert [row for row in rows if not re.search(r"`(?:unit|real|contract)/", row)] == []


def test_there_are_features_by_release() -> None:
    assert len(FEATURES) > 10


def test_what_works_with_which_release_of_kafka_has_something_that_shows_it() -> None:
    by_row = {row: row.strip("| ").split(" | ") for row in FEATURES}
    assert [row for row, cells in by_row.items() if len(cells) != len(RELEASES) + 2] == []
    assert [row for row, cells in by_row.items() if not re.search(r"`(?:real/|make versions)|\]\(", cells[-1])] == []


DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(path for folder in ("docs", "charts", "examples") for path in sorted((ROOT / folder).rglob("*.md"))),
]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_in_yaml_are_yaml(page: Path) -> None:
    for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        assert [*yaml.safe_load_all(block)]


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


HEADINGS = re.findall(r"^#+ (.+)$", OPERATIONS, re.MULTILINE)
SECTIONS = {slug(heading): OPERATIONS.split(f"# {heading}\n", 1)[1].split("\n#", 1)[0] for heading in HEADINGS}
ALERTS = re.findall(r"- alert: (\w+)", (ROOT / "charts/kontroller/templates/alerts.yaml").read_text())
CODE = [line.strip() for line in re.findall(r"^    .+$", OPERATIONS, re.MULTILINE)] + re.findall(
    r"`([^`\n]+)`", OPERATIONS
)
NAMED_VALUES = sorted(
    {path for path in re.findall(r"`((?:\w+\.)+\w+)(?:=\w+)?`", OPERATIONS) if path.split(".")[0] in VALUES}
    - STATUS_FIELDS
)
COMMANDS = sorted({found for code in CODE for found in re.findall(r"(?:^|-- )(kontroller (?!charts)[a-z].*)$", code)})


def test_an_alert_has_a_section_that_says_what_it_means_and_what_to_do() -> None:
    assert ALERTS
    parts = [(alert, f"**{word}.**") for alert in ALERTS for word in ("Means", "Impact", "Look", "Do")]
    assert [(alert, part) for alert, part in parts if part not in SECTIONS[alert.lower()]] == []


def test_no_section_is_about_an_alert_that_is_gone() -> None:
    assert {heading for heading in HEADINGS if heading.startswith("Kontroller")} == set(ALERTS)


def test_a_link_within_the_operations_leads_somewhere() -> None:
    anchors = set(re.findall(r"\]\(#([^)]+)\)", OPERATIONS))
    assert anchors
    assert anchors - SECTIONS.keys() == set()


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "ARCHITECTURE.md",
        "docs/README.md",
        "docs/start.md",
        "docs/glossary.md",
        "docs/how-it-works.md",
        "docs/operations.md",
        "docs/versions.md",
    ],
)
def test_a_link_to_a_file_leads_somewhere(document: str) -> None:
    path = ROOT / document
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text())
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_a_command_of_ours_that_is_named_exists_with_its_options() -> None:
    for line in COMMANDS:
        words = line.split()[1:]
        command: Any = typer.main.get_command(main)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options, line


def test_the_commands_of_the_operations_were_found() -> None:
    assert {tuple(line.split()[1:3]) for line in COMMANDS} >= {
        ("check", "cluster"),
        ("check", "api"),
        ("operator", "release"),
    }


@pytest.mark.parametrize(
    ("page", "modules"),
    [
        (
            "operations.md",
            (
                "controller_core/controller/serving/metrics.py",
                "controller_core/process/unserved_requests.py",
                "controller_core/audit/trail.py",
                "controller_core/wire/listener/refusals.py",
                "controller_core/admin/authorizing/authorization.py",
                "controller_core/admin/quotas/mutation_quotas.py",
                "controller_core/admin/ruling/judged_requests.py",
                "operator/controller_operator/metrics.py",
            ),
        ),
        (
            "broker.md",
            (
                "replica_broker/counters.py",
                "replica_broker/process/metrics.py",
                "controller_core/wire/listener/refusals.py",
            ),
        ),
    ],
)
def test_every_metric_that_is_named_exists_and_every_metric_is_named(page: str, modules: tuple[str, ...]) -> None:
    literals = {
        name for module in modules for name in re.findall(r'"(kontroller_[a-z_]+)"', (ROOT / module).read_text())
    }
    assert set(re.findall(r"\bkontroller_[a-z_]+", (ROOT / "docs" / page).read_text())) == literals


def test_a_log_line_that_is_quoted_is_written_somewhere() -> None:
    events = set(re.findall(r'`"([^"`]+)"`', OPERATIONS))
    assert events
    assert {event for event in events if not any(f'"{event}"' in source for source in SOURCES)} == set()


def test_a_variable_that_is_named_is_a_setting() -> None:
    variables = {found.lower() for found in re.findall(r"\bKONTROLLER_([A-Z_]+)", OPERATIONS)}
    assert variables
    assert variables - {*ControllerProcessSettings.model_fields, *OperatorSettings.model_fields} == set()


def test_a_value_of_the_chart_that_is_named_exists() -> None:
    assert NAMED_VALUES
    for path in NAMED_VALUES:
        value: object = VALUES
        for key in path.split("."):
            assert isinstance(value, dict), path
            assert key in value, path
            value = value[key]


MOST_README_LINES = 90


def test_the_readme_is_read_in_one_sitting() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= MOST_README_LINES


INDEX = (ROOT / "docs" / "README.md").read_text()
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md") if path.name != "README.md")


def test_a_page_is_in_the_index_in_one_line() -> None:
    named = re.findall(r"^- \[([^]]+)\]\(\1\): .+\.$", INDEX, re.MULTILINE)
    assert PAGES
    assert [page for page in PAGES if named.count(page) != 1] == []


def test_the_links_of_the_page_of_the_resources_lead_somewhere() -> None:
    page = re.sub(r"`[^`]*`", "", (ROOT / PAGE).read_text())  # patterns look like links
    links = re.findall(r"\]\(([^)#]+)", page)
    assert "../examples/topics.yaml" in links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_the_page_of_the_resources_is_that_of_the_models() -> None:
    assert (ROOT / PAGE).read_text() == reference(ROOT / "examples"), "stale: run `make crds`"
