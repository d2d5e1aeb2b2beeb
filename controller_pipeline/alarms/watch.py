"""What an alarm is: one cluster's records, in their order, and what is said about them. Nothing here knows of Spark.

Time is the history's own: it is as late as the newest record, and an idle controller writes one every few seconds. So the
same history gives the same alarms however it is cut into batches, however far behind the reader is, and whatever other
clusters do.

A record may come again, or late: each partition keeps the position of the record that it is as of, and older ones change
nothing. What was deleted stays known as deleted until the next whole snapshot, and nothing from before the newest snapshot
is taken.
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

Position = tuple[int, int]
"""Controller epoch and number of a record: the order of a history."""

NOWHERE: Final = (-1, -1)
_NEVER: Final = 1 << 63
LEADERLESS: Final = "leaderless"
UNDER_MIN_ISR: Final = "under_min_isr"


class Seen(NamedTuple):
    """What the watch looks at in a record; `in_sync` is the size of the ISR, None where it did not change."""

    controller_epoch: int
    seq: int
    at_us: int
    kind: str
    cause: str | None = None
    topic: str | None = None
    partition: int | None = None
    leader: int | None = None
    in_sync: int | None = None
    min_isr: int | None = None

    @property
    def position(self) -> Position:
        return self.controller_epoch, self.seq


class Replicas(NamedTuple):
    """A partition, as of a record. Both are None when it was deleted, or where no record said them yet."""

    position: Position
    leader: int | None
    in_sync: int | None


@dataclass(slots=True, kw_only=True)
class Topic:
    """A topic's partitions, and its `min.insync.replicas`, None where it has none of its own."""

    config_position: Position = NOWHERE
    min_isr: int | None = None
    partitions: dict[int, Replicas] = field(default_factory=dict)


class Trouble(NamedTuple):
    """What is wrong with a partition now, since when, and the record that it began with."""

    problem: str
    began_us: int
    cause: str | None
    position: Position
    is_raised: bool


@dataclass(slots=True, kw_only=True)
class Course:
    """How far the history has been seen."""

    now_us: int = 0
    newest_snapshot: Position = NOWHERE
    """Where it began: what is older is not taken any more."""
    in_snapshot: bool = False
    config_position: Position = NOWHERE
    min_isr: int | None = None
    """The default of all brokers."""


class Alarm(NamedTuple):
    """A row of the table `alarms`, without its cluster."""

    topic: str
    partition: int
    problem: str
    state: str
    began_us: int
    at_us: int
    cause: str | None
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How long each problem may last before there is an alarm, and `min.insync.replicas` where no record says it."""

    leaderless_after_us: int
    under_min_isr_after_us: int
    min_isr: int

    def due_us(self, trouble: Trouble) -> int:
        patience = self.leaderless_after_us if trouble.problem == LEADERLESS else self.under_min_isr_after_us
        return trouble.began_us + patience


@dataclass(slots=True, kw_only=True)
class Watch:
    """The state of some of a cluster's topics, and what is wrong there. `see` its records in the order of history."""

    rules: Rules
    course: Course
    topics: MutableMapping[str, Topic]
    troubles: dict[tuple[str, int], Trouble]
    _next_due_us: int = 0

    def see(self, record: Seen) -> Iterator[Alarm]:
        """The alarms that are raised and cleared now that this has come."""
        if record.position < self.course.newest_snapshot:
            return
        if record.at_us > self.course.now_us:
            self.course.now_us = record.at_us
            yield from self._raise_what_is_due()
        match record.kind:
            case "leadership" | "leadership_removed":
                yield from self._partition(record)
            case "topic_removed":
                yield from self._topic_removed(record)
            case "topic_config" | "topic_config_removed":
                yield from self._topic_config(record)
            case "broker_config" | "broker_config_removed":
                yield from self._default_config(record)
            case "snapshot_started" if record.position > self.course.newest_snapshot:
                self.course.newest_snapshot = record.position
                self.course.in_snapshot = True
            case "snapshot_ended" if self.course.in_snapshot:
                self.course.in_snapshot = False
                if record.controller_epoch == self.course.newest_snapshot[0]:
                    yield from self._forget_what_is_not_in_the_snapshot(record)
            case "gap" | "controller_elected" | "recorder_started":
                self.course.in_snapshot = False  # what is left of it does not say everything

    def _raise_what_is_due(self) -> Iterator[Alarm]:
        now_us = self.course.now_us
        if now_us <= self._next_due_us:
            return
        waiting = []
        for key, trouble in self.troubles.items():
            if trouble.is_raised:
                continue
            due_us = self.rules.due_us(trouble)
            if due_us < now_us:
                self.troubles[key] = trouble._replace(is_raised=True)
                yield Alarm(*key, trouble.problem, "raised", trouble.began_us, due_us, trouble.cause, trouble.position)
            else:
                waiting.append(due_us)
        self._next_due_us = min(waiting, default=_NEVER)

    def _partition(self, record: Seen) -> Iterator[Alarm]:
        name, number = record.topic, record.partition
        if name is None or number is None:
            return  # a finding of the layers; there is no partition to be alarmed about
        topic = self.topics.get(name) or Topic()
        before = topic.partitions.get(number) or Replicas(NOWHERE, None, None)
        if record.position <= before.position:
            return
        if record.kind == "leadership_removed":
            after = Replicas(record.position, None, None)
        else:
            leader = before.leader if record.leader is None else record.leader
            in_sync = before.in_sync if record.in_sync is None else record.in_sync
            after = Replicas(record.position, leader, in_sync)
        topic.partitions[number] = after
        self.topics[name] = topic
        yield from self._judge(name, number, topic, record)

    def _topic_removed(self, record: Seen) -> Iterator[Alarm]:
        topic = self.topics.get(record.topic) if record.topic is not None else None
        if topic is None or record.topic is None:
            return
        for number, replicas in topic.partitions.items():
            if replicas.position < record.position:
                topic.partitions[number] = Replicas(record.position, None, None)
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

    def _default_config(self, record: Seen) -> Iterator[Alarm]:
        if record.position <= self.course.config_position:
            return
        self.course.config_position, self.course.min_isr = record.position, record.min_isr
        for name, topic in self.topics.items():
            for number in topic.partitions if topic.min_isr is None else ():
                yield from self._judge(name, number, topic, record)

    def _forget_what_is_not_in_the_snapshot(self, record: Seen) -> Iterator[Alarm]:
        """What a whole snapshot does not name is no more: it went while nobody wrote, or was deleted before."""
        oldest = self.course.newest_snapshot
        if self.course.config_position < oldest:
            self.course.config_position, self.course.min_isr = NOWHERE, None
        for name, topic in list(self.topics.items()):
            has_lost_config = NOWHERE < topic.config_position < oldest
            if has_lost_config:
                topic.config_position, topic.min_isr = NOWHERE, None
            gone = [number for number, replicas in topic.partitions.items() if replicas.position < oldest]
            for number in gone:
                topic.partitions[number] = Replicas(record.position, None, None)
            for number in topic.partitions:
                yield from self._judge(name, number, topic, record)
            for number in gone:
                del topic.partitions[number]
            if not topic.partitions and topic.min_isr is None:
                del self.topics[name]
            elif gone or has_lost_config:
                self.topics[name] = topic

    def _judge(self, name: str, number: int, topic: Topic, record: Seen) -> Iterator[Alarm]:
        """Compares what is wrong with a partition with what was."""
        problem = self._problem(topic, topic.partitions[number])
        key = name, number
        trouble = self.troubles.get(key)
        if trouble is not None and trouble.problem == problem:
            return
        if trouble is not None:
            del self.troubles[key]
            if trouble.is_raised:
                yield Alarm(
                    *key,
                    trouble.problem,
                    "cleared",
                    trouble.began_us,
                    self.course.now_us,
                    record.cause,
                    record.position,
                )
        if problem is not None:
            begun = Trouble(problem, record.at_us, record.cause, record.position, is_raised=False)
            self.troubles[key] = begun
            self._next_due_us = min(self._next_due_us, self.rules.due_us(begun))

    def _problem(self, topic: Topic, replicas: Replicas) -> str | None:
        if replicas.leader is None:
            return None
        if replicas.leader < 0:
            return LEADERLESS
        wanted = next((it for it in (topic.min_isr, self.course.min_isr) if it is not None), self.rules.min_isr)
        return UNDER_MIN_ISR if replicas.in_sync is not None and replicas.in_sync < wanted else None
