"""Computes the state of the cluster from a journal, and checks it at every checksum. A pure function of the entries.

The state is unknown before the first snapshot, and from a gap to the next snapshot. At each snapshot there are two
versions of the state: the one that was computed from the records before, and the snapshot itself. Both must have the
checksum that the controller computed from its live state. Each term begins with a snapshot, because nobody records
between two terms. A recorder that starts in the middle of a term misses the changes before.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from controller_core.journal import records
from controller_core.journal.changes import REMOVED, Kind
from controller_core.journal.reader import Entry, Finding, Gap, Position, Record
from controller_core.journal.records import Fields, Line

PartitionKey = tuple[str, int]


@dataclass(slots=True, kw_only=True)
class Image:
    """The state of a cluster, in terms of the schema."""

    brokers: dict[int, Fields] = field(default_factory=dict)
    topics: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    """Topic ids and czxids."""
    assignments: dict[PartitionKey, Fields] = field(default_factory=dict)
    leaderships: dict[PartitionKey, Fields] = field(default_factory=dict)
    features: Fields | None = None
    topic_configs: dict[str, Fields] = field(default_factory=dict)
    broker_configs: dict[int | None, Fields] = field(default_factory=dict)
    """By broker. The key None is the default of all brokers."""
    offline_replicas: dict[int, Fields] = field(default_factory=dict)
    static_configs: dict[int, Fields] = field(default_factory=dict)
    """Part of no checksum (`records.WITHOUT_TEXT`)."""

    def texts(self) -> Iterator[str]:
        """Yield the text of each entry, for the checksum."""
        if self.features is not None:
            yield records.features_text(self.features)
        for broker, fields in self.brokers.items():
            yield records.broker_text(broker, fields)
        for topic, (topic_id, czxid) in self.topics.items():
            yield records.topic_text(topic, topic_id, czxid)
        for (topic, partition), fields in self.assignments.items():
            yield records.assignment_text(topic, partition, fields)
        for (topic, partition), fields in self.leaderships.items():
            yield records.leadership_text(topic, partition, fields)
        for topic, fields in self.topic_configs.items():
            yield records.topic_config_text(topic, fields)
        for some_broker, fields in self.broker_configs.items():
            yield records.broker_config_text(some_broker, fields)
        for broker, fields in self.offline_replicas.items():
            yield records.offline_text(broker, fields)

    def checksum(self) -> int:
        return records.checksum(self.texts())


@dataclass(slots=True, kw_only=True)
class Folded:
    """The result of folding a journal."""

    image: Image | None = None
    """None while the state is unknown: before the first snapshot, and after a gap."""
    controller_epoch: int | None = None
    last_seq: int | None = None
    records: int = 0
    proven: int = 0
    """The number of checksums that the computed state matched."""
    gaps: list[Gap] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def fold(entries: Iterable[Entry]) -> Folded:
    """Return the state after a journal, and the problems found in it."""
    folding = _Folding()
    for entry in entries:
        folding.take(entry)
    return folding.folded


class _Folding:
    """A journal that is being read."""

    def __init__(self) -> None:
        self.folded = Folded()
        self._snapshot: Image | None = None
        """The snapshot that is being read, as far as it is complete."""

    def take(self, entry: Entry) -> None:
        match entry:
            case Gap():
                self.folded.gaps.append(entry)
                self._forget()
            case Finding():
                # An unreadable line leaves out its number, which the reader reports as a gap.
                self.folded.findings.append(entry)
            case Record():
                self._take_record(entry.position, entry.line)

    def _take_record(self, position: Position, line: Line) -> None:
        folded = self.folded
        if line.controller_epoch != folded.controller_epoch:
            self._forget()
        folded.controller_epoch, folded.last_seq = line.controller_epoch, line.seq
        folded.records += 1
        image = self._snapshot if line.snapshot else folded.image
        match line.kind:
            case Kind.RECORDER_STARTED:
                self._forget()
            case Kind.SNAPSHOT_STARTED:
                self._snapshot = Image()
            case Kind.SNAPSHOT_ENDED:
                self._prove(position, line)
            case _ if image is not None:
                problem = _apply(image, line)
                if problem:
                    folded.findings.append(Finding(position=position, problem=problem))

    def _prove(self, position: Position, line: Line) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is None:
            return
        if snapshot.checksum() != line.checksum:
            self._find(position, "the snapshot does not have its own checksum")
            self.folded.image = None
            return
        if self.folded.image is not None:
            if self.folded.image.checksum() == line.checksum:
                self.folded.proven += 1
            else:
                self._find(position, "the records before the snapshot do not add up to the controller's state")
        self.folded.image = snapshot

    def _find(self, position: Position, problem: str) -> None:
        self.folded.findings.append(Finding(position=position, problem=problem))

    def _forget(self) -> None:
        self.folded.image = None
        self._snapshot = None


def _apply(image: Image, line: Line) -> str | None:
    """Apply a record to the image. Return the problem of the record, if it has one."""
    delta = line.delta.model_dump(exclude_none=True) if line.delta else {}
    try:
        match line.kind:
            case Kind.FEATURES:
                image.features = _whole(delta, Kind.FEATURES)
            case Kind.FEATURES_REMOVED:
                image.features = None
            case Kind.TOPIC:
                image.topics[_require(line.topic)] = (line.topic_id, delta["czxid"])
            case Kind.TOPIC_REMOVED:
                del image.topics[_require(line.topic)]
                for key in [key for key in image.assignments if key[0] == line.topic]:
                    del image.assignments[key]
            case _:
                _apply_to_entries(image, line, delta)
    except KeyError as error:
        return f"a {line.kind} record of an unknown entry, or one that lacks a field: {error}"
    return None


def _apply_to_entries(image: Image, line: Line, delta: Fields) -> None:
    """Set or remove an entry of a collection. Unknown kinds change nothing. Raises `KeyError`."""
    kind = _REMOVED.get(line.kind, line.kind)
    if kind not in _COLLECTIONS:
        return
    known: dict[Any, Fields] = getattr(image, _COLLECTIONS[kind])
    key = _read_key(line, kind)
    if kind != line.kind:
        del known[key]
    else:
        before = known.get(key, {}) if kind in records.IN_DELTAS else {}
        known[key] = _whole({**before, **delta}, kind)


def _read_key(line: Line, kind: str) -> Any:
    if kind == Kind.BROKER_CONFIG:
        return line.broker
    values = tuple(_require(getattr(line, name)) for name in records.KEYS[kind])
    return values if len(values) > 1 else values[0]


_COLLECTIONS: Final[Mapping[str, str]] = {
    Kind.BROKER: "brokers",
    Kind.ASSIGNMENT: "assignments",
    Kind.LEADERSHIP: "leaderships",
    Kind.TOPIC_CONFIG: "topic_configs",
    Kind.BROKER_CONFIG: "broker_configs",
    Kind.BROKER_STATIC_CONFIG: "static_configs",
    Kind.OFFLINE_REPLICAS: "offline_replicas",
}
"""The collection of an image that has the entries of a kind."""
_REMOVED: Final[Mapping[str, str]] = {removed: kind for kind, removed in REMOVED.items()}
"""The kind of the removed entry, by the kind of the record."""

_Value = TypeVar("_Value")


def _whole(fields: Fields, kind: str) -> Fields:
    """Return the fields of an entry if all required ones are present. Raises `KeyError`."""
    for name in records.FIELDS[kind]:
        fields[name]
    return fields


def _require(value: _Value | None) -> _Value:
    if value is None:
        raise KeyError("key")
    return value
