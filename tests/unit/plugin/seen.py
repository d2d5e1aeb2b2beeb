"""Objects for the plugin's tests, as the API server has them."""

from collections.abc import Sequence
from typing import Any

from kontroller.plugin.objects import Seen
from tests.unit.operator.clusters import raw


def make_seen(
    kind: str, name: str = "orders", *, conditions: dict[str, tuple[str, str, str]] | None = None, **about: Any
) -> Seen:
    """An object with conditions, each as status, reason and message, and whatever else its status says."""
    annotations = about.pop("annotations", {})
    said = [
        {"type": type_, "status": status, "reason": reason, "message": message}
        for type_, (status, reason, message) in (conditions or {}).items()
    ]
    status = {"observedGeneration": 1, "conditions": said, **about}
    return Seen(raw(kind, {}, name=name, status=status, annotations=annotations))


def partition(
    number: int, replicas: Sequence[int], isr: Sequence[int], leader: int | None, **more: Any
) -> dict[str, Any]:
    found = {"topic": "orders", "partition": number, "replicas": list(replicas), "isr": list(isr), **more}
    return found if leader is None else {**found, "leader": leader}


READY = {"Ready": ("True", "Reconciled", "all is well")}
STALLED = {
    "Ready": ("False", "NotAdopted", "make the spec equal"),
    "Stalled": ("True", "NotAdopted", "make the spec equal"),
}
