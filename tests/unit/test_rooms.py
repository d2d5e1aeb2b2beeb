"""A house of rooms: no folder has more modules than one sees at a glance, and ARCHITECTURE.md shows those there are."""

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
HOUSE: Final = (
    "bench",
    "kontroller",
    "controller_core",
    "controller_planner",
    "devcluster",
    "operator",
    "replica_broker",
    "scripts",
    "simulation",
    "tests",
)
MOST_MODULES: Final = 12
MOST_LINES: Final = 120
"""Two pages."""
NO_ROOM_OF_ITS_OWN: Final = {"__init__.py", "__main__.py", "conftest.py"}
MODULES: Final = Counter(
    path.parent.relative_to(ROOT).as_posix()
    for folder in HOUSE
    for path in (ROOT / folder).rglob("*.py")
    if path.name not in NO_ROOM_OF_ITS_OWN
)


def test_the_folders_are_found() -> None:
    assert {
        "controller_core/model",
        "operator/controller_operator/plans/topic",
        "tests/unit/operator",
    } <= MODULES.keys()


def test_no_folder_has_more_than_a_dozen_modules() -> None:
    full = {folder: modules for folder, modules in MODULES.items() if modules > MOST_MODULES}
    assert full == {}, "give what belongs together a folder of its own"


ARCHITECTURE: Final = (ROOT / "ARCHITECTURE.md").read_text()
TEXTS: Final = ARCHITECTURE + "".join(
    (ROOT / "docs" / page).read_text() for page in ("glossary.md", "how-it-works.md", "pipeline.md")
)
PLACES: Final = sorted(set(re.findall(r"`(\w[\w-]*(?:/[\w.-]+)+)`", TEXTS)))
PICTURE: Final = "\n".join(re.findall(r"^    .+$", ARCHITECTURE, re.MULTILINE))
PICTURED: Final = (
    "controller_core",
    "controller_core/controller",
    "kontroller",
    "operator/controller_operator",
    "kontroller/history",
    "replica_broker",
)


def test_a_place_that_is_named_exists() -> None:
    tops = [ROOT / above for above in ("", "controller_core", "kontroller/history")]
    assert [place for place in PLACES if not any((top / place).exists() for top in tops)] == []


def test_the_places_are_found() -> None:
    assert {"controller/operations", "zk/fenced.py", "operator/controller_operator/plans"} <= {*PLACES}


@pytest.mark.parametrize("house", PICTURED)
def test_every_room_is_in_the_picture(house: str) -> None:
    rooms = {path.parent.name for path in (ROOT / house).glob("*/__init__.py")}
    assert rooms
    assert {room for room in rooms if not re.search(rf"\b{room}\b", PICTURE)} == set()


def test_the_architecture_is_read_in_one_sitting() -> None:
    assert len(ARCHITECTURE.splitlines()) <= MOST_LINES


VOCABULARY: Final = "devcluster.waiting.vocabulary"
OTHER_SERVERS: Final = {ROOT / "tests/real/operator/test_resources.py"}
"""Waits for an API server to serve a kind, not for a Kafka cluster."""


def test_a_test_waits_in_the_words_of_the_vocabulary_and_has_no_twin_of_them() -> None:
    """A cluster may have a method of the same name, which calls the word."""
    vocabulary = (ROOT / VOCABULARY.replace(".", "/")).with_suffix(".py").read_text()
    words = set(re.findall(r"^def (wait_until_\w+)", vocabulary, re.MULTILINE))
    assert "wait_until_served" in words
    twins: dict[str, set[str]] = {}
    for path in {*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")} - OTHER_SERVERS:
        if "def wait_until_" not in (text := path.read_text()):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == VOCABULARY]
        defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        if twin := (defined & words) - {each.name for node in imports for each in node.names}:
            twins[path.relative_to(ROOT).as_posix()] = twin
    assert twins == {}, f"call the word of {VOCABULARY}"
