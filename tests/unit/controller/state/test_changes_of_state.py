"""The cluster's state changes only through its own methods, and a leadership takes effect in one place. mypy refuses
code that changes a `Mapping` or a `Set`, or sets a `Final`. These tests show that the state exposes nothing else, and
that no module uses its private parts."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import controller_core

CORE: Final = Path(controller_core.__file__).parent
STATE: Final = CORE / "controller" / "state"
LEADERSHIPS: Final = CORE / "controller" / "machines" / "leaderships.py"

STATE_MODULES: Final = sorted(STATE.glob("*.py"))
OTHER_MODULES: Final = sorted(path for path in CORE.rglob("*.py") if STATE not in path.parents)
MUTABLE: Final = {"dict", "list", "set", "defaultdict"}


def name_of(path: Path) -> str:
    return str(path.relative_to(CORE))


def public_attributes(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The attributes without an underscore that `__init__` sets, and how they are annotated."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            for node in ast.walk(function):
                targets = node.targets if isinstance(node, ast.Assign) else []
                annotation = ""
                if isinstance(node, ast.AnnAssign):
                    targets, annotation = [node.target], ast.unparse(node.annotation)
                for target in targets:
                    if isinstance(target, ast.Attribute) and not target.attr.startswith("_"):
                        yield target.attr, annotation


@pytest.mark.parametrize("path", STATE_MODULES, ids=name_of)
def test_what_the_state_shows_can_be_neither_set_nor_changed(path: Path) -> None:
    shown = dict(public_attributes(ast.parse(path.read_text())))
    assert {name for name, annotation in shown.items() if not annotation.startswith("Final")} == set()
    assert {name for name, annotation in shown.items() if annotation[6:].partition("[")[0] in MUTABLE} == set()


def test_the_state_is_seen() -> None:
    """The check above looks at something."""
    shown = dict(public_attributes(ast.parse((STATE / "cluster_state.py").read_text())))
    assert {"brokers", "states", "reassignments", "replica_status"} <= shown.keys()


def test_nobody_reaches_behind_the_state() -> None:
    private = {
        f"{name_of(path)}: {ast.unparse(node)}"
        for path in OTHER_MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and isinstance(node.value, ast.Attribute)
        and node.value.attr in {"state", "_state"}
    }
    assert private == set()


def uses(path: Path) -> set[str]:
    """Return the names in a module by which a leadership takes effect."""
    used = set()
    for node in ast.walk(ast.parse(path.read_text())):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in {"write_states", "create_states", "restore_states"} or (
            name == "log_leadership" and ast.unparse(node).endswith("log.log_leadership")
        ):
            used.add(name)
    return used


def test_only_one_place_writes_leaderships_and_logs_them() -> None:
    assert [name_of(path) for path in CORE.rglob("*.py") if uses(path)] == [name_of(LEADERSHIPS)]
    assert uses(LEADERSHIPS) == {"write_states", "create_states", "restore_states", "log_leadership"}
