"""Moves of replicas as files of other tools ask for them, made into RebalancePlans.

Each source says what it found as `DeclaredPlan`, with a spec in the terms of a RebalancePlan. All plans of the output
need approval, so applying them moves nothing."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from controller_operator.resources import RebalancePlan
from controller_operator.resources.approval import Approval
from controller_operator.resources.common import PAUSE_ANNOTATION, is_object_name
from kontroller.importing.declared import NAMED_BY_TEMPLATE, NO_CLUSTER, TEMPLATE, Given
from kontroller.importing.documents import Imported, Inexpressible, LeftOut, build_document, refer_to
from kontroller.importing.kept_metadata import select_annotations, select_labels
from kontroller.importing.object_names import NameTaken, ObjectNames
from kontroller.yaml_output import InOneLine


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredPlan:
    """Moves that an object in a file asks for."""

    place: str
    """The file, and the line in it."""
    source: str
    """The kind of the object."""
    name: str
    namespace: str | None = None
    cluster: str | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the RebalancePlan's spec that the object decides."""
    is_done: bool = False
    """True if the object's tool has carried it out. It gets no plan, because that would move replicas again."""
    labels: Mapping[str, object] = field(default_factory=dict)
    annotations: Mapping[str, object] = field(default_factory=dict)
    pause_reason: str | None = None
    """The reason why the source's tool does not carry it out now."""
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def import_plans(plans: Iterable[DeclaredPlan], given: Given, left_out: LeftOut) -> Iterator[Imported]:
    """Yield the import of each object in order. Two different objects of one name are refused.

    An object that occurs twice without a difference is imported once."""
    chosen = list(_choose(plans, left_out))
    conflicts = _find_conflicts(chosen, given)
    names: defaultdict[str | None, ObjectNames] = defaultdict(ObjectNames)
    for number, each in enumerate(chosen):
        if each.is_done:
            left_out["carried out already"] += 1
        else:
            yield _import_plan(each, conflicts[number], given, names)


def _choose(plans: Iterable[DeclaredPlan], left_out: LeftOut) -> Iterator[DeclaredPlan]:
    seen: defaultdict[tuple[str, str | None], list[DeclaredPlan]] = defaultdict(list)
    for each in plans:
        same = seen[each.name, each.namespace]
        if any(replace(each, place=other.place) == other for other in same):
            left_out["repeated without a difference"] += 1
        else:
            same.append(each)
            yield each


def _find_conflicts(plans: Sequence[DeclaredPlan], given: Given) -> Mapping[int, Sequence[str]]:
    """Return the contradictions of each plan to the others, by its position.

    Objects without a namespace may come into any."""
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(plans):
        by_name[each.name].append(number)
    found: defaultdict[int, list[str]] = defaultdict(list)
    for numbers in by_name.values():
        for pair in combinations(numbers, 2):
            first, second = (given.namespace or plans[number].namespace for number in pair)
            if first == second or None in (first, second):
                for one, other in (pair, pair[::-1]):
                    found[one].append(f"it is also declared at {plans[other].place}: keep or rename one of them")
    return found


def _import_plan(
    declared: DeclaredPlan, conflicts: Sequence[str], given: Given, names: Mapping[str | None, ObjectNames]
) -> Imported:
    notes, faults = list(declared.notes), [*declared.faults, *conflicts]
    target = given.find_target(cluster=declared.cluster, namespace=declared.namespace)
    refused = Imported(
        name=declared.name, source=declared.source, kind=RebalancePlan.definition.kind, place=declared.place
    )
    if TEMPLATE in declared.name:
        faults.append(NAMED_BY_TEMPLATE)
    if not target.cluster:
        faults.append(NO_CLUSTER)
    if faults:
        return replace(refused, reasons=tuple(faults))
    annotations = select_annotations(declared.annotations, notes)
    if declared.pause_reason is not None:
        annotations[PAUSE_ANNOTATION] = "true"
        notes.append(f"{declared.pause_reason}, so it is paused")
    spec = {
        "clusterRef": refer_to(target),
        **declared.spec,
        "brokers": InOneLine(declared.spec.get("brokers") or ()),
        "approval": Approval.REQUIRED.value,
    }
    try:
        wished = declared.name if is_object_name(declared.name) else None
        metadata = {
            "name": names[target.namespace].assign_name(declared.name, wished),
            "namespace": target.namespace,
            "labels": select_labels(declared.labels, notes),
            "annotations": annotations,
        }
        document = build_document(RebalancePlan, metadata, spec)
    except (Inexpressible, NameTaken) as error:
        return replace(refused, reasons=(str(error),))
    if wished is None:
        notes.append(f"Kubernetes refuses its name, so the RebalancePlan is {metadata['name']}")
    return replace(refused, document=document, notes=tuple(notes))
