"""Changes that the plugin makes to objects: pause, resume, approval of a plan, and cancellation."""

from typing import Protocol

from controller_operator.kubernetes.object_api import ObjectGone
from controller_operator.kubernetes.object_store import Key, Raw
from controller_operator.resources.common import PAUSE_ANNOTATION
from controller_operator.resources.conditions import ConditionType
from kontroller.plugin.objects import Named, Seen

_OVER = frozenset({"Completed", "Failed", "Cancelled"})
_APPROVED = ("PartitionReassignment", "KafkaTopic", "PreferredElection", "RebalancePlan")


class NotDone(Exception):
    """The change is impossible for that object. The message says why, and what to do instead."""


class ChangedApi(Protocol):
    """The seam: the calls to the API server."""

    async def get(self, key: Key) -> Raw: ...

    async def annotate(self, key: Key, annotations: dict[str, str | None]) -> Raw: ...

    async def patch_spec(self, key: Key, spec: Raw) -> Raw: ...

    async def delete(self, raw: Raw) -> None: ...


async def read(api: ChangedApi, named: Named, namespace: str) -> Seen:
    """Read an object. Raises `NotDone` if there is none, and `ApiError`."""
    key = Key(named.kind, namespace, named.name)
    try:
        return Seen(await api.get(key))
    except ObjectGone as error:
        raise NotDone(f"there is no {key}") from error


async def pause(api: ChangedApi, named: Named, namespace: str) -> str:
    """Pause all work on an object. Return the result in words."""
    seen = await read(api, named, namespace)
    if seen.is_paused:
        return f"{seen.short} is paused already"
    await api.annotate(seen.key, {PAUSE_ANNOTATION: "true"})
    goes_on = " The controller finishes its current work." if _has_begun(seen) else ""
    return f"{seen.short} is paused.{goes_on}"


async def resume(api: ChangedApi, named: Named, namespace: str) -> str:
    """Resume the work on an object."""
    seen = await read(api, named, namespace)
    if not seen.is_paused:
        return f"{seen.short} is not paused"
    await api.annotate(seen.key, {PAUSE_ANNOTATION: None})
    return f"{seen.short} is resumed"


async def approve(api: ChangedApi, named: Named, namespace: str, plan_hash: str) -> str:
    """Approve the plan of an object if its hash is still this one. Raises `NotDone`.

    The approval is for this hash only, so the operator ignores it if the plan changes at the same moment."""
    seen = await read(api, named, namespace)
    due = find_plan_to_approve(seen)
    if plan_hash != due:
        raise NotDone(f"the plan of {seen.short} is {due} now, not {plan_hash}: read the plan again")
    await api.patch_spec(seen.key, {"approvedPlan": due})
    return f"plan {due} of {seen.short} is approved"


def find_plan_to_approve(seen: Seen) -> str:
    """Return the hash of the plan that waits for approval. Raises `NotDone` if none does."""
    if seen.key.kind not in _APPROVED:
        raise NotDone(f"{seen.short} needs no approval: only {', '.join(_APPROVED)} can need one")
    due: str | None = seen.status.get("planHash")
    if not seen.awaits_approval or due is None:
        raise NotDone(f"{seen.short} does not wait for approval: {_describe_state(seen)}")
    return due


def _describe_state(seen: Seen) -> str:
    ready = seen.condition(ConditionType.READY)
    return str(seen.status.get("phase") or ready.get("reason") or "no operator has seen it yet")


async def cancel(api: ChangedApi, named: Named, namespace: str) -> str:
    """Cancel a move or an election by deleting its object. Raises `NotDone`."""
    seen = await read(api, named, namespace)
    if seen.key.kind not in ("PartitionReassignment", "PreferredElection", "RebalancePlan"):
        raise NotDone(f"{seen.short} cannot be cancelled: pause it, or change its spec")
    phase = seen.status.get("phase")
    if phase in _OVER:
        return f"{seen.short} is over: {phase}"
    if seen.key.kind == "PreferredElection" and phase == "Running":
        raise NotDone(f"{seen.short} is running: elections cannot be cancelled")
    has_begun = _has_begun(seen)
    if has_begun and seen.is_paused:
        raise NotDone(
            f"{seen.short} is paused and its move has begun, so the move would continue without the object: resume "
            f"it "
            f"first (`kubectl kontroller resume {seen.short}`), then cancel it; spec.suspend keeps more from beginning"
        )
    await api.delete(seen.raw)
    back = "what still moves goes back to its original replicas" if has_begun else "nothing had begun"
    return f"{seen.short} is cancelled: {back}"


def _has_begun(seen: Seen) -> bool:
    """Return True if the controller may be working on the object. A suspended move may have begun."""
    phase = seen.status.get("phase")
    return phase == "Running" or (phase == "Suspended" and "startTime" in seen.status)
