"""A structural schema as the rows of a table: every field with its type, bounds, default and description."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from controller_operator.resources.schema import Rule

Schema = Mapping[str, Any]

_RULES: Final = "x-kubernetes-validations"
HEADER: Final = "| field | type | description |\n| --- | --- | --- |\n"
_SEVERAL: Final = (
    ("", "minimum", "maximum"),
    (" characters", "minLength", "maxLength"),
    (" entries", "minItems", "maxItems"),
    (" keys", "minProperties", "maxProperties"),
)
"""The bounded quantities and their keywords. A maximum of 0 only says that a scalar is no list and no object."""


def table(name: str, schema: Schema, *, leave_out: frozenset[str] = frozenset()) -> str:
    """Return a table of all fields below a schema. A path in `leave_out` has one row, without its inner fields."""
    rows = _rows(name, schema, leave_out)
    return HEADER + "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def refusals(name: str, schema: Schema) -> list[tuple[str, Rule]]:
    """Return the rules that the API server enforces, each with the path that it guards."""
    found = [(name, Rule(each["rule"], each["message"])) for each in schema.get(_RULES, ())]
    for path, inner, _ in _inner(name, schema):
        found += refusals(path, inner)
    return found


def cell(text: str) -> str:
    """Return a text for the inside of a table."""
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*").replace("][", r"]\[")


def _rows(name: str, schema: Schema, leave_out: frozenset[str]) -> Iterator[tuple[str, ...]]:
    for path, inner, is_required in _inner(name, schema):
        if "description" in inner:
            default = "required" if is_required else f"default {_code(inner['default'])}" if "default" in inner else ""
            said = "; ".join(filter(None, (_type(inner), default, _bounds(inner))))
            yield f"`{path}`", said, cell(inner["description"])
        if path not in leave_out:
            yield from _rows(path, inner, leave_out)


def _inner(name: str, schema: Schema) -> Iterator[tuple[str, Schema, bool]]:
    """Yield the schemas right below one: the fields of an object, the entries of a list, the values of a map."""
    for field, inner in schema.get("properties", {}).items():
        yield f"{name}.{field}", inner, field in schema.get("required", ())
    if "items" in schema:
        # The row of the list describes its entries, so only the fields of an entry's object are rows.
        yield f"{name}[]", {key: said for key, said in schema["items"].items() if key != "description"}, False
    if "additionalProperties" in schema:
        yield (
            f"{name}.KEY",
            {key: said for key, said in schema["additionalProperties"].items() if key != "description"},
            False,
        )


def _type(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map to {_type(schema['additionalProperties'])}"
    if "type" not in schema:
        return "string, number or boolean"
    return str(schema.get("format") if schema.get("format") == "date-time" else schema["type"])


def _bounds(schema: Schema) -> str:
    said = [_range(schema, unit, low, high) for unit, low, high in _SEVERAL]
    entries = schema.get("items") or schema.get("additionalProperties")
    if entries and entries.get("type") != "object" and _bounds(entries):
        said.append(f"each {_bounds(entries)}")
    if "x-kubernetes-list-map-keys" in schema:
        said.append(f"one for each {' and '.join(schema['x-kubernetes-list-map-keys'])}")
    if "pattern" in schema:
        said.append(_code(schema["pattern"]))
    return "; ".join(each for each in said if each)


def _range(schema: Schema, unit: str, low: str, high: str) -> str:
    least, most = schema.get(low), schema.get(high)
    if least is not None and most is not None:
        return f"{least:,} to {most:,}{unit}"
    if most:
        return f"at most {most:,}{unit}"
    return f"at least {least:,}{unit}" if least is not None else ""


def _code(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "`" + text.replace("|", r"\|") + "`"
