"""Every field of a resource, with allowed values, values at the edge, and values beyond it.

The walk goes through the OpenAPI schema of a definition, so it covers new fields, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

Path = tuple[str | int, ...]
Value = Any
_LARGEST_WALKED = 10_000
"""Sizes have tests of their own; here a list or a text of some megabytes says nothing more."""


def walk_fields(schema: Mapping[str, Any], base: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each change with the changed spec: one field at a time."""
    for path, field in _fields(schema, ()):
        for value in _values(field):
            spec = deepcopy(dict(base))
            if _put(spec, path, value):
                yield f"{'.'.join(map(str, path))} = {str(value)[:60]}", spec
        spec = deepcopy(dict(base))
        if _drop(spec, path):
            yield f"{'.'.join(map(str, path))} left out", spec


def _fields(schema: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for name, field in schema.get("properties", {}).items():
        yield (*path, name), field
        yield from _fields(field, (*path, name))
    if isinstance(items := schema.get("items"), Mapping):
        yield (*path, 0), items
        yield from _fields(items, (*path, 0))


def _values(field: Mapping[str, Any]) -> Sequence[Value]:
    match field.get("type"):
        case "integer":
            edges = [field[edge] + step for edge, step in _EDGES if edge in field]
            return [*edges, 0, -1, 1 << 31, 1 << 63, 1.5, "three", True, None]
        case "boolean":
            return [True, False, "yes", None]
        case "string":
            lengths = [field[edge] + step for edge, step in _LENGTHS if edge in field]
            texts = ["a" * length for length in lengths if 0 <= length <= _LARGEST_WALKED]
            return [*field.get("enum", ()), *texts, "", "Ünsinn \u0000 ☃", "../..", "a\nb", 7, None]
        case "array":
            return [[], None, "one", {}, [None], [{}]]
        case _:
            return [{}, {"stranger": "here"}, None, "text", []]


_EDGES = (("minimum", 0), ("maximum", 0), ("minimum", -1), ("maximum", 1))
_LENGTHS = (("minLength", 0), ("maxLength", 0), ("minLength", -1), ("maxLength", 1))


def _put(spec: Any, path: Path, value: Value) -> bool:
    """Set a field. Return False if the base has no place for it."""
    *above, name = path
    for each in above:
        if isinstance(spec, dict) and isinstance(each, str):
            spec = spec.setdefault(each, {})
        elif isinstance(spec, list) and isinstance(each, int) and each < len(spec):
            spec = spec[each]
        else:
            return False
    if isinstance(spec, list) and isinstance(name, int):
        spec[name : name + 1] = [value]
        return True
    if not isinstance(spec, dict) or not isinstance(name, str):
        return False
    spec[name] = value
    return True


def _drop(spec: Any, path: Path) -> bool:
    *above, name = path
    for each in above:
        if isinstance(spec, dict):
            spec = spec.get(each)
        elif isinstance(spec, list) and isinstance(each, int) and each < len(spec):
            spec = spec[each]
    if isinstance(spec, dict) and name in spec:
        del spec[name]
        return True
    return False
