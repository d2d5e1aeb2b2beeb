"""Maps a change to the test files that cover it, each with the reason.

A test file is chosen if the change touches it, if the seed map names it beside a touched module, or if it imports a
touched module, directly or indirectly. The import graph is import-linter's (grimp), with two more kinds of edges: a
string with a module's name, because processes are started by it, and a string with a folder's name, such as "charts",
because tests read its files.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import grimp

from scripts.checks.estimates import WITH_SERVERS, Estimates
from tests.levels import matches, read_cases
from tests.unit.seed_map import rows

LEVEL_1: Final = Path("tests/level1.txt")
REPETITIONS: Final = 3
"""The number of runs of a touched file that needs real servers."""
_PACKAGES: Final = {
    "controller_core": "controller_core",
    "controller_planner": "controller_planner",
    "kontroller": "kontroller",
    "replica_broker": "replica_broker",
    "simulation": "simulation",
    "devcluster": "devcluster",
    "bench": "bench",
    "controller_operator": "operator/controller_operator",
}
_READ_FOLDERS: Final = frozenset({"charts", "crds", "docs", "examples", "images", "locks"})
"""Folders whose files tests read. A string with such a name counts as a use of all its files."""
_PODS: Final = "tests/e2e/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A test file that covers a change."""

    file: str
    reason: str
    rank: int
    """0: the change touches it; 1: the seed map names it; 2: it imports a touched module."""
    distance: int = 0
    """The number of imports between the file and the nearest touched module."""

    @property
    def needs_servers(self) -> bool:
        return self.file.startswith(WITH_SERVERS)

    @property
    def repetitions(self) -> int:
        return REPETITIONS if self.rank == 0 and self.needs_servers else 1

    def cost_s(self, estimates: Estimates) -> float:
        """Return the expected duration of all its repetitions."""
        return estimates.find_seconds(self.file) * self.repetitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The files that fit into a budget, and those that do not."""

    chosen: Sequence[Mapped]
    left_out: Sequence[Mapped]


def select(mapped: Sequence[Mapped], estimates: Estimates, budget_s: float) -> Selection:
    """Choose files in a fixed order until the budget is used.

    The order: touched files, files of the seed map, the nearest importers; among equals, files with real servers, then
    the longest not run. The expected durations decide what fits, not the clock, so two runs choose alike.
    """
    chosen: list[Mapped] = []
    left_out: list[Mapped] = []
    files = {each.file for each in mapped}
    age = {name: number for number, name in enumerate(estimates.ledger.longest_not_run(files))}
    for each in sorted(mapped, key=lambda each: (each.rank, each.distance, not each.needs_servers, age[each.file])):
        cost_s = each.cost_s(estimates)
        fits = cost_s <= budget_s
        budget_s -= cost_s if fits else 0
        (chosen if fits else left_out).append(each)
    return Selection(chosen=chosen, left_out=left_out)


class Project:
    """The sources of a checkout and their imports."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find_covering(self, changed: Iterable[str]) -> list[Mapped]:
        """Return the test files that cover the changed paths.

        Files that `make test` runs whole are left out, and files with pods, because `make chart` runs their shortest
        path.
        """
        paths = sorted(set(changed))
        found: dict[str, Mapped] = {}
        for each in [
            *_find_touched(paths, self.test_files),
            *self._find_in_seed_map(paths),
            *self._find_importing(paths),
        ]:
            found.setdefault(each.file, each)
        return [
            each for each in found.values() if not each.file.startswith(_PODS) and not self._is_in_level_1(each.file)
        ]

    @cached_property
    def test_files(self) -> frozenset[str]:
        """All test files, by their paths."""
        return frozenset(self._relative(path) for path in (self._root / "tests").rglob("test_*.py"))

    def _is_in_level_1(self, file: str) -> bool:
        """Return True if `make test` runs all of it, except cases marked `nightly` in a file with servers."""
        if file.startswith("tests/unit/"):
            return "mark.nightly" not in (self._root / file).read_text()
        return any(matches(line, file) for line in self._level_1)

    @cached_property
    def _level_1(self) -> list[str]:
        return [line for line in read_cases(self._root / LEVEL_1) if "::" not in line]

    def _find_in_seed_map(self, paths: Sequence[str]) -> Iterator[Mapped]:
        touched = set(paths)
        module = ""
        tests: list[str] = []
        for row in rows((self._root / "docs/seed-map.md").read_text()):
            named = [self._module_path(token) for token in re.findall(r"`([\w/.-]+\.py)`", row.where)]
            module = named[-1] if named else module
            tests = re.findall(r"`((?:spark|real|contract|e2e|unit)/[\w/]+\.py)", row.shown_by) or tests
            for path in touched.intersection(named or [module]):
                for test in tests:
                    yield Mapped(file=f"tests/{test}", reason=f"the seed map names it beside {path}", rank=1)

    def _module_path(self, token: str) -> str:
        below_core = f"controller_core/{token}"
        return below_core if (self._root / below_core).exists() else token

    def _find_importing(self, paths: Sequence[str]) -> Iterator[Mapped]:
        """Search breadth first from the touched modules to the test files that import them."""
        nearest = {node: path for path in paths for node in self._nodes(path)}
        distance = 0
        seen = set(nearest)
        while nearest:
            for node, path in sorted(nearest.items()):
                if node in self.test_files and distance:
                    reason = f"it imports {path}" if distance == 1 else f"it imports {path} over {distance} steps"
                    yield Mapped(file=node, reason=reason, rank=2, distance=distance)
            distance += 1
            following: dict[str, str] = {}
            for node, path in sorted(nearest.items()):
                for importer in self._importers[node] - seen:
                    following.setdefault(importer, path)
            seen |= set(following)
            nearest = following

    def _nodes(self, path: str) -> list[str]:
        """Return the nodes of a path: a Python file itself, or the top folder of any other file."""
        if path.endswith(".py"):
            return [path]
        top = path.partition("/")[0]
        return [f"{top}/"] if "/" in path else [path]

    @cached_property
    def _importers(self) -> Mapping[str, set[str]]:
        """The importers of each node. Nodes are paths of files, and folders such as `charts/`."""
        importers: dict[str, set[str]] = defaultdict(set)
        paths = self._paths_of_modules
        graph = grimp.build_graph(*_PACKAGES, cache_dir=None)
        for module in graph.modules:
            for imported in graph.find_modules_directly_imported_by(module):
                if module in paths and imported in paths:
                    importers[paths[imported]].add(paths[module])
        for path in sorted(self._root.glob("tests/**/*.py")) + sorted(self._root.glob("scripts/**/*.py")):
            for imported in self._find_imported(path):
                importers[imported].add(self._relative(path))
        for path in sorted(self._root.glob("devcluster/**/*.py")):
            for named in self._find_named(ast.parse(path.read_text())):
                importers[named].add(self._relative(path))
        for conftest in self._root.glob("tests/**/conftest.py"):
            for test in conftest.parent.rglob("test_*.py"):
                importers[self._relative(conftest)].add(self._relative(test))
        return importers

    def _find_imported(self, path: Path) -> Iterator[str]:
        """Yield the files that a test or test helper imports or names."""
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            yield from (self._paths_of_modules[name] for name in names if name in self._paths_of_modules)
        yield from self._find_named(tree)

    def _find_named(self, tree: ast.AST) -> Iterator[str]:
        """Yield the modules that are started by name, and the folders whose files are read."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name in (node.value, f"{node.value}.__main__"):
                    if name in self._paths_of_modules:
                        yield self._paths_of_modules[name]
                top = node.value.partition("/")[0]
                if top in _READ_FOLDERS:
                    yield f"{top}/"

    @cached_property
    def _paths_of_modules(self) -> Mapping[str, str]:
        """The file of each module, by its import name."""
        found = {}
        for package, folder in {**_PACKAGES, "tests": "tests", "scripts": "scripts"}.items():
            for path in (self._root / folder).rglob("*.py"):
                inner = path.relative_to(self._root / folder).with_suffix("").parts
                name = ".".join((package, *(inner[:-1] if inner[-1] == "__init__" else inner)))
                found[name] = self._relative(path)
        return found

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()


def _find_touched(paths: Iterable[str], test_files: frozenset[str]) -> Iterator[Mapped]:
    for path in paths:
        if path in test_files:
            yield Mapped(file=path, reason="the change touches it", rank=0)
