"""The distributions hold what their users run, typed, and nothing of the development cluster."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from kontroller.command_line import main
from tests.shipped import read_sources

ROOT: Final = Path(__file__).parents[3]
BROKER: Final = ROOT / "replica_broker" / "pyproject.toml"
FROM_AN_INDEX: Final = re.compile(r"pip install '?(?:kafka-)?kontroller|distribution `?kontroller\b")
"""Instructions that install another package while this one is not published, or one that is not there."""


def read_project(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


WHEEL: Final = read_project(ROOT / "pyproject.toml")["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def test_the_wheel_has_neither_the_reference_broker_nor_the_development_cluster() -> None:
    assert WHEEL == ["controller_core", "controller_planner", "kontroller", "operator/controller_operator"]


@pytest.mark.parametrize("package", [*WHEEL, "replica_broker"])
def test_each_package_tells_type_checkers_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_the_broker_s_distribution_needs_the_same_version_of_the_other() -> None:
    whole, broker = read_project(ROOT / "pyproject.toml")["project"], read_project(BROKER)["project"]
    assert broker["version"] == whole["version"]
    assert broker["dependencies"] == [f"{whole['name']}=={whole['version']}"]


def test_the_version_is_that_of_the_distribution() -> None:
    version = read_project(ROOT / "pyproject.toml")["project"]["version"]
    ended = CliRunner().invoke(main, ["--version"])
    assert (ended.exit_code, ended.stdout) == (0, f"kontroller {version}\n")


def test_no_page_command_or_plugin_says_to_install_from_an_index() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "charts").rglob("*.md")]
    texts = dict(read_sources()) | {
        str(path.relative_to(ROOT)): path.read_text() for path in (*pages, *(ROOT / "charts" / "krew").iterdir())
    }
    assert {"docs/plans.md", "charts/krew/kubectl-kontroller", "kontroller/cli/planning/snapshot.py"} <= texts.keys()
    assert [path for path, text in texts.items() if FROM_AN_INDEX.search(text)] == []
