"""The clusters that are folded again after new records, also those whose records named no cluster."""

import ast
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import kontroller.history
from kontroller.history.folding.what_is_new import Pair, code, definitions, find_clusters_to_fold

ELSEWHERE = (
    "controller_core/security/",
    "kontroller/history/delta/",
    "kontroller/history/generations/",
    "kontroller/history/progress.py",
)
PAIRS = st.sets(st.tuples(st.sampled_from(["", "a", "b", "c"]), st.sampled_from(["/1", "/2", "/3"])))


def owners(pairs: set[Pair]) -> dict[str, str]:
    """Return the owner of the records without a cluster, for each journal that has such records."""
    named = {journal: {cluster for cluster, of in pairs if of == journal and cluster} for _, journal in pairs}
    nameless = {journal for cluster, journal in pairs if not cluster}
    return {journal: min(named[journal]) if len(named[journal]) == 1 else "" for journal in nameless}


def test_is_what_is_new_alone_where_every_record_names_its_cluster() -> None:
    pairs = {("a", "/1"), ("b", "/2"), ("b", "/1")}
    assert find_clusters_to_fold({"a"}, {("a", "/1")}, pairs) == {"a"}


def test_is_also_whose_the_records_without_a_cluster_were() -> None:
    before, new = {("", "/1"), ("a", "/1"), ("c", "/2")}, {("b", "/1")}
    assert find_clusters_to_fold({"b"}, new, before | new) == {"", "a", "b"}


@given(before=PAIRS, new=PAIRS)
def test_has_all_whose_records_without_a_cluster_are_more_or_fewer(before: set[Pair], new: set[Pair]) -> None:
    changed = {cluster for cluster, _ in new}
    again = find_clusters_to_fold(changed, new, before | new)
    was, now = owners(before), owners(before | new)
    moved = {journal for journal in now if was.get(journal) != now[journal] or ("", journal) in new}
    assert {now[journal] for journal in moved} | {was[journal] for journal in moved & was.keys()} <= again
    assert changed <= again <= {cluster for cluster, _ in before | new}


def list_imported(file: Path) -> Iterator[str]:
    """The files of modules of ours that a module imports, or imports from."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(("controller_", "kontroller.")):
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                yield f"{name.replace('.', '/')}.py"


def test_the_code_that_makes_the_layers_is_all_that_it_imports_but_for_where_they_are_kept() -> None:
    root = Path(kontroller.history.__file__).parents[2]
    code_files = {str(file.relative_to(root)) for file in code()}
    assert {"kontroller/history/transforms/intervals.py", "controller_core/model/wording.py"} <= code_files
    own = [file for file in code() if "kontroller/history" in file.as_posix() and file.suffix == ".py"]
    found = {name for file in own for name in list_imported(file) if (root / name).is_file()}
    assert {name for name in found - code_files if not name.startswith(ELSEWHERE)} == set()


def test_the_code_that_makes_the_layers_has_one_name_in_all_processes() -> None:
    assert len(definitions()) == 64
    assert definitions() == definitions.__wrapped__()
