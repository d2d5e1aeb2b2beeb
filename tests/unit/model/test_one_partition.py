"""A partition's leader and ISR are fields of few classes: the model's, and one for each form in which others have them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PACKAGES: Final = ("controller_core", "kontroller", "operator/controller_operator")
OF_OTHERS: Final = {
    "controller_core/client/loads/cluster_loads.py": "rows of a file of loads",
    "controller_core/journal/records.py": "lines of the journal",
    "controller_core/recorder/metadata_log/records.py": "records of Kafka's metadata log",
    "controller_core/wire/messages/leader_and_isr.py": "a message to brokers",
    "controller_core/wire/messages/update_metadata.py": "a message to brokers",
    "operator/controller_operator/resources/common.py": "the status of resources",
}
"""The modules whose form is given from outside: what is sent, written or shown there."""
MOST: Final = 2


def find_classes(path: Path) -> Iterator[str]:
    """Yield the classes of a module with the fields `leader` and `isr`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            fields = {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            }
            if {"leader", "isr"} <= fields:
                yield node.name


def test_leader_and_isr_are_fields_of_few_classes() -> None:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix(): list(find_classes(path)) for path in paths}
    own = [name for path, names in found.items() for name in names if path not in OF_OTHERS]
    assert "LeaderAndIsr" in own
    assert len(own) <= MOST, own
    assert [path for path in OF_OTHERS if not found[path]] == []
