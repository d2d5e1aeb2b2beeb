"""The operator's next steps for an object, from its status."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from controller_core.model.reassignment import ANY_DIRECTORY
from controller_operator.plans.next_steps import WAITING
from controller_operator.resources.conditions import ConditionType
from kontroller.plugin.exit_codes import ExitCode, exit_code
from kontroller.plugin.objects import ENDED, Seen
from kontroller.screen import format_table

_IN_SHORT: Final = 3
"""Steps that the short form of a plan has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One step: the action, its target, and the values before and after."""

    action: str
    key: str
    live: str | None = None
    desired: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSteps:
    """The next steps, and the object's own message. `total` also counts steps that the status has no room for."""

    object: str
    is_current: bool
    is_paused: bool
    reason: str | None
    message: str | None
    total: int
    steps: tuple[PlannedStep, ...]
    in_words: tuple[str, ...]
    """The steps that a paused object would take without the pause."""
    waits: bool

    def exit_code(self, *, fails_on_changes: bool) -> ExitCode:
        return exit_code(waits=self.waits, changes=self.total > 0, fails_on_changes=fails_on_changes)

    def make_json(self) -> dict[str, Any]:
        return asdict(self)


def find_next_steps(each: Seen) -> NextSteps:
    """Return the next steps of an object.

    They come from the plan of a KafkaTopic, the features of a FeatureSet, or the partitions of a move. A paused object
    of any kind also lists the steps that it would take without the pause."""
    plan = each.status.get("plan") or {} if each.key.kind == "KafkaTopic" else {}
    ready = each.condition(ConditionType.READY)
    steps = (
        tuple(_make_step(change) for change in plan.get("changes") or ())
        or _list_feature_steps(each)
        or _list_move_steps(each)
        or _list_unclean_steps(each)
        or _list_planned_moves(each)
    )
    words = tuple(each.status.get("nextSteps") or ()) if each.is_paused else ()
    return NextSteps(
        object=each.short,
        is_current=each.is_current,
        is_paused=each.is_paused,
        reason=ready.get("reason"),
        message=ready.get("message"),
        total=max(plan.get("total", 0), len(steps), _count_moves(each), _count_steps(words)),
        steps=steps,
        in_words=words,
        waits=each.holds(ConditionType.STALLED) or each.awaits_approval,
    )


def summarize_plan(each: Seen) -> str | None:
    """Return the plan of an object that somebody has to decide about, in a few words; None if nothing would be done.

    An object that awaits approval has the plan's hash in it, which tells plans apart."""
    found = find_next_steps(each)
    words = [*found.in_words] or [f"{step.action} {step.key}" for step in found.steps]
    if not words:
        return None
    more = f" and {found.total - _IN_SHORT} more" if found.total > _IN_SHORT < len(words) else ""
    plan_hash = f"{each.status.get('planHash')}: " if each.awaits_approval and each.status.get("planHash") else ""
    return f"{plan_hash}{'; '.join(words[:_IN_SHORT])}{more}"


def lines(found: NextSteps) -> list[str]:
    """Return the screen."""
    rows = [(step.action, step.key, step.live, step.desired) for step in found.steps]
    more = [f"... and {found.total - len(rows)} more"] if rows and found.total > len(rows) else []
    about = f"{found.object}: {found.message or 'no operator has seen it yet'}"
    notes = [] if found.is_current else ["The status is about an older generation: ask again in a moment."]
    if found.is_paused and found.total:
        notes.append(f"It is paused: `kubectl kontroller resume {found.object}` lets the operator do this.")
    shown = format_table(("ACTION", "WHAT", "NOW", "THEN"), rows)
    words = ["Without the pause it would:", *(f"- {each}" for each in found.in_words)] if found.in_words else []
    return [about, *notes, *(shown or words or ["Nothing would be changed."]), *more, *(words if shown else [])]


def _make_step(change: dict[str, Any]) -> PlannedStep:
    return PlannedStep(
        action=str(change.get("action", "")),
        key=str(change.get("key", "")),
        live=change.get("live"),
        desired=change.get("desired"),
    )


def _list_feature_steps(each: Seen) -> tuple[PlannedStep, ...]:
    if each.key.kind != "FeatureSet":
        return ()
    return tuple(
        PlannedStep(action="Finalize", key=feature["name"], live=_format_text(feature.get("finalizedLevel")),
                    desired=_format_text(feature.get("maxVersionLevel")))
        for feature in each.status.get("features") or ()
        if feature.get("finalizedLevel") != feature.get("maxVersionLevel")
    )  # fmt: skip


def _list_move_steps(each: Seen) -> tuple[PlannedStep, ...]:
    if each.key.kind != "PartitionReassignment":
        return ()
    return tuple(
        PlannedStep(action="Move", key=f"{row['topic']}-{row['partition']}", live=_format_text(row.get("replicas")),
                    desired=_format_text(_name_targets(row)))
        for row in each.status.get("partitions") or ()
        if row.get("step") not in ENDED
    )  # fmt: skip


def _list_unclean_steps(each: Seen) -> tuple[PlannedStep, ...]:
    if each.key.kind != "PreferredElection" or not each.awaits_approval:
        return ()
    return tuple(
        PlannedStep(action="ElectUnclean", key=f"{row['topic']}-{row['partition']}",
                    live=_format_text(row.get("leaderBefore")))
        for row in each.status.get("partitions") or ()
        if row.get("result") is None
    )  # fmt: skip


def _list_planned_moves(each: Seen) -> tuple[PlannedStep, ...]:
    """Return the moves of a RebalancePlan from its next batch on."""
    if each.key.kind != "RebalancePlan" or "completionTime" in each.status:
        return ()
    return tuple(
        PlannedStep(action="Move", key=f"{row['topic']}-{row['partition']}", live=_format_text(row.get("before")),
                    desired=_format_text(row.get("after")))
        for row in each.status.get("moves") or ()
        if row.get("batch", 0) >= (each.status.get("batch") or 0)
    )  # fmt: skip


def _name_targets(row: dict[str, Any]) -> list[Any]:
    """Return the target replicas, each with its log directory if the move names one."""
    replicas = row.get("targetReplicas") or []
    log_dirs = row.get("targetLogDirs") or [ANY_DIRECTORY] * len(replicas)
    return [
        broker if log_dir == ANY_DIRECTORY else f"{broker}:{log_dir}"
        for broker, log_dir in zip(replicas, log_dirs, strict=False)
    ]


def _count_steps(words: Sequence[str]) -> int:
    """Count the next steps of a paused object that are not just waiting."""
    return sum(not each.startswith(WAITING) for each in words)


def _count_moves(each: Seen) -> int:
    """Count the partitions that a move still has to move. The status may list only some of them."""
    return each.counts.get("waiting", 0) + each.counts.get("moving", 0)


def _format_text(value: object) -> str | None:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return None if value is None else str(value)
