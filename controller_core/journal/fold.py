"""What a history comes to: the state of the cluster after it, proven at every checksum. A pure function of the entries.

Before the first snapshot, and from a gap to the next one, the state is not known. At each snapshot it is known in two
ways, by what was recorded before and by the snapshot itself; both must have the snapshot's checksum, which the controller's
live state had. Another controller's term begins with a snapshot, and what lies between two terms was recorded by nobody;
nor was what lies before a recorder that only looks on, and began to in the middle of a term.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from controller_core.journal import records
from controller_core.journal.changes import Kind
from controller_core.journal.reader import Entry, Finding, Gap, Position, Record
from controller_core.journal.records import Fields, Line

PartitionKey = tuple[str, int]


@dataclass(slots=True, kw_only=True)
class Image:
    """The state of a cluster, in the schema's words."""

    brokers: dict[int, Fields] = field(default_factory=dict)
    topics: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    """Topic ids, and czxids."""
    assignments: dict[PartitionKey, Fields] = field(default_factory=dict)
    leaderships: dict[PartitionKey, Fields] = field(default_factory=dict)
    features: Fields | None = None
    topic_configs: dict[str, Fields] = field(default_factory=dict)
    broker_configs: dict[int | None, Fields] = field(default_factory=dict)
    """By broker; None is the default of all of them."""

    def texts(self) -> Iterator[str]:
        """Each entry as text, for the checksum."""
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

    def checksum(self) -> int:
        return records.checksum(self.texts())


@dataclass(slots=True, kw_only=True)
class Folded:
    """What a history comes to."""

    image: Image | None = None
    """None where the state is not known: no snapshot yet, or none since a gap."""
    controller_epoch: int | None = None
    last_seq: int | None = None
    records: int = 0
    proven: int = 0
    """How many checksums the history before them had."""
    gaps: list[Gap] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def fold(entries: Iterable[Entry]) -> Folded:
    """The state after a history, and what is wrong with it."""
    folding = _Folding()
    for entry in entries:
        folding.take(entry)
    return folding.folded


class _Folding:
    """A history half read."""

    def __init__(self) -> None:
        self.folded = Folded()
        self._snapshot: Image | None = None
        """What there is so far of a snapshot."""

    def take(self, entry: Entry) -> None:
        match entry:
            case Gap():
                self.folded.gaps.append(entry)
                self._forget()
            case Finding():
                # A line that could not be read leaves a number out, which the reader reports as a gap.
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
                self._find(position, "what was recorded before does not come to the state of the controller")
        self.folded.image = snapshot

    def _find(self, position: Position, problem: str) -> None:
        self.folded.findings.append(Finding(position=position, problem=problem))

    def _forget(self) -> None:
        self.folded.image = None
        self._snapshot = None


def _apply(image: Image, line: Line) -> str | None:
    """Changes the image as a record says; returns what is wrong with the record, if anything."""
    delta = line.delta.model_dump(exclude_none=True) if line.delta else {}
    try:
        match line.kind:
            case Kind.FEATURES:
                image.features = _whole(delta, _FEATURES)
            case Kind.FEATURES_REMOVED:
                image.features = None
            case Kind.BROKER | Kind.BROKER_REMOVED:
                _set(image.brokers, _given(line.broker), delta, line.kind == Kind.BROKER, _BROKER, replaced=True)
            case Kind.TOPIC:
                image.topics[_given(line.topic)] = (line.topic_id, delta["czxid"])
            case Kind.TOPIC_REMOVED:
                del image.topics[_given(line.topic)]
                for key in [key for key in image.assignments if key[0] == line.topic]:
                    del image.assignments[key]
            case Kind.ASSIGNMENT | Kind.ASSIGNMENT_REMOVED:
                key = _given(line.topic), _given(line.partition)
                _set(image.assignments, key, delta, line.kind == Kind.ASSIGNMENT, _ASSIGNMENT)
            case Kind.LEADERSHIP | Kind.LEADERSHIP_REMOVED:
                key = _given(line.topic), _given(line.partition)
                _set(image.leaderships, key, delta, line.kind == Kind.LEADERSHIP, _LEADERSHIP)
            case Kind.TOPIC_CONFIG | Kind.TOPIC_CONFIG_REMOVED:
                _set(image.topic_configs, _given(line.topic), delta, line.kind == Kind.TOPIC_CONFIG, _CONFIG)
            case Kind.BROKER_CONFIG | Kind.BROKER_CONFIG_REMOVED:
                _set(image.broker_configs, line.broker, delta, line.kind == Kind.BROKER_CONFIG, _CONFIG)
    except KeyError as error:
        return f"a {line.kind} record of what is not known, or that lacks a field: {error}"
    return None


_FEATURES = ("finalized_features", "features_epoch")
_BROKER = ("broker_epoch", "endpoints", "supported_features")
_ASSIGNMENT = ("replicas", "adding", "removing", "origin_order")
_LEADERSHIP = ("leader", "isr", "leader_epoch", "leader_recovery_state", "state_controller_epoch", "partition_epoch")
_CONFIG = ("config",)

_Key = TypeVar("_Key")


def _set(
    entries: dict[_Key, Fields], key: _Key, delta: Fields, is_set: bool, names: tuple[str, ...], *, replaced: bool = False
) -> None:  # fmt: skip
    if not is_set:
        del entries[key]
        return
    before = {} if replaced else entries.get(key, {})
    entries[key] = _whole({**before, **delta}, names)


def _whole(fields: Fields, names: tuple[str, ...]) -> Fields:
    """The fields, all of which are there. Raises `KeyError`."""
    for name in names:
        fields[name]
    return fields


def _given(value: _Key | None) -> _Key:
    if value is None:
        raise KeyError("key")
    return value
