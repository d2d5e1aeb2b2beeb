"""The changes of one topic in journals, each with the client who asked for it. Needs no Spark."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from controller_core.journal.changes import Kind
from controller_core.journal.reader import Finding, Gap, Record, find_journals, read
from controller_core.journal.records import Line
from kontroller.history.reports.period import is_moment, moment_of

_REMOVED: Final = "_removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """A change of the topic, or a request for one."""

    time: datetime | None
    """None for a stamp outside the years 1 to 9999."""
    principal: str
    """Empty if no client's request caused it, or the journal is of an older version or a recorder."""
    address: str
    what: str
    cause: str
    """A word of docs/journal.md."""

    def make_json(self) -> dict[str, str | None]:
        """Return the change for programs."""
        return {
            "time": None if self.time is None else self.time.isoformat(),
            "principal": self.principal,
            "address": self.address,
            "what": self.what,
            "cause": self.cause,
        }


def list_changes(topic: str, *folders: Path, problems: list[str]) -> Iterator[TopicChange]:
    """Yield the changes of a topic in the journals at or below these folders, oldest first.

    `problems`: takes a sentence for each place where a change may be missing. Raises `OSError`.
    """
    for entry in read(*find_journals(*folders)):
        if not isinstance(entry, Record):
            problems += _describe_problem(entry)
            continue
        line = entry.line
        if line.snapshot:
            continue
        if line.kind == Kind.REQUEST and line.request is not None:
            yield from _read_request(topic, line, line.request)
        elif line.topic == topic:
            yield _make_change(line, line.principal or "", line.address or "", _describe(line))


def _read_request(topic: str, line: Line, request: Mapping[str, Any]) -> Iterator[TopicChange]:
    """Yield the request once for each time that it names the topic. The journal may be anybody's, so types are checked."""
    resources = request.get("resources")
    for resource in resources if isinstance(resources, list) else ():
        if not isinstance(resource, dict) or (resource.get("type"), resource.get("name")) != ("topic", topic):
            continue
        outcome = resource.get("error") or (request.get("error") if request.get("outcome") != "partly_done" else None)
        what = f"{request.get('api')} {outcome or request.get('outcome')}"
        states = [
            f"{name} {say_values(resource[name])}"
            for name in ("before", "after")
            if isinstance(resource.get(name), dict)
        ]
        what = f"{what}: {', '.join(states)}" if states else what
        yield _make_change(line, str(request.get("principal", "")), str(request.get("address", "")), what)


def _make_change(line: Line, principal: str, address: str, what: str) -> TopicChange:
    time = moment_of(line.event_time_us) if is_moment(line.event_time_us) else None
    return TopicChange(time=time, principal=principal, address=address, what=what, cause=line.cause)


def _describe_problem(entry: Gap | Finding) -> Iterator[str]:
    if isinstance(entry, Gap):
        last = entry.first_seq + entry.count - 1
        yield f"{entry.position}: records {entry.first_seq} to {last} of epoch {entry.controller_epoch} are missing"
    elif not entry.is_repeated:
        yield f"{entry.position}: {entry.problem}"


def _describe(line: Line) -> str:
    where = line.kind.removesuffix(_REMOVED) if line.partition is None else f"partition {line.partition}"
    if line.kind.endswith(_REMOVED):
        return f"{where} removed"
    delta = {} if line.delta is None else line.delta.model_dump(exclude_none=True)
    return f"{where}: {say_values(delta)}"


def say_values(values: Mapping[str, Any]) -> str:
    """Return fields in one line: `leader=1 isr=1,2`."""
    return " ".join(f"{name}={_say_value(value)}" for name, value in values.items())


def _say_value(value: object) -> str:
    if isinstance(value, dict):
        return f"({say_values(value)})"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
