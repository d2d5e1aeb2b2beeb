"""The lists of tests that run on several set-ups name tests that exist, so that a new name loses no set-up."""

import ast
from pathlib import Path

import pytest

from tests.real.conformance.set_ups import OLDER_PROCEDURES, PROBES

FOLDER = Path(__file__).parents[2] / "real" / "conformance"


@pytest.mark.parametrize("probe", [*PROBES, *OLDER_PROCEDURES])
def test_a_probe_is_there(probe: str) -> None:
    file, _, name = probe.partition("::")
    functions = ast.parse((FOLDER / file).read_text()).body
    assert name in {each.name for each in functions if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_no_probe_is_listed_twice() -> None:
    assert len({*PROBES, *OLDER_PROCEDURES}) == len(PROBES) + len(OLDER_PROCEDURES)
