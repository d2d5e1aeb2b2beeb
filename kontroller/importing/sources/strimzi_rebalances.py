"""KafkaRebalances of Strimzi, which Cruise Control carries out.

A status shows how far Strimzi is. Files that people keep have none, and are read like new objects."""

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from controller_operator.resources.rebalancing.rebalance_plan import PlanMode
from kontroller.importing.declared_plans import DeclaredPlan
from kontroller.importing.sources.loading import Fields, Misshapen
from kontroller.importing.values import Unreadable, is_true, normalize_number

KIND: Final = ("kafka.strimzi.io", "KafkaRebalance")
"""The API group and the kind."""

_CLUSTER: Final = "strimzi.io/cluster"
_TEMPLATE: Final = "strimzi.io/rebalance-template"
_COMMAND: Final = "strimzi.io/rebalance"
_AUTO_APPROVAL: Final = "strimzi.io/rebalance-auto-approval"
_PAUSE: Final = "strimzi.io/pause-reconciliation"

_MODES: Final = {
    "full": PlanMode.REBALANCE,
    "add-brokers": PlanMode.EXPAND,
    "remove-brokers": PlanMode.DRAIN,
}
_BETWEEN_DISKS: Final = "remove-disks"
_CRUISE_CONTROL: Final = frozenset({
    "concurrentIntraBrokerPartitionMovements",
    "concurrentLeaderMovements",
    "concurrentPartitionMovementsPerBroker",
    "goals",
    "replicaMovementStrategies",
    "skipHardGoalCheck",
})  # fmt: skip
"""Fields that say how Cruise Control plans, and in which steps it moves."""
_KNOWN: Final = _CRUISE_CONTROL | {"brokers", "excludedTopics", "mode", "rebalanceDisk", "replicationThrottle"}

_GROUP: Final = re.compile(r"\^?\((?:\?:)?([^()]*)\)\$?")
_PART: Final = re.compile(r"\.[*+]?|\\[.-]|\[\.\]|[A-Za-z0-9_-]")
_ALTERNATIVE: Final = re.compile(rf"\^?((?:{_PART.pattern})+)\$?")
_WILDCARDS: Final = {".*": "*", ".+": "?*", ".": "?"}


def read_rebalance(found: Fields, place: str) -> DeclaredPlan:
    """Read a KafkaRebalance. Raises `Misshapen`."""
    metadata, spec = found.get_fields("metadata"), found.get_fields("spec")
    annotations = metadata.get_fields("annotations")
    name = metadata.get_text("name")
    if not name:
        raise Misshapen("metadata has no name")
    states = {each.get_text("type") for each in found.get_fields("status").list_fields("conditions")}
    reader = _SpecReader(spec)
    if annotations.is_set(_AUTO_APPROVAL):
        reader.notes.append(f"{_AUTO_APPROVAL} is left out: a person approves the RebalancePlan")
    return DeclaredPlan(
        place=place,
        source=KIND[1],
        name=name,
        namespace=metadata.get_text("namespace"),
        cluster=metadata.get_fields("labels").get_text(_CLUSTER),
        spec=reader.read(),
        is_done="Ready" in states and "Rebalancing" not in states,
        labels=metadata.get_fields("labels"),
        annotations=annotations,
        pause_reason=f"{_PAUSE} is true" if annotations.is_set(_PAUSE) else None,
        notes=tuple(reader.notes),
        faults=(*_find_obstacles(annotations, states), *reader.faults),
    )


def convert_excluded_topics(expression: str) -> tuple[str, ...] | None:
    """Return the patterns with * and ? that match the same topics as a regular expression of Java, or None.

    Cruise Control matches whole names, so ^ and $ at the ends change nothing."""
    group = _GROUP.fullmatch(expression)
    patterns = []
    for each in (group[1] if group else expression).split("|"):
        alternative = _ALTERNATIVE.fullmatch(each)
        if alternative is None:
            return None
        parts = _PART.findall(alternative[1])
        patterns.append("".join(_WILDCARDS.get(part, part.strip("\\[]")) for part in parts))
    return tuple(dict.fromkeys(patterns))


def _find_obstacles(annotations: Fields, states: Collection[str | None]) -> Iterator[str]:
    """Yield the reasons why a plan beside Strimzi's object would be wrong."""
    if annotations.is_set(_TEMPLATE):
        yield (
            f"it is a template ({_TEMPLATE}), which moves nothing: write a RebalancePlan of the mode expand or drain "
            "when brokers are added or removed"
        )
    is_approved = annotations.get_text(_COMMAND) == "approve" or annotations.is_set(_AUTO_APPROVAL)
    if "Rebalancing" in states:
        yield f"Strimzi carries it out now: wait until it is Ready, or stop it with {_COMMAND}=stop"
    elif "ProposalReady" in states and is_approved:
        yield "its proposal is approved, so Strimzi carries it out next: wait until it is Ready"
    elif "ReconciliationPaused" in states:
        yield f"its status does not say if Strimzi has begun: remove {_PAUSE}, and import it in its next state"


class _SpecReader:
    """Reads the spec of one object, and collects remarks and faults."""

    def __init__(self, spec: Fields) -> None:
        self._spec = spec
        self.notes: list[str] = []
        self.faults: list[str] = []

    def read(self) -> dict[str, Any]:
        """Return the fields of a RebalancePlan's spec. Raises `Misshapen`."""
        spec = self._spec
        mode = self._read_mode()
        if others := sorted(spec.keys() & _CRUISE_CONTROL):
            self.notes.append(
                f"spec leaves out {', '.join(others)}: RebalancePlans have goals, an order and batches of their own"
            )
        if unknown := sorted(spec.keys() - _KNOWN):
            self.notes.append(f"spec leaves out {', '.join(unknown)}: RebalancePlans have no such field")
        return {
            "mode": mode,
            "brokers": self._read_brokers(mode),
            "scope": self._read_scope(mode),
            "throttle": self._read_throttle(),
        }

    def _read_mode(self) -> str | None:
        written = self._spec.get_text("mode") or "full"
        is_between_disks = is_true(self._spec.get_text("rebalanceDisk"))
        if written == _BETWEEN_DISKS or is_between_disks:
            field = "rebalanceDisk" if is_between_disks else f"mode {_BETWEEN_DISKS}"
            self.faults.append(
                f"{field} moves replicas between the disks of a broker, which no RebalancePlan does: write a "
                "PartitionReassignment with logDirs"
            )
        elif written not in _MODES:
            self.faults.append(f"Strimzi has no mode {written}: write {', '.join(_MODES)}")
        return _MODES[written].value if written in _MODES else None

    def _read_brokers(self, mode: str | None) -> list[int]:
        written = self._spec.get("brokers") or []
        if mode in (None, PlanMode.REBALANCE):
            if written:
                self.notes.append("spec leaves out brokers: Strimzi ignores them in the mode full")
            return []
        if not written:
            self.faults.append(f"mode {self._spec['mode']} needs brokers: name the brokers to add or to remove")
        try:
            ids = [int(normalize_number(each)) for each in written] if isinstance(written, list) else None
        except (ValueError, Unreadable):
            ids = None
        if ids is None:
            self.faults.append("brokers is no list of broker ids: write numbers, such as [3, 4]")
        return list(dict.fromkeys(ids or ()))

    def _read_scope(self, mode: str | None) -> dict[str, list[str]] | None:
        expression = self._spec.get_text("excludedTopics")
        if not expression:
            return None
        if mode == PlanMode.DRAIN:
            self.notes.append(
                "spec leaves out excludedTopics: Strimzi also moves these topics off the brokers to remove"
            )
            return None
        patterns = convert_excluded_topics(expression)
        if patterns is None:
            self.faults.append(
                f"excludedTopics {expression} has no equal among patterns with * and ?: write names and .* with | "
                r"between them, such as orders-.*|audit\.log, or remove it and set scope.excludeTopics in the "
                "RebalancePlan"
            )
            return None
        return {"excludeTopics": list(patterns)}

    def _read_throttle(self) -> dict[str, int] | None:
        written = self._spec.get("replicationThrottle")
        if written is None:
            return None
        try:
            rate = int(normalize_number(written))
        except (ValueError, Unreadable):
            self.faults.append(f"replicationThrottle: {written} is no number of bytes per second")
            return None
        return {"bytesPerSecond": rate} if rate else None  # 0 is no limit for Strimzi
