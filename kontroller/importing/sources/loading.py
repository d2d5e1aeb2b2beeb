"""Loads YAML and JSON files as documents whose scalars are text.

A document that is not YAML becomes a `Problem`, and the other documents of the file are loaded."""

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final

import yaml

from kontroller.importing.values import Plain

_SEPARATOR: Final = re.compile(r"^\ufeff?---(?=\s|\Z)", re.MULTILINE)
_BYTE_ORDER_MARK: Final = "\ufeff"
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""PowerShell writes redirected output in UTF-16."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
_DEEPEST: Final = 100
"""Levels of a document. Formats of topics have fewer than twenty."""
_TOO_DEEP: Final = f"has more than {_DEEPEST} levels of lists and mappings"
_STRING: Final = "tag:yaml.org,2002:str"
_MAPPING: Final = "tag:yaml.org,2002:map"
_MERGE: Final = "tag:yaml.org,2002:merge"
_NULL: Final = "tag:yaml.org,2002:null"


class Fields(dict[str, Any]):
    """A mapping of a document."""

    __slots__ = ("line", "repeated")

    line: int | None
    """The line where it starts, from 1; None in JSON."""
    repeated: tuple[str, ...]
    """Keys that occur more than once. The last value counts, and other readers refuse them."""

    def __init__(self, pairs: Mapping[str, Any] | None = None, line: int | None = None) -> None:
        super().__init__(pairs or {})
        self.line = line
        self.repeated = ()

    def get_fields(self, name: str) -> "Fields":
        """Return a mapping below this one, empty if there is none. Raises `Misshapen`."""
        found = self.get(name)
        if found is None:
            return Fields(line=self.line)
        if not isinstance(found, Fields):
            raise Misshapen(f"{name} is no mapping")
        return found

    def list_fields(self, name: str) -> list["Fields"]:
        """Return the mappings of a list below this mapping, empty if there is none. Raises `Misshapen`."""
        found = self.get(name)
        if found is not None and not (isinstance(found, list) and all(isinstance(each, Fields) for each in found)):
            raise Misshapen(f"{name} is no list of mappings")
        return found or []

    def get_text(self, name: str) -> str | None:
        """Return a scalar below this mapping; None if there is none. Raises `Misshapen`."""
        found = self.get(name)
        if isinstance(found, list | Fields):
            raise Misshapen(f"{name} is no text")
        return None if found is None else str(found)

    def is_set(self, name: str) -> bool:
        """Return True if a text below this mapping, such as an annotation, is `true` in any case. Raises `Misshapen`."""
        return (self.get_text(name) or "").lower() == "true"


class Misshapen(Exception):
    """A document does not have the shape of its format. The message says where."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a file that has no meaning."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


def load_documents(file: str, data: bytes) -> list[Any]:
    """Return the documents of a file, with a `Problem` for each that has an error."""
    try:
        text = data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        return [Problem(file, f"is no text in UTF-8: {error.reason} at byte {error.start}")]
    if text.lstrip().startswith(("{", "[")):
        try:
            found = json.loads(text, object_pairs_hook=_make_fields, parse_int=Plain, parse_float=Plain)
            return [Problem(file, _TOO_DEEP) if _is_too_deep(found) else found]
        except RecursionError:
            return [Problem(file, _TOO_DEEP)]
        except ValueError:
            pass  # YAML in flow style and templates begin like JSON
    found = [each for first_line, part in _divide(text) for each in _load_part(file, part, first_line)]
    problem = next((each for each in found if isinstance(each, Problem)), None)
    if problem is not None and "{{" in text:
        return [Problem(problem.place, "the file is a template: render it first, for example with helm template")]
    return found


def find_repeated_keys(document: object) -> Iterator[str]:
    """Yield each key that occurs more than once in one mapping of a document."""
    waiting, seen = [document], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:  # an anchor that is used again
            continue
        seen.add(id(value))
        if isinstance(value, Fields):
            yield from value.repeated
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _is_too_deep(document: object) -> bool:
    level, seen = [document], set[int]()
    for _ in range(_DEEPEST + 1):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict | list) and id(value) not in seen:
                seen.add(id(value))
                inner.extend(value.values() if isinstance(value, dict) else value)
        level = inner
    return bool(level)


def _divide(text: str) -> Iterator[tuple[int, str]]:
    """Yield each document with the number of lines before it, because an error ends only the parser's document."""
    begins = [0, *(match.start() for match in _SEPARATOR.finditer(text)), len(text)]
    lines = 0
    for begin, end in pairwise(begins):
        part = text[begin:end]
        if not part.lstrip().startswith("%"):  # directives of the next document
            yield lines, part.lstrip(_BYTE_ORDER_MARK)
        lines += part.count("\n")


def _load_part(file: str, part: str, first_line: int) -> Iterator[Any]:
    loader = _Loader(part)
    loader.first_line = first_line + 1
    try:
        while loader.check_data():
            found = loader.get_data()
            yield Problem(f"{file}:{loader.first_line}", _TOO_DEEP) if _is_too_deep(found) else found
    except RecursionError:
        yield Problem(f"{file}:{loader.first_line}", _TOO_DEEP)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = loader.first_line + (mark.line if mark else 0)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        yield Problem(f"{file}:{line}", f"is not YAML: {problem}")
    finally:
        loader.dispose()


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C implementation if there is one
    """Leaves scalars as text, except null."""

    first_line = 1
    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, form) for tag, form in resolvers if tag in (_MERGE, _NULL)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _construct_text(loader: Any, node: yaml.ScalarNode) -> str:
    text: str = loader.construct_scalar(node)
    return text if node.style in ("'", '"', "|", ">") else Plain(text)


def _construct_fields(loader: Any, node: yaml.MappingNode) -> Fields:
    own_keys = [key.value for key, _ in node.value if key.tag != _MERGE and isinstance(key, yaml.ScalarNode)]
    loader.flatten_mapping(node)
    fields = Fields(line=loader.first_line + node.start_mark.line)
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key is no text", key_node.start_mark)
        fields[str(key_node.value)] = loader.construct_object(value_node, deep=True)
    fields.repeated = _find_repeated(own_keys)
    return fields


_Loader.add_constructor(_STRING, _construct_text)
_Loader.add_constructor(_MAPPING, _construct_fields)


def _make_fields(pairs: list[tuple[str, Any]]) -> Fields:
    fields = Fields({_replace_surrogates(key): _replace_surrogates(value) for key, value in pairs})
    fields.repeated = _find_repeated([key for key, _ in pairs])
    return fields


def _find_repeated(keys: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for key in keys if keys.count(key) > 1)) if len(set(keys)) < len(keys) else ()


def _replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which no file can have, as the decoders of Go do."""
    if isinstance(value, list):
        return [_replace_surrogates(each) for each in value]
    is_odd = isinstance(value, str) and _SURROGATE.search(value)
    return _SURROGATE.sub(_REPLACEMENT, value) if is_odd else value
