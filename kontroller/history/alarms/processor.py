"""The watch as a stateful Spark operator. Its state is in RocksDB, with one entry per topic, so that a burst touches
few.

The present problems have a small state of their own: a record that only advances time reads nothing else.

Spark's event time is not used. It has a single watermark, which would drop the records of a cluster that lags behind,
and raise its alarms too early. Processing time is used for a silent cluster if the stream is live.
"""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, StructType

from kontroller.history.alarms.broker_configs import BrokerConfig, BrokerConfigs
from kontroller.history.alarms.own_time import OwnTime
from kontroller.history.alarms.records import SILENT, Alarm, Replicas, Rules, Seen, Topic, Trouble
from kontroller.history.alarms.watch import Course, Watch
from kontroller.history.schemas import FLAG, INT, LONG, TEXT, columns

_COURSE = columns(
    now_us=LONG,
    newest_epoch=LONG,
    newest_seq=LONG,
    stamp_us=LONG,
    waited_us=LONG,
    silent_since_us=LONG,
    snapshot_epoch=LONG,
    snapshot_seq=LONG,
    in_snapshot=FLAG,
    config_epoch=LONG,
    config_seq=LONG,
    min_isr=INT,
)
_NAME = columns(topic=TEXT)
_PARTITION = columns(
    partition=INT,
    epoch=LONG,
    seq=LONG,
    leader=INT,
    in_sync=INT,
    assigned_epoch=LONG,
    assigned_seq=LONG,
    assigned=INT,
)
_TOPIC = columns(config_epoch=LONG, config_seq=LONG, min_isr=INT, partitions=ArrayType(_PARTITION, containsNull=False))
_KEY = columns(topic=TEXT, partition=INT)
_BROKER = columns(broker=INT)
_BROKER_CONFIG = columns(epoch=LONG, seq=LONG, min_isr=INT, file_epoch=LONG, file_seq=LONG, file_min_isr=INT)
_HEARD = columns(heard_ms=LONG)
_TROUBLE = columns(problem=TEXT, began_us=LONG, since_us=LONG, cause=TEXT, epoch=LONG, seq=LONG, is_raised=FLAG)

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
    """The operator for the key of a cluster and a shard of its topics. Input rows are the key and the fields of `Seen`.

    `is_live`: time passes for a silent key. Each key then has a timer of an alive interval. It never waits for more
    than one interval at once, because a query that was stopped for a day has seen nothing of that day.
    """

    def __init__(self, rules: Rules, *, is_live: bool) -> None:
        self._rules = rules
        self._is_live = is_live
        self._interval_ms = -(-rules.alive_interval_us // 1000)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._course = handle.getValueState("course", _COURSE)
        self._brokers = handle.getMapState("brokers", _BROKER, _BROKER_CONFIG)
        self._heard = handle.getValueState("heard", _HEARD)
        self._topics = handle.getMapState("topics", _NAME, _TOPIC)
        self._troubles = handle.getMapState("troubles", _KEY, _TROUBLE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803  # Spark's name
        if self._is_live:
            self._hear(timerValues.getCurrentProcessingTimeInMs())
        records = sorted((Seen(*row[2:]) for row in rows), key=lambda seen: seen.position)
        yield from self._run_watch(key, lambda watch: (alarm for record in records for alarm in watch.see(record)))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        del expiredTimerInfo
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        heard_ms = (self._heard.get() or (now_ms,))[0]
        waited_ms = min(now_ms - heard_ms, self._interval_ms)
        if waited_ms < self._interval_ms:
            self._handle.registerTimer(heard_ms + self._interval_ms)
            return
        self._heard.update((now_ms,))
        self._handle.registerTimer(now_ms + self._interval_ms)
        yield from self._run_watch(key, lambda watch: watch.wait(waited_ms * 1000))

    def _hear(self, now_ms: int) -> None:
        """Record that the key was heard. If it has a timer, the timer itself checks the last time."""
        if not self._heard.exists():
            self._handle.registerTimer(now_ms + self._interval_ms)
        self._heard.update((now_ms,))

    def _run_watch(self, key: Any, look: Callable[[Watch], Iterator[Alarm]]) -> Iterator[Row]:
        known = {(topic, number): _trouble(value) for (topic, number), value in self._troubles.iterator()}
        topics = _Topics(self._topics)
        course = self._read_course()
        known_brokers = dict(course.configs.brokers)
        watch = Watch(rules=self._rules, course=course, topics=topics, troubles=dict(known))
        for *shown, position in look(watch):
            # Each shard notices the silence of its cluster, and only the first one reports it.
            is_said_by_another = shown[2] == SILENT and key[1] != 0
            if not is_said_by_another:
                yield Row(*OUTPUT.names)(key[0], *shown, *position)
        topics.write()
        self._write_troubles(known, watch.troubles)
        self._write_course(course)
        for broker, config in course.configs.brokers.items():
            if known_brokers.get(broker) != config:
                at, min_isr, file_at, file_min_isr = config
                self._brokers.updateValue((broker,), (*at, min_isr, *file_at, file_min_isr))

    def _write_troubles(self, before: dict[tuple[str, int], Trouble], after: dict[tuple[str, int], Trouble]) -> None:
        for where in before.keys() - after.keys():
            self._troubles.removeKey(where)
        for where, trouble in after.items():
            if before.get(where) != trouble:
                problem, began_us, since_us, cause, position, is_raised = trouble
                self._troubles.updateValue(where, (problem, began_us, since_us, cause, *position, is_raised))

    def _read_course(self) -> Course:
        kept = self._course.get()
        if kept is None:
            return Course()
        brokers = {broker: _broker_config(value) for (broker,), value in self._brokers.iterator()}
        now_us, epoch, seq, stamp_us, waited_us, silent_since_us, *snapshot, in_snapshot, of, config_seq, min_isr = kept
        return Course(
            time=OwnTime(now_us=now_us, newest=(epoch, seq), stamp_us=stamp_us, waited_us=waited_us),
            silent_since_us=silent_since_us,
            newest_snapshot=(snapshot[0], snapshot[1]),
            in_snapshot=in_snapshot,
            configs=BrokerConfigs(position=(of, config_seq), min_isr=min_isr, brokers=brokers),
        )

    def _write_course(self, course: Course) -> None:
        time = course.time
        kept_time = (time.now_us, *time.newest, time.stamp_us, time.waited_us, course.silent_since_us)
        default = (*course.configs.position, course.configs.min_isr)
        self._course.update((*kept_time, *course.newest_snapshot, course.in_snapshot, *default))


class _Topics(MutableMapping[str, Topic]):
    """The topics in Spark's state. Requested ones are read once, and changed ones are written."""

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
            number: Replicas((epoch, seq), leader, in_sync, (assigned_epoch, assigned_seq), assigned)
            for number, epoch, seq, leader, in_sync, assigned_epoch, assigned_seq, assigned in partitions
        },
    )


def _topic_row(topic: Topic) -> tuple[Any, ...]:
    partitions = [
        (number, *at, leader, in_sync, *assigned_at, assigned)
        for number, (at, leader, in_sync, assigned_at, assigned) in topic.partitions.items()
    ]
    return *topic.config_position, topic.min_isr, partitions


def _broker_config(row: Any) -> BrokerConfig:
    epoch, seq, min_isr, file_epoch, file_seq, file_min_isr = row
    return BrokerConfig((epoch, seq), min_isr, (file_epoch, file_seq), file_min_isr)


def _trouble(row: Any) -> Trouble:
    problem, began_us, since_us, cause, epoch, seq, is_raised = row
    return Trouble(problem, began_us, since_us, cause, (epoch, seq), is_raised)
