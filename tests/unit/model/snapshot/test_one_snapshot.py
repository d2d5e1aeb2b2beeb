"""The cluster as seen is one class: `Snapshot`. Others have the forms of what is sent, written or shown."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[4]
PACKAGES: Final = ("controller_core", "kontroller", "operator/controller_operator")
OF_OTHERS: Final = {
    "controller_core/client/loads/cluster_loads.py": "the rows of a file of loads",
    "controller_core/journal/batches.py": "the state that the journal records",
    "controller_core/journal/fold.py": "the rows of the journal",
}
"""The modules whose form is given from outside."""
CONTENT: Final = frozenset({"topics", "partitions", "states"})
NAMES: Final = frozenset({"int", "int | None", "bytes", "tuple[str, ...]", "frozenset[TopicName]"})
"""The types of fields that have counts, names or undecoded answers, but no content."""


def find_classes(path: Path) -> Iterator[str]:
    """Yield the classes of a module with the brokers of a cluster and the content of its topics or partitions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            fields = {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign)
                and isinstance(each.target, ast.Name)
                and (each.target.id not in CONTENT or ast.unparse(each.annotation) not in NAMES)
            }
            if "brokers" in fields and fields & CONTENT:
                yield node.name


def test_the_cluster_as_seen_is_one_class() -> None:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix(): list(find_classes(path)) for path in paths}
    own = {path: names for path, names in found.items() if names and path not in OF_OTHERS}
    assert own == {"controller_core/model/snapshot/cluster.py": ["Snapshot"]}
    assert [path for path in OF_OTHERS if not found[path]] == []
