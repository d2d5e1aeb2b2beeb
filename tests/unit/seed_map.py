"""The checker of the seed map: it finds modules, functions and tests in a row that do not exist, and tests of another
kind. A row has three cells: a part of the specification, its place in the code, and the tests that show it. In the
second cell a function stands behind its module. If the cell names no module, it is the last one of the rows above. In
the third cell a letter gives the kind of the tests behind it, and *the same* stands for the tests of the row above."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

KINDS: Final = {"U": ("unit",), "S": ("spark",), "R": ("real", "contract", "e2e")}
"""The folders of tests of each kind: without servers, on Spark, with real servers."""
_TEST: Final = re.compile(r"((?:unit|spark|real|contract|e2e)/[\w/]+\.py)((?:::\w+)*)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:\.\w+)?")
_TOKEN: Final = re.compile(r"`([^`]+)`|(?<![\w`])([A-Z])(?= (?:`|the same))|(the same)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a table of the map."""

    section: str
    part: str
    where: str
    shown_by: str

    def __str__(self) -> str:
        return f"{self.section.partition(':')[0]}: {self.part[:60]}"


@dataclass(slots=True, kw_only=True)
class Checker:
    """Looks at the rows of a map in their order; each may lean on those above it in its section."""

    root: Path
    _section: str = ""
    _module: Path | None = None
    _has_tests: bool = False
    named: set[str] = field(default_factory=set)
    """The names that were found so far."""

    def problems(self, row: Row) -> list[str]:
        """Return the wrong statements of a row, in words; none if all names exist."""
        if row.section != self._section:
            self._section, self._module, self._has_tests = row.section, None, False
        return [*self._where(row.where), *self._check_shown_by(row.shown_by)]

    def _where(self, cell: str) -> Iterator[str]:
        before: Path | None = None
        for token in re.findall(r"`([^`]+)`", cell):
            if token.startswith(("/", ".../")):
                continue  # a znode
            if token.startswith('"'):
                if self._module is None or token not in self._module.read_text():
                    yield f"{token} does not stand in {self._module}"
            elif "/" in token or token.endswith((".py", ".yaml", ".md")):
                path = self._path(token, before)
                if path is None:
                    yield f"there is no {token}"
                    continue
                before = self._module = path
            elif not _NAME.fullmatch(token):
                yield f"{token} is neither a path nor a name"
            elif not self._is_defined(token):
                yield f"{self._module} does not define {token}"
            self.named.add(token)

    def _path(self, token: str, before: Path | None) -> Path | None:
        folders = [self.root / "controller_core", self.root, *([before.parent] if before else ())]
        return next((folder / token for folder in folders if (folder / token).exists()), None)

    def _is_defined(self, name: str) -> bool:
        """Return True if the module defines the name. A name that includes its class may be defined in another
        module."""
        if self._module is None or self._module.suffix not in (".py", ""):
            return False
        package = self._module if self._module.is_dir() else self._module.parent
        # a name with its class is unambiguous, so any module of the package may define it
        is_elsewhere = "." in name or self._module.is_dir()
        modules = package.rglob("*.py") if is_elsewhere else [self._module]
        if any(name in definitions(module) for module in modules):
            return True
        return "." in name and any(name in definitions(m) for m in (self.root / "controller_core").rglob("*.py"))

    def _check_shown_by(self, cell: str) -> Iterator[str]:
        kind, file = "", None
        has_tests = False
        for token, letter, same in _TOKEN.findall(cell):
            if letter:
                kind = letter
                if kind not in KINDS:
                    yield f"{kind} is no kind of tests"
            elif same:
                has_tests = self._has_tests
                if not has_tests:
                    yield "there are no tests above that could be the same"
            elif found := _TEST.fullmatch(token):
                has_tests, file = True, found[1]
                yield from self._test(kind, found[1], found[2])
            elif token.startswith("make "):
                if not re.search(rf"^{token[5:]}:", (self.root / "Makefile").read_text(), re.MULTILINE):
                    yield f"there is no {token}"
            elif file is None or token not in definitions(self.root / "tests" / file):
                yield f"{token} is no test, and {file} does not define it"
            self.named.add(token)
        self._has_tests |= has_tests
        if not cell.strip():
            yield "nothing says what shows it"

    def _test(self, kind: str, file: str, names: str) -> Iterator[str]:
        if kind not in KINDS:
            yield f"{file} has no kind"
        elif not file.startswith(KINDS[kind]):
            yield f"{file} is not of the kind {kind}"
        path = self.root / "tests" / file
        if not path.is_file():
            yield f"there is no tests/{file}"
            return
        wanted = names.removeprefix("::").replace("::", ".")
        names_of_tests = definitions(path) | list_imported_tests(path, self.root)
        tests = {name for name in names_of_tests if name.rpartition(".")[2].startswith("test_")}
        if wanted not in tests and (wanted or not tests):
            yield f"tests/{file} has no test {wanted}"


def rows(text: str) -> Iterator[Row]:
    """The rows of all tables of the map."""
    section = ""
    for line in text.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        cells = [cell.strip() for cell in line.strip("|").split(" |")] if line.startswith("|") else []
        if cells and cells[0] != "part" and set(line) - set("|- "):
            cells += [""] * (3 - len(cells))
            assert len(cells) == 3, f"a row has three cells: {line}"
            yield Row(section=section, part=cells[0], where=cells[1], shown_by=cells[2])


@cache
def definitions(module: Path) -> frozenset[str]:
    """The functions, classes, constants and attributes that a module defines; those of a class as `Class.name`."""
    return frozenset(_list_defined(ast.parse(module.read_text()), ""))


def list_imported_tests(module: Path, root: Path) -> frozenset[str]:
    """Return the names that a module imports from other modules of tests, to run their tests in another way."""
    imports = [node for node in ast.parse(module.read_text()).body if isinstance(node, ast.ImportFrom)]
    names: set[str] = set()
    for node in imports:
        if (node.module or "").startswith("tests."):
            given = {alias.name for alias in node.names}
            source = root / f"{str(node.module).replace('.', '/')}.py"
            names |= definitions(source) if given == {"*"} else given
    return frozenset(names)


def _list_defined(scope: ast.Module | ast.ClassDef, prefix: str) -> Iterator[str]:
    for node in scope.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from _list_defined(node, f"{prefix}{node.name}.")
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            yield from (prefix + name for name in _own_attributes(node))
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))


def _own_attributes(init: ast.FunctionDef) -> Iterator[str]:
    """Yield the names of attributes of `self` that are assigned."""
    for node in ast.walk(init):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
