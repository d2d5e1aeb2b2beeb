"""The watch as Spark's operator, without Spark: the state between batches, and the timers."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester
from pyspark.sql.types import StructType

from kontroller.history.alarms import processor
from kontroller.history.alarms.processor import WatchProcessor
from kontroller.history.alarms.records import Rules, Seen
from tests.spark.alarms.scenes import SCENES, START_US, Fields, Said
from tests.unit.alarms.watching import RULES, alive, lead

OF_SCENES = Rules(
    leaderless_after_us=30_000_000,
    under_min_isr_after_us=20_000_000,
    min_isr=1,
    alive_interval_us=20_000_000,
    silent_after_us=60_000_000,
)
KEPT = {
    "topics": (processor._NAME, processor._TOPIC),
    "troubles": (processor._KEY, processor._TROUBLE),
    "brokers": (processor._BROKER, processor._BROKER_CONFIG),
}


class OfOneKey(WatchProcessor):
    """The tester has keys of one column, which is the whole key here."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N803
        return super().handleInputRows(key[0], rows, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N803
        return super().handleExpiredTimer(key[0], timerValues, expiredTimerInfo)


def rows(records: Iterable[Seen], shard: int = 0) -> list[Row]:
    row = Row("cluster_id", "shard", *Seen._fields)
    return [row("c", shard, *record) for record in records]


def make_seen(fields: Fields) -> Seen:
    wanted = fields.get("config", {}).get("min.insync.replicas")
    values: dict[str, Any] = {name: fields[name] for name in Seen._fields if name in fields}
    values["at_us"] = fields["event_time_us"]
    values["in_sync"] = len(fields["isr"]) if "isr" in fields else None
    values["assigned"] = len(fields["replicas"]) if "replicas" in fields else None
    values["min_isr"] = None if wanted is None else int(wanted)
    return Seen(**values)


def describe_row(row: Row) -> Said:
    began, at = ((us - START_US) / 1e6 for us in (row.began_us, row.at_us))
    return Said(row.topic, row.partition, row.problem, row.state, began, at, row.controller_epoch, row.seq)


def fits(value: tuple[Any, ...], schema: StructType) -> bool:
    return len(value) == len(schema)


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_gives_its_alarms_whatever_is_kept_between_its_batches(name: str) -> None:
    tester = TwsTester(OfOneKey(OF_SCENES, is_live=False), timeMode="None", outputMode="Append")
    alarms = [
        describe_row(row)
        for batch in SCENES[name].batches
        for row in tester.test(("c", 0), rows(make_seen(it) for it in batch))
    ]
    assert sorted(alarms) == sorted(SCENES[name].alarms)
    assert fits(tester.peekValueState("course", ("c", 0)) or (), processor._COURSE)
    for state, (key_schema, schema) in KEPT.items():
        kept = tester.peekMapState(state, ("c", 0))
        assert all(fits(key, key_schema) and fits(value, schema) for key, value in kept.items())


class Live:
    """A live operator, and a clock: seconds."""

    def __init__(self) -> None:
        self.tester = TwsTester(OfOneKey(RULES, is_live=True), timeMode="ProcessingTime", outputMode="Append")
        self.now_s = 1_000_000
        self.tester.setProcessingTime(self.now_s * 1000)

    def read(self, *records: Seen, shard: int = 0) -> list[str]:
        return [f"{row.problem} {row.state}" for row in self.tester.test(("c", shard), rows(records, shard))]

    def wait(self, seconds: int, step: int = 1) -> list[str]:
        alarms: list[str] = []
        for _ in range(0, seconds, step):
            self.now_s += step
            alarms += [f"{row.problem} {row.state}" for row in self.tester.setProcessingTime(self.now_s * 1000)]
        return alarms


def test_trouble_and_silence_are_told_of_by_timers_each_once() -> None:
    live = Live()
    live.read(lead(0, 0, -1))
    assert live.wait(30) == []
    assert live.wait(10) == ["leaderless raised", "silent raised"]
    assert live.wait(100) == []
    assert live.read(lead(1, 141, 1)) == ["silent cleared", "leaderless cleared"]


def test_a_controller_that_writes_is_not_silent_and_its_time_is_counted_once() -> None:
    live = Live()
    live.read(lead(0, 0, -1))
    told = [live.wait(9) + live.read(alive(seq, 9.0 * seq)) for seq in range(1, 4)]
    assert told == [[], [], []]
    assert live.read(alive(4, 31)) == ["leaderless raised"]


def test_a_query_that_was_stopped_for_a_day_has_waited_for_one_interval() -> None:
    live = Live()
    live.read(lead(0, 0, -1))
    assert live.wait(86_400, step=86_400) == []
    assert live.wait(30) == ["leaderless raised", "silent raised"]


def test_of_several_shards_one_says_that_the_cluster_is_silent() -> None:
    live = Live()
    live.read(alive(0, 0), shard=0)
    live.read(alive(0, 0), shard=1)
    assert live.wait(60) == ["silent raised"]
