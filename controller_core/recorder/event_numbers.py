"""Event numbers in records: the offset of the event in the log, if there is one, and the thing that a record is about.

A recorder that was killed while it recorded an event finds the missing records by these."""

import re
from typing import Final, TypeAlias

from controller_core.journal.changes import REMOVED, Change
from controller_core.journal.records import Line
from controller_core.model.ids import TopicPartition

Thing: TypeAlias = tuple[str, object]
"""The kind of a record, and the thing that it is about."""

_NUMBERED: Final = re.compile(r"\d+-@(\d+)-\d+")


def number_event(position: int, part: int) -> str:
    """Return the text that correlates the records of a part of an event, within its epoch."""
    return f"@{position}-{part}"


def read_position(correlation_id: str) -> int | None:
    """Return the offset of a record's event; None if it was not numbered."""
    match = _NUMBERED.fullmatch(correlation_id)
    return int(match[1]) if match else None


def find_thing(line: Line) -> Thing:
    """Return the thing that a record is about."""
    if line.partition is not None:
        return line.kind, (line.topic, line.partition)
    return line.kind, line.broker if line.topic is None else line.topic


def find_thing_of_change(change: Change) -> Thing:
    """Return the thing that a change's record would be about."""
    kind = REMOVED[change.kind] if change.after is None else change.kind
    return kind.value, tuple(change.key) if isinstance(change.key, TopicPartition) else change.key
