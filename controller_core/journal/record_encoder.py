"""Encodes batches as lines: numbers the records of each controller epoch without gaps, and writes only what differs.

It runs in the writer's thread, and remembers only the next number and the topic ids.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from controller_core.journal import records
from controller_core.journal.batches import (
    Alive,
    Batch,
    Committed,
    Context,
    Dropped,
    Elected,
    RecorderStarted,
    Requested,
    Resigned,
    Snapshot,
    StateCopy,
)
from controller_core.journal.changes import REMOVED, Change, Kind
from controller_core.journal.records import Fields
from controller_core.model.ids import NO_LEADER, UNTOLD_PARTITION_EPOCH, ControllerEpoch, TopicId, TopicPartition
from controller_core.model.metadata import LeaderRecoveryState, PartitionState

_FIELDS: Final[Mapping[Kind, Callable[[Any], Fields]]] = {
    Kind.BROKER: records.broker_fields,
    Kind.TOPIC: lambda topic: {"czxid": topic.czxid},
    Kind.ASSIGNMENT: records.assignment_fields,
    Kind.LEADERSHIP: records.leadership_fields,
    Kind.FEATURES: records.features_fields,
    Kind.TOPIC_CONFIG: records.config_fields,
    Kind.BROKER_CONFIG: records.config_fields,
    Kind.BROKER_STATIC_CONFIG: records.static_config_fields,
    Kind.OFFLINE_REPLICAS: records.offline_fields,
}

_WRITTEN_IN_FULL: Final = (Kind.BROKER, Kind.TOPIC, Kind.FEATURES, Kind.BROKER_STATIC_CONFIG)
"""These are few, and may lose a field that they had before, which a delta cannot express."""


@dataclass(slots=True)
class RecordEncoder:
    """Encodes the lines of one process's journal. To continue a journal, begin with its last epoch and next number."""

    epoch: ControllerEpoch | None = None
    next_seq: int = 0
    _topic_ids: dict[str, TopicId | None] = field(default_factory=dict)

    def lines(self, batch: Batch | Dropped) -> Iterator[bytes]:
        """Yield the lines of a batch with their line ends. Read all of them before those of the next batch."""
        context = batch.context
        if context.controller_epoch != self.epoch:
            self.epoch, self.next_seq = context.controller_epoch, 0
            self._topic_ids.clear()
        match batch:
            case Elected():
                known = {"delta": records.config_fields(batch.config)} if batch.config else {}
                yield self._line(context, Kind.CONTROLLER_ELECTED, **known, **_interval(batch))
            case Resigned():
                yield self._line(context, Kind.CONTROLLER_RESIGNED, reason=batch.reason)
            case Alive():
                yield self._line(context, Kind.CONTROLLER_ALIVE, **_interval(batch))
            case RecorderStarted():
                yield self._line(context, Kind.RECORDER_STARTED, **_interval(batch))
            case Requested():
                yield self._line(context, Kind.REQUEST, request=batch.request)
            case Dropped():
                yield self._line(context, Kind.GAP, dropped=batch.count)
                # A gap uses up the numbers of all the records that it stands for.
                self.next_seq += batch.count - 1
            case Snapshot():
                yield from self._snapshot(context, batch.state)
            case Committed():
                for change in batch.changes:
                    yield from self._change(context, change)

    def encode_gap(self, context: Context, seq: int) -> bytes:
        """Return the line that takes the place of a single record that cannot be written."""
        return self._encode(context, seq, Kind.GAP, dropped=1)

    def _change(self, context: Context, change: Change) -> Iterator[bytes]:
        key = self._key(change)
        if change.after is None:
            yield self._line(context, REMOVED[change.kind], **key)
            return
        fields = _FIELDS[change.kind]
        before = None if change.before is None or change.kind in _WRITTEN_IN_FULL else fields(change.before)
        delta = records.select_changed_fields(before, fields(change.after))
        if delta and change.before != change.after:
            is_unclean = change.kind is Kind.LEADERSHIP and _is_unclean(change, is_inferred=context.is_inferred)
            more = {"unclean": True} if is_unclean else {}
            yield self._line(context, change.kind, **key, delta=delta, **more)

    def _key(self, change: Change) -> Fields:
        match change.kind:
            case Kind.BROKER | Kind.BROKER_CONFIG | Kind.BROKER_STATIC_CONFIG | Kind.OFFLINE_REPLICAS:
                return {"broker": change.key}
            case Kind.TOPIC:
                topic_id = (change.after or change.before).topic_id
                if change.after is None:
                    self._topic_ids.pop(change.key, None)
                else:
                    self._topic_ids[change.key] = topic_id
                return {"topic": change.key, "topic_id": topic_id}
            case Kind.ASSIGNMENT | Kind.LEADERSHIP:
                return self._partition_key(change.key)
            case Kind.TOPIC_CONFIG:
                return {"topic": change.key, "topic_id": self._topic_ids.get(change.key)}
            case _:
                return {}

    def _partition_key(self, partition: TopicPartition) -> Fields:
        return {
            "topic": partition.topic,
            "topic_id": self._topic_ids.get(partition.topic),
            "partition": partition.partition,
        }

    def _snapshot(self, context: Context, state: StateCopy) -> Iterator[bytes]:
        yield self._line(context, Kind.SNAPSHOT_STARTED)
        texts: list[str] = []
        for change in _entries(state):
            key, fields = self._key(change), _FIELDS[change.kind](change.after)
            if change.kind not in records.WITHOUT_TEXT:
                texts.append(entry_text(change.kind, key, fields))
            yield self._line(context, change.kind, **key, delta=fields, snapshot=True)
        yield self._line(context, Kind.SNAPSHOT_ENDED, entries=len(texts), checksum=records.checksum(texts))

    def _line(self, context: Context, kind: Kind, **more: object) -> bytes:
        seq, self.next_seq = self.next_seq, self.next_seq + 1
        return self._encode(context, seq, kind, **more)

    def _encode(self, context: Context, seq: int, kind: Kind, **more: object) -> bytes:
        envelope: dict[str, object] = {
            "v": records.SCHEMA_VERSION,
            "cluster_id": context.cluster_id,
            "controller_id": context.controller_id,
            "controller_epoch": context.controller_epoch,
            "seq": seq,
            "event_time_us": context.event_time_us,
            **_name_uptime(context),
            **({} if context.took_us is None else {"took_us": context.took_us}),
            "kind": kind.value,
            "cause": context.cause,
            "correlation_id": context.correlation_id,
            **_name_caller(context),
            **more,
        }
        if context.is_inferred:
            envelope["inferred"] = True
        return orjson.dumps(envelope, option=orjson.OPT_APPEND_NEWLINE)


def _name_caller(context: Context) -> Fields:
    caller = context.caller
    return {} if caller is None else {"principal": str(caller.principal), "address": str(caller.address or "")}


def _name_uptime(context: Context) -> Fields:
    return {} if context.uptime is None else {"boot": context.uptime.boot, "boot_us": context.uptime.us}


def _interval(batch: Elected | Alive | RecorderStarted) -> Fields:
    return {} if batch.alive_interval_ms is None else {"alive_interval_ms": batch.alive_interval_ms}


def entry_text(kind: Kind, key: Fields, fields: Fields) -> str:
    """Return the text of an entry that goes into the checksum."""
    match kind:
        case Kind.BROKER:
            return records.broker_text(key["broker"], fields)
        case Kind.TOPIC:
            topic_id = key["topic_id"]
            return records.topic_text(key["topic"], str(topic_id) if topic_id else None, fields["czxid"])
        case Kind.ASSIGNMENT:
            return records.assignment_text(key["topic"], key["partition"], fields)
        case Kind.LEADERSHIP:
            return records.leadership_text(key["topic"], key["partition"], fields)
        case Kind.TOPIC_CONFIG:
            return records.topic_config_text(key["topic"], fields)
        case Kind.BROKER_CONFIG:
            return records.broker_config_text(key["broker"], fields)
        case Kind.OFFLINE_REPLICAS:
            return records.offline_text(key["broker"], fields)
        case _:
            return records.features_text(fields)


def _entries(state: StateCopy) -> Iterator[Change]:
    """Yield all entries of a state as if they were set now, with each topic before its partitions."""
    if state.features is not None:
        yield Change(Kind.FEATURES, None, None, state.features)
    for broker in state.brokers.values():
        yield Change(Kind.BROKER, broker.id, None, broker)
    for name, topic in state.topics.items():
        yield Change(Kind.TOPIC, name, None, topic)
        for partition, assignment in topic.partitions.items():
            yield Change(Kind.ASSIGNMENT, TopicPartition(name, partition), None, assignment)
    for topic_partition, leadership in state.states.items():
        yield Change(Kind.LEADERSHIP, topic_partition, None, leadership)
    for topic_name, config in state.topic_configs.items():
        yield Change(Kind.TOPIC_CONFIG, topic_name, None, config)
    for broker_id, config in state.broker_configs.items():
        yield Change(Kind.BROKER_CONFIG, broker_id, None, config)
    for told_by, static in state.static_configs.items():
        yield Change(Kind.BROKER_STATIC_CONFIG, told_by, None, static)
    for owner, failed in state.failed_replicas.items():
        yield Change(Kind.OFFLINE_REPLICAS, owner, None, failed)


def _is_unclean(change: Change, *, is_inferred: bool) -> bool:
    """Return True if a leader outside of the ISR was elected, so records that the ISR acknowledged may be lost.

    A recorder may have missed that the leader joined the ISR in between. The recovery state tells if it did not.
    """
    before: PartitionState | None = change.before
    after: PartitionState = change.after
    leader = after.leader_and_isr.leader
    if before is None or leader == NO_LEADER or leader in before.leader_and_isr.isr:
        return False
    versions = before.partition_epoch, after.partition_epoch
    has_missed = is_inferred and (UNTOLD_PARTITION_EPOCH in versions or versions[1] > versions[0] + 1)
    return not has_missed or after.leader_and_isr.leader_recovery_state is LeaderRecoveryState.RECOVERING
