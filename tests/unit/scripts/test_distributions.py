"""The distributions hold what their users run, typed, and nothing of the development cluster."""

import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from kontroller.command_line import main

ROOT: Final = Path(__file__).parents[3]
BROKER: Final = ROOT / "replica_broker" / "pyproject.toml"


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
