"""The watch: the alarms that follow from the records of one cluster in their order. It does not depend on Spark.

Problems become due by the watch's own time (`own_time`). Wrong clocks cannot stop it, and it advances during a silence
if the reader reports one. Otherwise a history gives the same alarms for any batches, any lag, and any other clusters.

Records may be repeated or late: each partition has the position of its last record, and older records change nothing. A
deletion is remembered until the next whole snapshot, and records from before the newest snapshot are ignored. Only a
recorder that has lost its directory may number records from 0 again.
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Final

from kontroller.history.alarms.broker_configs import BrokerConfigs
from kontroller.history.alarms.own_time import OwnTime
from kontroller.history.alarms.records import (
    CLEARED,
    LEADERLESS,
    NOWHERE,
    RAISED,
    SILENT,
    UNDER_MIN_ISR,
    Alarm,
    Position,
    Replicas,
    Rules,
    Seen,
    Topic,
    Trouble,
)

_NEVER: Final = 1 << 63


@dataclass(slots=True, kw_only=True)
class Course:
    """The progress through the history."""

    time: OwnTime = field(default_factory=OwnTime)
    silent_since_us: int | None = None
    """The event time of the last record before the present silence; None if there is no silence."""
    newest_snapshot: Position = NOWHERE
    """The beginning of the newest snapshot. Older records are ignored."""
    in_snapshot: bool = False
    configs: BrokerConfigs = field(default_factory=BrokerConfigs)


@dataclass(slots=True, kw_only=True)
class Watch:
    """The state of some of a cluster's topics, and their problems. Call `see` for its records in the order of
    history."""

    rules: Rules
    course: Course
    topics: MutableMapping[str, Topic]
    troubles: dict[tuple[str, int], Trouble]
    _next_due_us: int = 0

    def see(self, record: Seen) -> Iterator[Alarm]:
        """Apply a record. Return the alarms that it raises and clears."""
        if self._is_new_numbering(record):
            self._rewind((record.controller_epoch, -1))
        if record.position < self.course.newest_snapshot:
            return
        if self.course.time.see(record.position, record.at_us, self.rules):
            yield from self._end_silence(record)
            yield from self._raise_what_is_due()
        match record.kind:
            case "leadership" | "leadership_removed" | "assignment" | "assignment_removed":
                yield from self._partition(record)
            case "topic_removed":
                yield from self._topic_removed(record)
            case "topic_config" | "topic_config_removed":
                yield from self._topic_config(record)
            case "broker_config" | "broker_config_removed" | "broker_static_config" | "broker_static_config_removed":
                yield from self._broker_config(record)
            case "snapshot_started" if record.position > self.course.newest_snapshot:
                self.course.newest_snapshot = record.position
                self.course.in_snapshot = True
            case "snapshot_ended" if self.course.in_snapshot:
                self.course.in_snapshot = False
                if record.controller_epoch == self.course.newest_snapshot[0]:
                    yield from self._forget_what_is_not_in_the_snapshot(record)
            case "gap" | "controller_elected" | "recorder_started":
                self.course.in_snapshot = False  # after a break, the rest of the snapshot is not the whole state

    def wait(self, waited_us: int) -> Iterator[Alarm]:
        """Let time pass without a record, after all was read. Return the alarms that this raises."""
        time = self.course.time
        time.wait(waited_us)
        yield from self._raise_what_is_due()
        if time.waited_us > self.rules.silent_after_us and self.course.silent_since_us is None:
            self.course.silent_since_us = time.stamp_us
            yield self._silence(time.stamp_us)

    def _is_new_numbering(self, record: Seen) -> bool:
        """Return True if a recorder has lost its directory and numbers the records of the epoch from 0 again.

        A record that is only repeated is not younger than the newest one."""
        time = self.course.time
        is_earlier = record.controller_epoch == time.newest[0] and record.seq < time.newest[1]
        return record.kind == "recorder_started" and is_earlier and record.at_us > time.stamp_us

    def _rewind(self, position: Position) -> None:
        """Treat all that is known as stated at `position` or before. The next snapshot says what is left of it."""
        course = self.course
        course.time.newest = min(course.time.newest, position)
        course.newest_snapshot = min(course.newest_snapshot, position)
        course.configs.rewind(position)
        for name, topic in list(self.topics.items()):
            self.topics[name] = topic.rewind(position)

    def _end_silence(self, record: Seen) -> Iterator[Alarm]:
        began_us, self.course.silent_since_us = self.course.silent_since_us, None
        if began_us is not None:
            yield Alarm(None, None, SILENT, CLEARED, began_us, record.at_us, record.cause, record.position)

    def _raise_what_is_due(self) -> Iterator[Alarm]:
        now_us = self.course.time.now_us
        if now_us <= self._next_due_us:
            return
        waiting = []
        for key, trouble in self.troubles.items():
            if trouble.is_raised:
                continue
            due_us = self.rules.due_us(trouble)
            if due_us < now_us:
                self.troubles[key] = trouble._replace(is_raised=True)
                yield self._make_raised(key)
            else:
                waiting.append(due_us)
        self._next_due_us = min(waiting, default=_NEVER)

    def list_raised(self) -> Iterator[Alarm]:
        """Return the alarms that are raised and not cleared, as they were raised."""
        if self.course.silent_since_us is not None:
            yield self._silence(self.course.silent_since_us)
        yield from (self._make_raised(key) for key, trouble in self.troubles.items() if trouble.is_raised)

    def _silence(self, began_us: int) -> Alarm:
        at_us = began_us + self.rules.silent_after_us
        return Alarm(None, None, SILENT, RAISED, began_us, at_us, None, self.course.time.newest)

    def _make_raised(self, key: tuple[str, int]) -> Alarm:
        problem, began_us, _, cause, position, _ = self.troubles[key]
        return Alarm(*key, problem, RAISED, began_us, began_us + self.rules.patience_us(problem), cause, position)

    def _partition(self, record: Seen) -> Iterator[Alarm]:
        name, number = record.topic, record.partition
        if name is None or number is None:
            return  # the layers report it as a finding; there is no partition to watch
        topic = self.topics.get(name) or Topic()
        before = topic.partitions.get(number) or Replicas()
        after = topic.partitions[number] = before.apply(record)
        if after is before:
            return
        self.topics[name] = topic
        yield from self._judge(name, number, topic, record)

    def _topic_removed(self, record: Seen) -> Iterator[Alarm]:
        topic = self.topics.get(record.topic) if record.topic is not None else None
        if topic is None or record.topic is None:
            return
        for number, replicas in topic.partitions.items():
            topic.partitions[number] = replicas.remove(record.position)
            yield from self._judge(record.topic, number, topic, record)
        if topic.config_position < record.position:
            topic.config_position, topic.min_isr = record.position, None
        self.topics[record.topic] = topic

    def _topic_config(self, record: Seen) -> Iterator[Alarm]:
        if record.topic is None:
            return
        topic = self.topics.get(record.topic) or Topic()
        if record.position <= topic.config_position:
            return
        topic.config_position, topic.min_isr = record.position, record.min_isr
        self.topics[record.topic] = topic
        for number in topic.partitions:
            yield from self._judge(record.topic, number, topic, record)

    def _broker_config(self, record: Seen) -> Iterator[Alarm]:
        if not self.course.configs.see(record):
            return
        for name, topic in self.topics.items():
            for number, replicas in topic.partitions.items() if topic.min_isr is None else ():
                if record.broker is None or record.broker == replicas.leader:
                    yield from self._judge(name, number, topic, record)

    def _forget_what_is_not_in_the_snapshot(self, record: Seen) -> Iterator[Alarm]:
        """Remove what a whole snapshot does not name. It vanished while nobody wrote, or was deleted before."""
        oldest = self.course.newest_snapshot
        self.course.configs.forget_before(oldest)
        for name, topic in list(self.topics.items()):
            has_lost_config = NOWHERE < topic.config_position < oldest
            if has_lost_config:
                topic.config_position, topic.min_isr = NOWHERE, None
            gone = [number for number, replicas in topic.partitions.items() if replicas.newest < oldest]
            has_lost_part = False
            for number, replicas in topic.partitions.items():
                topic.partitions[number] = replicas.remove(oldest)
                has_lost_part = has_lost_part or topic.partitions[number] != replicas
                yield from self._judge(name, number, topic, record)
            for number in gone:
                del topic.partitions[number]
            if not topic.partitions and topic.min_isr is None:
                del self.topics[name]
            elif has_lost_part or has_lost_config:
                self.topics[name] = topic

    def _judge(self, name: str, number: int, topic: Topic, record: Seen) -> Iterator[Alarm]:
        """Compare the present problem of a partition with the previous one."""
        problem = self._problem(topic, topic.partitions[number])
        key = name, number
        trouble = self.troubles.get(key)
        if trouble is not None and trouble.problem == problem:
            return
        if trouble is not None:
            del self.troubles[key]
            if trouble.is_raised:
                yield Alarm(
                    *key, trouble.problem, CLEARED, trouble.began_us, record.at_us, record.cause, record.position
                )
        if problem is not None:
            now_us = self.course.time.now_us
            begun = Trouble(problem, record.at_us, now_us, record.cause, record.position, is_raised=False)
            self.troubles[key] = begun
            self._next_due_us = min(self._next_due_us, self.rules.due_us(begun))

    def _problem(self, topic: Topic, replicas: Replicas) -> str | None:
        if replicas.leader is None:
            return None
        if replicas.leader < 0:
            return LEADERLESS
        needed = self.course.configs.count_needed(topic, replicas, self.rules)
        return UNDER_MIN_ISR if replicas.in_sync is not None and replicas.in_sync < needed else None
