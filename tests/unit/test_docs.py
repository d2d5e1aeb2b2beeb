"""The seed map and the table of known bugs point at tests and modules that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEED_MAP = (ROOT / "docs" / "seed-map.md").read_text()
KNOWN_BUGS = (ROOT / "docs" / "known-bugs.md").read_text()
TESTS = sorted(set(re.findall(r"`((?:unit|real|contract)/[\w/]+\.py(?:::\w+)?)`", SEED_MAP + KNOWN_BUGS)))
MODULES = sorted(set(re.findall(r"`((?:model|controller|admin|zk|wire)/[\w/]+\.py)`", SEED_MAP)))


@pytest.mark.parametrize("test", TESTS)
def test_a_test_that_is_named_exists(test: str) -> None:
    path, _, name = test.partition("::")
    source = (ROOT / "tests" / path).read_text()
    nodes = ast.walk(ast.parse(source))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in functions if name else any(function.startswith("test_") for function in functions)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_the_map_names_exists(module: str) -> None:
    assert (ROOT / "controller_core" / module).is_file()


@pytest.mark.parametrize("row", [line for line in KNOWN_BUGS.splitlines()[8:] if line.startswith("|")])
def test_every_known_bug_has_a_test(row: str) -> None:
    assert re.search(r"`(?:unit|real|contract)/", row)


def test_the_map_names_something() -> None:
    assert len(TESTS) > 10
    assert len(MODULES) > 10
