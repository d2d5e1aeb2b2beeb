"""Makes the CustomResourceDefinitions from the models, so that a resource is described in one place only.

Pydantic's JSON Schema becomes a structural schema, which Kubernetes requires: every reference is replaced by its
target, without `null` and without keywords that the API server refuses. The same models always give the same bytes.
"""

from collections.abc import Mapping
from inspect import getdoc
from typing import Any, Final

from controller_operator.resources.common import CATEGORY, GROUP, NOTHING_OBSERVED, VERSION, Column, Resource
from controller_operator.resources.schema import Rule, rules

_RULES: Final = "x-kubernetes-validations"
_KEPT: Final = (
    "description", "type", "format", "enum", "default", "pattern", "minimum", "maximum", "minLength", "maxLength",
    "minItems", "maxItems", "maxProperties", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields", _RULES, "required",
)  # fmt: skip
_NESTED: Final = ("items", "additionalProperties", "properties")
_DROPPED: Final = {"title", "$defs"}


class SchemaError(Exception):
    """A model uses something that a structural schema cannot express. The message names it."""


def custom_resource_definition(kind: type[Resource[Any, Any]]) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind. Raises `SchemaError` if a model does not fit into one."""
    definition = kind.definition
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition.crd_name},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": definition.kind,
                "listKind": f"{definition.kind}List",
                "plural": definition.plural,
                "singular": definition.kind.lower(),
                "shortNames": [definition.short_name],
                "categories": [CATEGORY],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(column) for column in definition.columns],
                    "schema": {"openAPIV3Schema": _object_schema(kind)},
                }
            ],
        },
    }


def _object_schema(kind: type[Resource[Any, Any]]) -> dict[str, Any]:
    model = kind.model_json_schema(by_alias=True)
    models = model["$defs"]
    spec, status = (_structural(model["properties"][name], models) for name in ("spec", "status"))
    status = {**_strip_defaults(status), "default": {"observedGeneration": NOTHING_OBSERVED}}
    schema: dict[str, Any] = {
        "description": _one_line(getdoc(kind) or ""),
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"description": f"Version of this schema: {GROUP}/{VERSION}.", "type": "string"},
            "kind": {"description": f"Kind of the object: {kind.definition.kind}.", "type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
    return {**schema, **_object_rules(kind.definition.rules)}


def _object_rules(of_the_object: tuple[Rule, ...]) -> Mapping[str, Any]:
    return rules(*of_the_object) if of_the_object else {}


def _structural(schema: Mapping[str, Any], models: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema of pydantic's as a structural one. `models` are the targets of its references."""
    schema = _resolve(schema, models)
    unknown = schema.keys() - {*_KEPT, *_NESTED, *_DROPPED}
    if unknown:
        raise SchemaError(f"a structural schema has no {', '.join(sorted(unknown))}: {schema!r}")
    result = {keyword: schema[keyword] for keyword in _KEPT if keyword in schema}
    if "description" in result:
        result["description"] = _one_line(result["description"])
    if result.get("default") in (None, [], {}):
        result.pop("default", None)
    if "items" in schema:
        result["items"] = _structural(schema["items"], models)
    # The API server refuses additionalProperties: false. Pruning and kubectl's strict validation have its effect
    # anyway.
    if schema.get("additionalProperties"):
        result["additionalProperties"] = _structural(schema["additionalProperties"], models)
    if "properties" in schema:
        result["properties"] = {name: _structural(each, models) for name, each in schema["properties"].items()}
    return result


def _resolve(schema: Mapping[str, Any], models: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace `$ref` and `anyOf: [X, null]` by their targets. Keywords beside them override the target's."""
    if "$ref" in schema:
        target = models[schema["$ref"].removeprefix("#/$defs/")]
        beside = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    elif "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
        if len(choices) != 1:
            raise SchemaError(f"a structural schema has one type for each value, not {choices!r}")
        target = choices[0]
        beside = {keyword: value for keyword, value in schema.items() if keyword != "anyOf"}
    else:
        return schema
    merged = {**target, **beside}
    if _RULES in target and _RULES in beside:
        merged[_RULES] = [*target[_RULES], *beside[_RULES]]
    return _resolve(merged, models)


def _strip_defaults(schema: Any) -> Any:
    """Remove the defaults, because the API server would write them into a status that nobody has observed."""
    if isinstance(schema, list):
        return [_strip_defaults(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {keyword: _strip_defaults(value) for keyword, value in schema.items() if keyword != "default"}


def _column(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    return {**shown, "description": column.description, **({"priority": 1} if column.wide else {})}


def _one_line(text: str) -> str:
    return " ".join(text.split())
