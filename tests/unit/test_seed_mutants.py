"""The tests that rows of the seed map name fail if the code of the row is taken out (`tests/unit/seed_mutants.py`)."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.unit.mutated_module import VARIABLE
from tests.unit.seed_map import Row, rows
from tests.unit.seed_mutants import MUTANTS, SeedMutant

ROOT: Final = Path(__file__).parents[2]
ROWS: Final = list(rows((ROOT / "docs" / "seed-map.md").read_text()))
EACH: Final = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.part)
SOME_TESTS_FAILED: Final = 1


def row_of(mutant: SeedMutant) -> Row:
    (row,) = (row for row in ROWS if row.part.startswith(mutant.part))
    return row


def list_named_tests(mutant: SeedMutant) -> list[str]:
    """The unit tests that the mutant's row names."""
    return [f"tests/{named}" for named in re.findall(r"`(unit/[^`]+)`", row_of(mutant).shown_by)]


def run(mutant: SeedMutant) -> subprocess.CompletedProcess[str]:
    """Runs the tests of the mutant's row with the mutant."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "tests.unit.mutated_module"]
    env = {**os.environ, VARIABLE: json.dumps([mutant.module, mutant.code, mutant.instead])}
    return subprocess.run(
        [*command, *list_named_tests(mutant)], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )


@EACH
def test_the_module_has_the_code_and_the_row_has_unit_tests(mutant: SeedMutant) -> None:
    found = importlib.util.find_spec(mutant.module)
    assert found is not None
    assert found.origin is not None
    assert Path(found.origin).read_text().count(mutant.code) == 1
    assert list_named_tests(mutant)


@pytest.mark.nightly("runs the tests of a dozen rows, each in a process of its own")
@EACH
def test_the_tests_of_a_row_fail_without_its_code(mutant: SeedMutant) -> None:
    ran = run(mutant)
    assert ran.returncode == SOME_TESTS_FAILED, f"{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"
    assert "failed" in ran.stdout.splitlines()[-1]
