"""`import kontroller` is all that a script needs, and it costs nothing until a name is used."""

import ast
import doctest
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import kontroller
import kontroller.journal

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = sorted((ROOT / "examples" / "library").glob("*.py"))
MOST_NAMES: Final = 40


def find_imports(source: str) -> set[str]:
    """Return the modules that a script imports from outside of the standard library."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module)
    return {module for module in found if module.partition(".")[0] not in sys.stdlib_module_names}


def test_the_face_has_at_most_forty_names_in_alphabetical_order() -> None:
    assert len(kontroller.__all__) <= MOST_NAMES
    assert kontroller.__all__ == sorted(kontroller.__all__)


@pytest.mark.parametrize("name", kontroller.__all__)
def test_each_name_is_found_and_has_a_docstring(name: str) -> None:
    assert getattr(kontroller, name).__doc__


def test_the_page_describes_every_name() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    assert sorted(re.findall(r"^::: kontroller\.(\w+)$", page, re.MULTILINE)) == kontroller.__all__


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'KeptHistory'"):
        kontroller.KeptHistory  # noqa: B018


def test_an_import_alone_loads_neither_kafka_s_messages_nor_spark() -> None:
    script = "import sys, kontroller; print(*sorted(sys.modules.keys() & {'kio', 'kazoo', 'pydantic', 'pyspark'}))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_imports_nothing_but_the_face(example: Path) -> None:
    assert find_imports(example.read_text()) == {"kontroller"}


def test_the_example_of_a_journal_prints_who_leads() -> None:
    command = [sys.executable, "examples/library/read_journal.py", "examples/journal"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert ended.stdout.splitlines()[-3:] == ["orders-0 is led by 1", "orders-1 is led by 2", "orders-2 is led by 1"]


def test_the_examples_of_docstrings_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names = {name: getattr(kontroller, name) for name in kontroller.__all__}
    tried = doctest.testmod(kontroller.journal, extraglobs=names)
    assert (tried.attempted, tried.failed) == (3, 0)
