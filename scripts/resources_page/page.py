"""The page itself: each kind with examples, lifecycle and fields, then the conditions and reasons that all kinds
share."""

from collections.abc import Callable, Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

import yaml

from controller_operator.resources.common import Status
from controller_operator.resources.conditions import ConditionType, Reason
from scripts.resources_page.advice import advice_on_condition, remedy
from scripts.resources_page.fields import HEADER, Schema, cell, refusals, table
from scripts.resources_page.lifecycles import diagram

EXAMPLES: Final = Path("examples")

_BEGIN: Final = cleandoc("""
    <!-- Generated from the models in controller_operator/resources by `make crds`: change those instead. -->
    Every kind of `kontroller.dev/v1alpha1`, its fields and its conditions; `kubectl explain` shows the fields, too.
    Fields are optional unless marked as required. `[]` stands for an entry of a list, `KEY` for a key of a map.

    Annotations:

    - `kontroller.dev/pause: "true"` (or any value except `false`) stops all work on the object; `status.nextSteps` then
      shows its next steps.
    - `kontroller.dev/reconcile-requested-at`, with a new value, makes the operator reconcile the object again.
    - `kontroller.dev/delete-before-dependents: "true"` lets a KafkaCluster be deleted before the objects that refer to it;
      their topics and data stay.
    - `kontroller.dev/accept-cluster`, with the id of a Kafka cluster, makes the operator carry out the object, or all
      objects of a KafkaCluster, in that cluster although the status has another cluster's id.
""")
_CONDITIONS: Final = "status.conditions"
_SHARED: Final = tuple(f"status.{Status.model_fields[name].alias}" for name in Status.model_fields)
"""The fields that the status of every kind has. They have one table for all kinds."""


def page(definitions: Mapping[str, Mapping[str, Any]], examples: Path = EXAMPLES) -> str:
    """Return the page for the CustomResourceDefinitions by kind. Raises `NoAdvice`, `NoLifecycle`."""
    contents = "".join(f"[{kind}](#{kind.lower()}) · " for kind in definitions)
    contents += "[conditions](#conditions) · [reasons](#reasons)\n"
    found = _examples(examples)
    kinds = (_kind(kind, crd, found) for kind, crd in definitions.items())
    any_kind = next(iter(definitions.values()))
    return "\n".join([f"{_BEGIN}\n", contents, *kinds, _condition_section(any_kind), _reason_section()])


def _kind(kind: str, crd: Mapping[str, Any], examples: list[tuple[Path, str, str]]) -> str:
    names, schema = crd["spec"]["names"], _schema(crd)
    spec, status = schema["properties"]["spec"], schema["properties"]["status"]
    phases = status["properties"].get("phase", {}).get("enum", ())
    return "\n".join(
        [
            f"## {kind}\n",
            f"{schema['description']}\n",
            f"List them with `kubectl get {names['plural']}`, or the short name `{names['shortNames'][0]}`.\n",
            *_render_examples(kind, examples),
            f"### The life of a {kind}\n",
            diagram(kind, tuple(phases)),
            f"### The spec of a {kind}\n",
            table("spec", spec),
            *_render_refusals(schema),
            f"### The status of a {kind}\n",
            "Beside the [fields of every status](#conditions):\n",
            table("status", _pick(status, lambda path: path not in _SHARED)),
        ]
    )


def _pick(status: Schema, wanted: Callable[[str], bool]) -> Schema:
    """Return the schema of a status with some of its fields."""
    fields = {name: field for name, field in status["properties"].items() if wanted(f"status.{name}")}
    return {**status, "properties": fields}


def _version(crd: Mapping[str, Any]) -> Mapping[str, Any]:
    (version,) = crd["spec"]["versions"]
    return version  # type: ignore[no-any-return]


def _schema(crd: Mapping[str, Any]) -> Schema:
    return _version(crd)["schema"]["openAPIV3Schema"]  # type: ignore[no-any-return]


def _render_examples(kind: str, examples: list[tuple[Path, str, str]]) -> Iterator[str]:
    """Yield the shortest example of the kind, and links to the files of the others."""
    of_kind = sorted(((path, text.strip()) for path, name, text in examples if name == kind), key=_length)
    for path, text in of_kind[:1]:
        yield f"From {_link(path)}:\n"
        yield f"```yaml\n{text}\n```\n"
    others = sorted({path for path, _ in of_kind[1:]} - {path for path, _ in of_kind[:1]})
    if others:
        yield f"Other examples: {', '.join(map(_link, others))}.\n"


def _length(example: tuple[Path, str]) -> int:
    return len(example[1])


def _link(path: Path) -> str:
    return f"[{path.as_posix()}](../{path.as_posix()})"


def _examples(folder: Path) -> list[tuple[Path, str, str]]:
    """Return every object of the examples: its file below the folder, its kind, and its text with comments."""
    return [
        (Path(folder.name) / path.relative_to(folder), yaml.safe_load(text)["kind"], text)
        for path in sorted(folder.glob("*.yaml"))
        for text in path.read_text().split("\n---\n")
    ]


def _render_refusals(schema: Schema) -> Iterator[str]:
    spec_alone = {key: said for key, said in schema["properties"].items() if key != "status"}
    found = refusals("", {**schema, "properties": spec_alone})
    if found:
        yield "The API server refuses what breaks one of these rules:\n"
        said = dict.fromkeys((path.removeprefix("."), rule.message) for path, rule in found)
        yield "".join(f"- {f'`{path}`' if path else 'the object'}: {cell(message)}\n" for path, message in said)


def _condition_section(crd: Mapping[str, Any]) -> str:
    status = _schema(crd)["properties"]["status"]
    conditions = status["properties"]["conditions"]
    fields = conditions["items"]["properties"]
    told_below = {name: {**fields[name], "description": "One of those below."} for name in ("type", "reason")}
    rows = "".join(f"| `{each}` | {' | '.join(map(cell, advice_on_condition(each)))} |\n" for each in ConditionType)
    shown = table(_CONDITIONS, {"items": {**conditions["items"], "properties": {**fields, **told_below}}})
    shared = table("status", _pick(status, _SHARED.__contains__), leave_out=frozenset({_CONDITIONS}))
    return (
        f"## Conditions\n\nThe status of every kind has these fields:\n\n{shared}{shown.removeprefix(HEADER)}"
        f"\n| condition | what it means | what to do |\n| --- | --- | --- |\n{rows}"
    )


def _reason_section() -> str:
    rows = "".join(f"| `{each}` | {cell(each.meaning)} | {remedy(each)} |\n" for each in Reason)
    return f"## Reasons\n\n| reason | what it means | what to do |\n| --- | --- | --- |\n{rows}"
