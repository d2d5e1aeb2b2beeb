"""The audit of custom resources: the Kubernetes user who wrote an object, and the steps that the operator did for it.

Both name the object by its uid and generation. So does the client id of the operator's requests to a controller.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from controller_core.audit.described import HIDDEN, is_plain_topic_config
from controller_core.audit.record import AuditRecord, Outcome, Resource, limit_resources
from controller_core.audit.trail import AuditTrail
from controller_operator.kubernetes.object_store import Raw, StoredObject

_MOST_CHANGES: Final = 20
_WRITTEN_BY_PEOPLE: Final = ("spec", "annotations", "labels")
_CONFIG: Final = "spec.config"
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl repeats the spec."""


def make_client_id(stored: StoredObject) -> str:
    """Return the client id of requests for an object. The uid comes first, because records cut long ids."""
    kind, namespace, name = stored.key
    return f"kontroller-operator/{stored.uid}/{kind}/{namespace}/{name}"


def record_question(
    trail: AuditTrail,
    *,
    operation: str,
    user: Mapping[str, Any],
    before: Raw | None,
    after: Raw | None,
    refusal: str | None,
) -> None:
    """Record the API server's question about a write, with the user who wrote.

    Writes of finalizers and statuses alone are left out. A write that is admitted may still be refused by others.
    """
    old, new = _read_written(before), _read_written(after)
    if before is not None and after is not None and old == new and refusal is None:
        return
    changed = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)][:_MOST_CHANGES]
    raw = after if after is not None else before or {}
    resource = _describe(
        raw,
        before={name: _show(name, old[name]) for name in changed if name in old},
        after={name: _show(name, new[name]) for name in changed if name in new},
    )
    record = AuditRecord(
        time_ms=trail.now_ms(),
        source=trail.source,
        api=f"{operation} {raw.get('kind')}",
        outcome=Outcome.ADMITTED if refusal is None else Outcome.REFUSED,
        principal=f"Kubernetes:{user.get('username', '')}",
        message=refusal or "",
    )
    trail.record(limit_resources(record, (resource,)))


def record_step(trail: AuditTrail, stored: StoredObject, step: object, *, is_done: bool) -> None:
    """Record a step that the operator has carried out for an object. A step that is not done is tried again."""
    if not is_done:
        return
    topic = getattr(step, "topic", None)
    touched = (Resource(type="topic", name=topic),) if isinstance(topic, str) else ()
    record = AuditRecord(
        time_ms=trail.now_ms(),
        source=trail.source,
        api=type(step).__name__,
        outcome=Outcome.DONE,
        client_id=make_client_id(stored),
    )
    trail.record(limit_resources(record, (_describe(stored.raw), *touched)))


def _describe(raw: Raw, before: Mapping[str, Any] | None = None, after: Mapping[str, Any] | None = None) -> Resource:
    metadata = raw.get("metadata") or {}
    identity = {name: metadata[name] for name in ("uid", "generation") if metadata.get(name)}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return Resource(type=str(raw.get("kind")), name=name, before=before or {}, after={**identity, **(after or {})})


def _read_written(raw: Raw | None) -> dict[str, Any]:
    """Return the parts that people write, by their paths: `spec.partitions`."""
    if raw is None:
        return {}
    parts = {"spec": raw.get("spec"), **(raw.get("metadata") or {})}
    return {
        f"{part}.{name}": value
        for part in _WRITTEN_BY_PEOPLE
        if isinstance(parts.get(part), dict)
        for name, value in parts[part].items()
        if name != _APPLIED
    }


def _show(path: str, value: Any) -> str:
    """Return a part as a text, without values that may be secrets: people may write any name into a configuration."""
    if path == _CONFIG:
        known = value if isinstance(value, dict) else {}
        value = {name: each if is_plain_topic_config(name) else HIDDEN for name, each in known.items()}
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
