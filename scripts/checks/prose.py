"""Counts three habits that make prose hard to read, over all modules. The counts in prose.json may only fall.

The habits are docstrings that open with a question word, sentences that do, and functions that are named by a participle
or a preposition. The texts of options and fields count as docstrings. CONTRIBUTING.md says what to write instead. `make
lint` fails if a count rises. `make prose` lists every instance, and writes the counts if they fell.
"""

import ast
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

BASELINE: Final = Path("scripts/checks/prose.json")

_OPENING: Final = re.compile(r"(?:What|Who|Whom|Whose|Which|How|Why|Where|Whether)\b(?![^.?!]*\?)")
"""A real question is not counted."""
_SENTENCE: Final = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`])")
_TOOLS: Final = re.compile(r"#\s*(?:noqa|type:|fmt:|pragma|ruff|mypy:)")
"""Comments for tools."""
_PREPOSITIONS: Final = re.compile(
    r"(?:above|after|around|as|at|before|behind|below|beneath|beside|between|beyond|by|during|for|from|in|inside|into|of|off"
    r"|out|outside|over|past|per|since|through|to|toward|under|until|up|upon|via|with|within|without)"
)
"""`on_...` is missing, because it is the usual name of an event handler."""
_PARTICIPLES: Final = re.compile(
    r"(?:begun|bound|bought|brought|built|chosen|come|done|drawn|driven|fallen|felt|found|given|gone|grown|had|heard|held"
    r"|hidden|kept|known|laid|led|left|lent|lost|made|meant|met|paid|said|seen|sent|shown|spent|split|stood|sworn|taken"
    r"|taught|thought|thrown|told|understood|won|worn|written|.{3,}(?:ed|ing))"
)
_NO_PARTICIPLES: Final = re.compile(
    r"(?:embed|(?:every|some|no)thing|evening|exceed|need|proceed|setting|speed|string|succeed)"
)


class Habit(StrEnum):
    """A habit that makes prose hard to read. Its value is the key of its count."""

    DOCSTRING = "docstrings that open with a question word"
    SENTENCE = "sentences that open with a question word"
    NAME = "functions named by a participle or a preposition"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An instance of a habit."""

    habit: Habit
    path: str
    line: int
    words: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.habit.name.lower()}: {self.words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The instances of each habit, and the numbers of docstrings, sentences and functions."""

    places: tuple[Place, ...]
    totals: Counter[Habit]

    @property
    def counts(self) -> dict[str, int]:
        """The number of instances of each habit, by its words."""
        found = Counter(place.habit for place in self.places)
        return {str(habit): found[habit] for habit in Habit}


def read_findings(source: str, path: str) -> Findings:
    """Return the instances of each habit in one module. Raises `SyntaxError`."""
    tree = ast.parse(source)
    totals: Counter[Habit] = Counter()
    places: list[Place] = []

    def note(habit: Habit, line: int, words: str, *, is_instance: bool) -> None:
        totals[habit] += 1
        if is_instance:
            places.append(Place(habit=habit, path=path, line=line, words=words))

    for line, text in _docstrings(tree):
        opening = text.split("\n", 1)[0]
        note(Habit.DOCSTRING, line, opening, is_instance=_OPENING.match(text) is not None)
    for line, text in (*_docstrings(tree), *_comments(source)):
        for sentence in _SENTENCE.split(" ".join(text.split())):
            note(Habit.SENTENCE, line, sentence, is_instance=_OPENING.match(sentence) is not None)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_value(node):
            note(Habit.NAME, node.lineno, node.name, is_instance=_is_bare(node.name))
    return Findings(places=tuple(places), totals=totals)


def read_all(root: Path, paths: Iterable[str]) -> Findings:
    """Return the findings of all these modules."""
    each = [read_findings((root / path).read_text(), path) for path in paths]
    return Findings(
        places=tuple(place for findings in each for place in findings.places),
        totals=sum((findings.totals for findings in each), Counter()),
    )


def read_baseline(root: Path) -> dict[str, int]:
    """Return the highest allowed count of each habit, by its words."""
    baseline: dict[str, int] = json.loads((root / BASELINE).read_text())
    return baseline


def write_baseline(root: Path, counts: dict[str, int]) -> None:
    """Write the current counts as the highest allowed ones."""
    (root / BASELINE).write_text(json.dumps(counts, indent=2) + "\n")


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of modules, classes, functions and values, and the texts of options and fields, by line."""
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="help" | "description", value=ast.Constant(value=str(text))):
                yield node.value.lineno, text.strip()
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.lineno, text.strip()


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield each block of comments as one text, with its first line. Comments for tools are skipped."""
    begun, words, last = 0, "", 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _TOOLS.match(token.string):
            continue
        text = token.string.lstrip("# ").strip()
        if token.start[0] == last + 1:
            words += f" {text}"
        else:
            if words:
                yield begun, words
            begun, words = token.start[0], text
        last = token.start[0]
    if words:
        yield begun, words


def _is_value(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return True for properties, whose names are nouns or adjectives, and for fixtures."""
    names = {ast.unparse(each).split("(")[0].rsplit(".", 1)[-1] for each in function.decorator_list}
    return bool(names & {"property", "cached_property", "setter", "computed_field", "fixture"})


def _is_bare(name: str) -> bool:
    first = name.strip("_").split("_")[0]
    if _NO_PARTICIPLES.fullmatch(first):
        return False
    return bool(_PREPOSITIONS.fullmatch(first) or _PARTICIPLES.fullmatch(first))
