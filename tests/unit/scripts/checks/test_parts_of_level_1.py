"""The parts of `make test` that have servers."""

from pathlib import Path

import pytest
import typer

from scripts.checks.__main__ import assign_to_parts
from tests.levels import files_of, read_cases

LEVEL_1 = Path(__file__).parents[4] / "tests" / "level1.txt"


def test_each_file_of_the_list_is_in_one_part_and_no_part_is_empty() -> None:
    files = files_of(read_cases(LEVEL_1))
    parts = assign_to_parts(files)
    assert sorted(file for part in parts.values() for file in part) == sorted(files)
    assert all(parts.values())


def test_what_has_an_api_server_shares_one_process() -> None:
    parts = assign_to_parts(["tests/real/chart/test_life.py", "tests/real/test_drain.py", "tests/real/operator/kinds"])
    assert parts["operator"] == ["tests/real/chart/test_life.py", "tests/real/operator/kinds"]
    assert parts["servers"] == ["tests/real/test_drain.py"]


def test_a_file_that_no_part_runs_is_an_error() -> None:
    with pytest.raises(typer.BadParameter, match=r"no part of `make test` runs tests/e2e/test_6_node\.py"):
        assign_to_parts(["tests/e2e/test_6_node.py"])
