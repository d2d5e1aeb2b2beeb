"""The watch as a stateful operator of Spark: state in RocksDB, one entry a topic, so that a burst touches few entries.

What is wrong now is kept beside it, and is little: a record that only says that time goes on reads nothing else.

The operator works in the mode without Spark's time. There is one watermark for everything, so it would drop the records of
a cluster that is behind the others, and raise alarms about it too early.
"""

from collections.abc import Iterator, MutableMapping
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, StructType

from controller_pipeline.alarms.watch import (
    Course,
    Replicas,
    Rules,
    Seen,
    Topic,
    Trouble,
    Watch,
)
from controller_pipeline.schemas import FLAG, INT, LONG, TEXT, columns

_COURSE = columns(
    now_us=LONG,
    snapshot_epoch=LONG,
    snapshot_seq=LONG,
    in_snapshot=FLAG,
    config_epoch=LONG,
    config_seq=LONG,
    min_isr=INT,
)
_NAME = columns(topic=TEXT)
_PARTITION = columns(partition=INT, epoch=LONG, seq=LONG, leader=INT, in_sync=INT)
_TOPIC = columns(config_epoch=LONG, config_seq=LONG, min_isr=INT, partitions=ArrayType(_PARTITION, containsNull=False))
_KEY = columns(topic=TEXT, partition=INT)
_TROUBLE = columns(problem=TEXT, began_us=LONG, cause=TEXT, epoch=LONG, seq=LONG, is_raised=FLAG)

OUTPUT: StructType = columns(
    cluster_id=TEXT,
    topic=TEXT,
    partition=INT,
    problem=TEXT,
    state=TEXT,
    began_us=LONG,
    at_us=LONG,
    cause=TEXT,
    controller_epoch=LONG,
    seq=LONG,
)


class WatchProcessor(StatefulProcessor):
    """Its key is a cluster and a shard of its topics, its input rows are those two and the fields of `Seen`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._course = handle.getValueState("course", _COURSE)
        self._topics = handle.getMapState("topics", _NAME, _TOPIC)
        self._troubles = handle.getMapState("troubles", _KEY, _TROUBLE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803  # Spark calls it so
        del timerValues
        known = {(topic, number): _trouble(value) for (topic, number), value in self._troubles.iterator()}
        topics = _Topics(self._topics)
        watch = Watch(rules=self._rules, course=self._read_course(), topics=topics, troubles=dict(known))
        for record in sorted((Seen(*row[2:]) for row in rows), key=lambda seen: seen.position):
            for alarm in watch.see(record):
                *shown, position = alarm
                yield Row(*OUTPUT.names)(key[0], *shown, *position)
        topics.write()
        self._write_troubles(known, watch.troubles)
        self._write_course(watch.course)

    def _write_troubles(self, before: dict[tuple[str, int], Trouble], after: dict[tuple[str, int], Trouble]) -> None:
        for where in before.keys() - after.keys():
            self._troubles.removeKey(where)
        for where, trouble in after.items():
            if before.get(where) != trouble:
                problem, began_us, cause, position, is_raised = trouble
                self._troubles.updateValue(where, (problem, began_us, cause, *position, is_raised))

    def _read_course(self) -> Course:
        kept = self._course.get()
        if kept is None:
            return Course()
        now_us, epoch, seq, in_snapshot, config_epoch, config_seq, min_isr = kept
        return Course(
            now_us=now_us,
            newest_snapshot=(epoch, seq),
            in_snapshot=in_snapshot,
            config_position=(config_epoch, config_seq),
            min_isr=min_isr,
        )

    def _write_course(self, course: Course) -> None:
        self._course.update(
            (course.now_us, *course.newest_snapshot, course.in_snapshot, *course.config_position, course.min_isr)
        )


class _Topics(MutableMapping[str, Topic]):
    """The topics in Spark's state, of which those that are asked for are read once, and those that were set written."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._read: dict[str, Topic | None] = {}
        self._set: set[str] = set()

    def __getitem__(self, name: str) -> Topic:
        if name not in self._read:
            kept = self._state.getValue((name,))
            self._read[name] = None if kept is None else _topic(kept)
        topic = self._read[name]
        if topic is None:
            raise KeyError(name)
        return topic

    def __setitem__(self, name: str, topic: Topic) -> None:
        self._read[name] = topic
        self._set.add(name)

    def __delitem__(self, name: str) -> None:
        self._read[name] = None
        self._set.add(name)

    def __iter__(self) -> Iterator[str]:
        for (name,), value in self._state.iterator():
            self._read.setdefault(name, _topic(value))
        return iter([name for name, topic in self._read.items() if topic is not None])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def write(self) -> None:
        for name in self._set:
            topic = self._read[name]
            if topic is None:
                self._state.removeKey((name,))
            else:
                self._state.updateValue((name,), _topic_row(topic))


def _topic(row: Any) -> Topic:
    config_epoch, config_seq, min_isr, partitions = row
    return Topic(
        config_position=(config_epoch, config_seq),
        min_isr=min_isr,
        partitions={
            number: Replicas((epoch, seq), leader, in_sync) for number, epoch, seq, leader, in_sync in partitions
        },
    )


def _topic_row(topic: Topic) -> tuple[Any, ...]:
    partitions = [(number, *at, leader, in_sync) for number, (at, leader, in_sync) in topic.partitions.items()]
    return *topic.config_position, topic.min_isr, partitions


def _trouble(row: Any) -> Trouble:
    problem, began_us, cause, epoch, seq, is_raised = row
    return Trouble(problem, began_us, cause, (epoch, seq), is_raised)
