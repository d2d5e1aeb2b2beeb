"""From a journal's lines to answers: Spark's answers for random clusters equal those of a follower without Spark."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from kontroller.history import schemas
from kontroller.history.answers.all import answer_all
from kontroller.history.schemas import Table
from kontroller.history.transforms.broker_intervals import broker_intervals
from kontroller.history.transforms.config_intervals import config_intervals
from kontroller.history.transforms.continuity.breaks import marks
from kontroller.history.transforms.known_spans import find_known_spans
from kontroller.history.transforms.partition_intervals import partition_intervals
from tests.spark.answers.literals import Answers, answers
from tests.spark.histories import history, make_events

JOURNALS: Final = {f"cluster {seed}": history(seed, cluster_id=f"cluster {seed}", events=120) for seed in range(4)}
US: Final = 1_000_000


@pytest.fixture(scope="module")
def answered(spark: SparkSession) -> dict[Table, DataFrame]:
    events = make_events(spark, *JOURNALS.values()).localCheckpoint()
    spans = find_known_spans(marks(events)).localCheckpoint()
    configs = config_intervals(events, spans).localCheckpoint()
    return answer_all({
        schemas.EVENTS: events,
        schemas.KNOWN_SPANS: spans,
        schemas.PARTITION_INTERVALS: partition_intervals(events, spans, configs).localCheckpoint(),
        schemas.BROKER_INTERVALS: broker_intervals(events, spans).localCheckpoint(),
    })  # fmt: skip


Key = tuple[str, int]


@dataclass(slots=True)
class State:
    """The leaders of partitions, and the topic ids and partition epochs of their states."""

    leaders: dict[Key, int] = field(default_factory=dict)
    versions: dict[Key, tuple[str | None, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Follower:
    """Sums up each topic's time by the records of a journal, one record after the other, in microseconds.

    Between two known times, a partition without a leader has none if the same version of its state is found again."""

    existed: Counter[str] = field(default_factory=Counter)
    leaderless: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    broker_losses: int = 0
    _state: State = field(default_factory=State)
    _snapshot: State = field(default_factory=State)
    _is_known: bool = False
    _known_until: int = 0
    _last: tuple[int, int] = (0, -1)

    def follow(self, record: dict[str, Any]) -> None:
        kind, now = record["kind"], record["event_time_us"]
        place = (record["controller_epoch"], record["seq"])
        if kind in ("gap", "recorder_started") or place != (self._last[0], self._last[1] + 1):
            self._is_known, self._snapshot = False, State()
        self._last = place
        if self._is_known:
            self._pass(now)
            if not record.get("snapshot"):
                self._apply(self._state, record)
                self.broker_losses += kind == "broker_removed"
        elif record.get("snapshot"):
            self._apply(self._snapshot, record)
        elif kind == "snapshot_started":
            self._snapshot = State()
        elif kind == "snapshot_ended":
            self.end_unknown(now, self._snapshot)
            self._state, self._is_known, self._known_until = self._snapshot, True, now

    def end_unknown(self, now: int, found: State) -> None:
        for key, leader in self._state.leaders.items() if not self._is_known else ():
            topic_id, _ = version = self._state.versions.get(key, (None, -1))
            is_same = leader == -1 and topic_id is not None and found.versions.get(key) == version
            self.existed[key[0]] += now - self._known_until
            (self.leaderless if is_same else self.unknown)[key[0]] += now - self._known_until

    def _pass(self, now: int) -> None:
        for (topic, _), leader in self._state.leaders.items():
            self.existed[topic] += now - self._known_until
            self.leaderless[topic] += (now - self._known_until) * (leader == -1)
        self._known_until = now

    @staticmethod
    def _apply(state: State, record: dict[str, Any]) -> None:
        leaders, versions = state.leaders, state.versions
        key = (record.get("topic", ""), record.get("partition", -1))
        match record["kind"]:
            case "assignment":
                leaders.setdefault(key, -1)
            case "leadership":
                leaders[key] = record["delta"].get("leader", leaders.get(key, -1))
                epoch = record["delta"].get("partition_epoch", versions.get(key, (None, -1))[1])
                versions[key] = record["topic_id"], epoch
            case "leadership_removed":
                leaders.pop(key, None)
                versions.pop(key, None)
            case "topic_removed":
                for other in [other for other in leaders if other[0] == key[0]]:
                    del leaders[other]
                    versions.pop(other, None)


def follow_lines(lines: Iterable[bytes]) -> Follower:
    follower, now = Follower(), 0
    for line in lines:
        record = json.loads(line)
        now = record["event_time_us"]
        follower.follow(record)
    follower.end_unknown(now, State())
    return follower


def total(found: Answers, cluster: str, name: str) -> Counter[str]:
    """Return the sum over all days, by topic."""
    sums: Counter[str] = Counter()
    for topic, seconds in found(cluster, "topic", name):
        sums[topic] += round(seconds * US)
    return sums


def test_time_without_a_leader_is_what_the_journal_says(answered: dict[Table, DataFrame]) -> None:
    found = answers(answered[schemas.AVAILABILITY], schemas.AVAILABILITY)
    leaderless: Counter[str] = Counter()
    for cluster, lines in JOURNALS.items():
        expected = follow_lines(lines)
        assert total(found, cluster, "partition_seconds") == expected.existed, cluster
        assert total(found, cluster, "leaderless_seconds") == expected.leaderless, cluster
        assert total(found, cluster, "unknown_seconds") == expected.unknown, cluster
        leaderless += expected.leaderless
    assert leaderless


def test_downtime_by_cause_comes_to_the_downtime(answered: dict[Table, DataFrame]) -> None:
    by_cause = answers(answered[schemas.DOWNTIME_BY_CAUSE], schemas.DOWNTIME_BY_CAUSE)
    by_topic = answers(answered[schemas.AVAILABILITY], schemas.AVAILABILITY)
    for cluster in JOURNALS:
        for name in ("leaderless_seconds", "under_min_isr_seconds"):
            assert total(by_cause, cluster, name) == total(by_topic, cluster, name)


def test_each_broker_that_went_in_known_time_is_a_failover(answered: dict[Table, DataFrame]) -> None:
    found = answers(answered[schemas.FAILOVERS], schemas.FAILOVERS)
    went = {cluster: follow_lines(lines).broker_losses for cluster, lines in JOURNALS.items()}
    assert {cluster: len(found(cluster, "broker")) for cluster in JOURNALS} == went
    for cluster in JOURNALS:
        for partitions, moved, slowest in found(cluster, "partitions", "moved", "max_seconds"):
            assert moved <= partitions
            assert (slowest is None) == (moved == 0)


def test_every_epoch_of_the_journal_is_a_controller(answered: dict[Table, DataFrame]) -> None:
    found = answers(answered[schemas.CONTROLLERS], schemas.CONTROLLERS)
    for cluster, lines in JOURNALS.items():
        records = Counter(json.loads(line)["controller_epoch"] for line in lines)
        assert Counter(dict(found(cluster, "controller_epoch", "records"))) == records
