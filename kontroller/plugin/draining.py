"""Empties brokers: creates a move with `drainBrokers`, shows its plan, and starts it after confirmation.

The plan is the operator's, so the object is created with `suspend: true`. Whenever this command ends, nothing has moved
without confirmation. An object whose plan is not confirmed is deleted."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from controller_operator.kubernetes.object_api import Listing, ObjectChanged
from controller_operator.kubernetes.object_store import Raw
from controller_operator.resources.approval import Approval
from controller_operator.resources.common import API_VERSION
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import ReassignmentPhase
from kontroller.plugin.changes import ChangedApi, NotDone, read
from kontroller.plugin.objects import Named, Seen

_KIND: Final = "PartitionReassignment"
_PAUSE_S: Final = 0.3
_ATTEMPTS: Final = 10
_PLANNED: Final = frozenset({ReassignmentPhase.SUSPENDED, ReassignmentPhase.COMPLETED})
_IMPOSSIBLE: Final = frozenset({Reason.NOT_ENOUGH_BROKERS, Reason.CLUSTER_NOT_FOUND})


class DrainingApi(ChangedApi, Protocol):
    """The seam: further calls to the API server."""

    async def list_all(self, kind: str, namespace: str | None) -> Listing: ...

    async def create(self, raw: Raw) -> Raw: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """The brokers to empty, and the limits of the move."""

    brokers: Sequence[int]
    cluster: str | None = None
    """The KafkaCluster. None: the only one in the namespace."""
    name: str | None = None
    bytes_per_second: int | None = None
    at_a_time: int | None = None
    needs_approval: bool = False
    """Somebody has to approve the plan before the move starts."""

    @property
    def named(self) -> Named:
        return Named(kind=_KIND, name=self.name or "-".join(["drain", *map(str, sorted(set(self.brokers)))]))


async def create_with_plan(api: DrainingApi, drain: Drain, namespace: str, timeout_s: float) -> Seen:
    """Create a suspended object, and return it with the operator's plan or with nothing to move.

    Raises `NotDone` if there is no such plan, and `ApiError`; the object is then deleted."""
    made = await _create(api, drain, namespace)
    try:
        return await _wait_for_plan(api, made, timeout_s)
    # Also after Ctrl-C: an object that nobody has confirmed must not stay.
    except BaseException:
        await take_away(api, made)
        raise


async def let_go(api: DrainingApi, made: Seen) -> str:
    """Start the move, or let it wait for approval."""
    await api.patch_spec((await _read_again(api, made)).key, {"suspend": None})
    if made.raw["spec"].get("approval") == Approval.REQUIRED:
        return f"{made.short} waits for approval: `kubectl kontroller approve {made.short}`"
    return f"{made.short} begins: `kubectl kontroller status` shows its progress"


async def take_away(api: DrainingApi, made: Seen) -> str:
    """Delete the object. None of its moves has begun."""
    for _ in range(_ATTEMPTS):
        try:
            await api.delete((await _read_again(api, made)).raw)
        except ObjectChanged:
            continue  # its status was written in between
        return f"nothing was moved, and {made.short} is deleted"
    raise NotDone(f"{made.short} keeps changing, so it could not be deleted: nothing was moved; cancel it")


async def _create(api: DrainingApi, drain: Drain, namespace: str) -> Seen:
    """Create the object, and return it as the API server has it. Raises `NotDone` and `ApiError`."""
    spec: Raw = {
        "clusterRef": {"name": drain.cluster or await _find_only_cluster(api, namespace)},
        "drainBrokers": sorted(set(drain.brokers)),
        "suspend": True,
    }
    if drain.bytes_per_second is not None:
        spec["throttle"] = {"bytesPerSecond": drain.bytes_per_second}
    if drain.at_a_time is not None:
        spec["maxConcurrentPartitions"] = drain.at_a_time
    if drain.needs_approval:
        spec["approval"] = Approval.REQUIRED
    metadata = {"name": drain.named.name, "namespace": namespace}
    try:
        return Seen(await api.create({"apiVersion": API_VERSION, "kind": _KIND, "metadata": metadata, "spec": spec}))
    except ObjectChanged as error:
        short = f"kpr/{drain.named.name}"
        raise NotDone(
            f"{short} exists already: see `kubectl kontroller plan {short}`, cancel it, or give another --name"
        ) from error


async def _wait_for_plan(api: DrainingApi, made: Seen, timeout_s: float) -> Seen:
    seen = made
    try:
        async with asyncio.timeout(timeout_s):
            while not (seen.is_current and seen.status.get("phase") in _PLANNED):
                ready = seen.condition(ConditionType.READY)
                if seen.is_current and (seen.holds(ConditionType.STALLED) or ready.get("reason") in _IMPOSSIBLE):
                    raise NotDone(ready.get("message", ""))
                await asyncio.sleep(_PAUSE_S)
                seen = await _read_again(api, made)
    except TimeoutError as error:
        nobody = "no operator has seen it: check that one runs and watches this namespace"
        why = seen.condition(ConditionType.READY).get("message", nobody)
        raise NotDone(f"there is no plan after {timeout_s:g} seconds: {why}") from error
    return seen


async def _read_again(api: DrainingApi, made: Seen) -> Seen:
    """Read the object again. Raises `NotDone` if it is gone, or if another object has its name."""
    seen = await read(api, Named(kind=_KIND, name=made.key.name), made.key.namespace)
    if seen.raw["metadata"]["uid"] != made.raw["metadata"]["uid"]:
        raise NotDone(f"somebody has deleted {made.short} and created another object with its name")
    return seen


async def _find_only_cluster(api: DrainingApi, namespace: str) -> str:
    names = sorted(raw["metadata"]["name"] for raw in (await api.list_all("KafkaCluster", namespace)).items)
    if len(names) != 1:
        there = f"it has {', '.join(names)}" if names else "it has none"
        raise NotDone(f"name a KafkaCluster of namespace {namespace} with --cluster: {there}")
    return str(names[0])
