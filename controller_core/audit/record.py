"""An audit record: one request that changes something, or several refused ones together.

Strangers choose most of the texts and their number, so all of them are bounded. Empty fields are left out of the JSON.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import accumulate
from typing import Any, Final

from controller_core.model.wording import shorten

MOST_RESOURCES: Final = 100
MOST_CHARACTERS: Final = 250
MOST_ENTRIES: Final = 100
"""Entries of a list or mapping in the state of a resource. Kafka has fewer configurations of a topic."""
MOST_STATE_CHARACTERS: Final = 250_000
"""Characters of the first resources as JSON. Later ones are named without their states, so that the journal's topic
takes the record."""
MORE: Final = "<more>"
"""In place of the entries that are left out. In a mapping, its value is their number."""


class Outcome(StrEnum):
    """The end of a request."""

    DONE = "done"
    ADMITTED = "admitted"
    """The operator's webhook has allowed the write of an object."""
    PARTLY_DONE = "partly_done"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The client left before its answer, the connection broke, or the answer is too large to be read. The change may
    have been made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A thing that a request is about, and its state before and after as far as that is known."""

    type: str
    """topic, broker, user, acl, group, ..., or the kind of a custom resource."""
    name: str
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    """The requested state. It holds only if there is no error."""
    error: str = ""
    """The name of Kafka's error code."""
    message: str = ""

    def make_json(self) -> dict[str, Any]:
        """Return the fields that are not empty."""
        return _drop_empty({
            "type": self.type,
            "name": shorten(self.name, MOST_CHARACTERS),
            "before": dict(self.before),
            "after": dict(self.after),
            "error": self.error,
            "message": shorten(self.message, MOST_CHARACTERS),
        })  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One request. With a `count`, that many refused ones of a caller."""

    time_ms: int
    """The time of its end, in milliseconds since 1970."""
    source: str
    """The process that was asked, such as controller-1."""
    api: str
    outcome: Outcome
    principal: str = ""
    address: str = ""
    client_id: str = ""
    """The name that the client gave itself. Anybody may use any."""
    resources: tuple[Resource, ...] = ()
    more_resources: int = 0
    """The number of resources that are left out."""
    error: str = ""
    """The error of the whole request, or the first one of a resource."""
    message: str = ""
    count: int = 1

    def make_json(self) -> dict[str, Any]:
        """Return the record as it is exported."""
        time = datetime.fromtimestamp(self.time_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return {"time": time.replace("+00:00", "Z"), "source": self.source, **self.make_journal_fields()}

    def make_journal_fields(self) -> dict[str, Any]:
        """Return the fields that a record of the journal does not have anyway."""
        return _drop_empty({
            "api": self.api,
            "outcome": self.outcome.value,
            "principal": shorten(self.principal, MOST_CHARACTERS),
            "address": self.address,
            "client_id": shorten(self.client_id, MOST_CHARACTERS),
            "resources": [resource.make_json() for resource in self.resources],
            "more_resources": self.more_resources,
            "error": self.error,
            "message": shorten(self.message, MOST_CHARACTERS),
            "count": self.count if self.count != 1 else 0,
        })  # fmt: skip


def limit_resources(record: AuditRecord, resources: Iterable[Resource]) -> AuditRecord:
    """Return the record with the first of these resources and bounded states, and the number of the others."""
    found = tuple(resources)
    first = [replace(each, before=_limit(each.before), after=_limit(each.after)) for each in found[:MOST_RESOURCES]]
    sizes = accumulate(len(json.dumps(each.make_json(), default=str)) for each in first)
    kept = tuple(
        each if size <= MOST_STATE_CHARACTERS else replace(each, before={}, after={})
        for each, size in zip(first, sizes, strict=True)
    )
    return replace(record, resources=kept, more_resources=len(found) - len(kept))


def _limit(value: Any) -> Any:
    """Return a value with the first entries of its collections, and the beginnings of its texts."""
    match value:
        case str():
            return shorten(value, MOST_CHARACTERS)
        case Mapping():
            kept = {shorten(name, MOST_CHARACTERS): _limit(value[name]) for name in list(value)[:MOST_ENTRIES]}
            return kept | ({MORE: len(value) - MOST_ENTRIES} if len(value) > MOST_ENTRIES else {})
        case list() | tuple():
            return [*map(_limit, value[:MOST_ENTRIES]), *([MORE] if len(value) > MOST_ENTRIES else [])]
        case _:
            return value


def _drop_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value or value is False}
