"""Random histories, answered by Spark and by counting hours one after the other.

A history is drawn as a grid: what each partition and broker was in each hour of three days. The intervals that Spark is
asked about are made of the grid, so nothing about lengths, midnights and overlaps is computed twice in the same way.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession

from kontroller.history import schemas
from kontroller.history.answers.all import answer_all
from kontroller.history.schemas import Table
from tests.spark.answers.literals import HEALTHY, Answers, Histories, Row, answers, broker, day, make_time

HOURS: Final = 72
HOUR: Final = 3600
CLUSTERS: Final = 20
BROKERS: Final = (1, 2, 3)
RACKS: Final = ("r1", "r1", "r2", "r2", "", None)
UNKNOWN: Final[Row] = {"is_known": False}
PROVEN: Final[Row] = {"is_known": False, "leader": -1}
Figures: TypeAlias = dict[tuple[Any, ...], Counter[str]]


@dataclass(frozen=True, slots=True)
class Grid:
    """The state of one cluster by hour: each partition's state (None: it does not exist), each broker's rack (None: not
    registered)."""

    partitions: dict[tuple[str, int], list[Row | None]] = field(default_factory=dict)
    racks: dict[int, list[str | None]] = field(default_factory=dict)


def draw_grid(seed: int) -> Grid:
    """Some brokers have no rack (""); states and racks last some hours."""
    choose = random.Random(seed)
    grid = Grid()
    for topic, number in (("a", 0), ("a", 1), ("a", 2), ("b", 0)):
        grid.partitions[topic, number] = list(_draw_hours(choose, 0.25, lambda: _state(choose)))
    for number in BROKERS:
        grid.racks[number] = list(_draw_hours(choose, 0.05, lambda: choose.choice(RACKS)))
    return grid


def _draw_hours(choose: random.Random, change: float, draw: Any) -> Iterator[Any]:
    now = draw()
    for _ in range(HOURS):
        if choose.random() < change:
            now = draw()
        yield now


def _state(choose: random.Random) -> Row | None:
    if choose.random() < 0.3:
        return choose.choice((None, UNKNOWN, PROVEN))
    replicas = choose.choice(([1, 2, 3], [2, 1, 3], [3, 1], [2]))
    isr = choose.sample(replicas, choose.randint(1, len(replicas)))
    state = {"leader": choose.choice([*isr, -1]), "isr": isr, "replicas": replicas}
    return (
        HEALTHY | state | {"is_known": True, "min_insync_replicas": choose.randint(1, 3), "cause": choose.choice("xyz")}
    )


def intervals(grid: Grid, choose: random.Random) -> Iterator[Row]:
    """Return the intervals of the grid, and some of no length, as several changes in one moment leave them."""
    for (topic, number), hours in grid.partitions.items():
        for began, ended, state in _runs(hours):
            base = {"topic": topic, "partition": number, "began": make_time(began), "controller_epoch": 1}
            if state is None:
                continue
            if state["is_known"] and choose.random() < 0.3:
                yield base | state | {"ended": make_time(began), "leader": -1, "isr": [], "seq": began}
            yield base | state | {"ended": make_time(ended), "is_last": ended == HOURS * HOUR, "seq": began + 1}
    for number, racks in grid.racks.items():
        for began, ended, rack in _runs(racks):
            if rack is not None:
                yield broker(number, rack or None, began, ended)


def _runs(hours: Sequence[Any]) -> Iterator[tuple[int, int, Any]]:
    hour = 0
    for value, run in groupby(hours):
        length = len(list(run))
        yield hour * HOUR, (hour + length) * HOUR, value
        hour += length


GRIDS: Final = {f"cluster {seed}": draw_grid(seed) for seed in range(CLUSTERS)}


@pytest.fixture(scope="module")
def answered(spark: SparkSession) -> dict[Table, DataFrame]:
    histories = Histories(spark, {name: list(intervals(grid, random.Random(name))) for name, grid in GRIDS.items()})
    return answer_all({
        schemas.EVENTS: histories.events,
        schemas.KNOWN_SPANS: histories.spans,
        schemas.PARTITION_INTERVALS: histories.partitions,
        schemas.BROKER_INTERVALS: histories.brokers,
    })  # fmt: skip


def cells() -> Iterator[tuple[str, Grid, int, str, int, Row]]:
    """Yield each hour in which a partition exists: cluster, its grid, hour, topic, number, state."""
    for cluster, grid in GRIDS.items():
        for (topic, number), hours in grid.partitions.items():
            for hour, state in enumerate(hours):
                if state is not None:
                    yield cluster, grid, hour, topic, number, state


def rack(grid: Grid, number: int, hour: int) -> str:
    """Return the rack under which the broker is registered, or was last, or will be first."""
    racks = grid.racks[number]
    nearest = [*reversed(racks[: hour + 1]), *racks[hour + 1 :]]
    return next((found for found in nearest if found is not None), "")


def hour_of(seconds: float) -> int:
    assert seconds % HOUR == 0
    return int(seconds // HOUR)


def read_figures(found: Answers, keys: Sequence[str], names: Sequence[str]) -> Figures:
    figures: Figures = {}
    for cluster in GRIDS:
        for row in found(cluster, *keys, *names):
            counts = {name: hour_of(value) for name, value in zip(names, row[len(keys) :], strict=True)}
            figures[cluster, *row[: len(keys)]] = Counter(counts)
    return figures


def is_leaderless(state: Row) -> bool:
    return state.get("leader") == -1


def is_under_min_isr(state: Row) -> bool:
    return bool(state["is_known"] and state["leader"] != -1 and len(state["isr"]) < state["min_insync_replicas"])


def test_availability_is_what_counting_hours_gives(answered: dict[Table, DataFrame]) -> None:
    expected: Figures = defaultdict(Counter)
    for cluster, _, hour, topic, _, state in cells():
        counts = expected[cluster, topic, day(1 + hour // 24)]
        counts["partition_seconds"] += 1
        counts["leaderless_seconds"] += is_leaderless(state)
        counts["under_min_isr_seconds"] += is_under_min_isr(state)
        counts["unknown_seconds"] += not state["is_known"] and not is_leaderless(state)
    found = answers(answered[schemas.AVAILABILITY], schemas.AVAILABILITY)
    names = ("partition_seconds", "leaderless_seconds", "under_min_isr_seconds", "unknown_seconds")
    assert read_figures(found, ("topic", "day"), names) == expected
    for cluster in GRIDS:
        for total, down, unknown, availability in found(cluster, names[0], names[1], names[3], "availability"):
            assert availability == (None if total == unknown else 1 - down / (total - unknown))


def test_downtime_by_cause_comes_to_the_same_downtime(answered: dict[Table, DataFrame]) -> None:
    expected: Counter[tuple[Any, ...]] = Counter()
    for cluster, _, hour, topic, _, state in cells():
        key = (cluster, topic, day(1 + hour // 24))
        if is_leaderless(state) or is_under_min_isr(state):
            expected[key] += 1
    found = answers(answered[schemas.DOWNTIME_BY_CAUSE], schemas.DOWNTIME_BY_CAUSE)
    total: Counter[tuple[Any, ...]] = Counter()
    for cluster in GRIDS:
        for topic, on, leaderless, under in found(
            cluster, "topic", "day", "leaderless_seconds", "under_min_isr_seconds"
        ):
            total[cluster, topic, on] += hour_of(leaderless + under)
    assert total == expected


def test_exposure_is_what_counting_hours_gives(answered: dict[Table, DataFrame]) -> None:
    expected: Figures = defaultdict(Counter)
    at_once: Counter[tuple[Any, ...]] = Counter()
    for cluster, grid, hour, topic, _, state in cells():
        if not state["is_known"]:
            continue
        one_replica = len(state["isr"]) == 1
        in_racks = [{rack(grid, number, hour) for number in state[name]} for name in ("isr", "replicas")]
        one_rack = not one_replica and len(in_racks[0]) == 1 and len(in_racks[1]) > 1
        counts = expected[cluster, topic, day(1 + hour // 24)]
        counts["known_seconds"] += 1
        counts["one_replica_seconds"] += one_replica
        counts["one_rack_seconds"] += one_rack
        at_once[cluster, topic, hour] += one_replica or one_rack
    most: Counter[tuple[Any, ...]] = Counter()
    for (cluster, topic, hour), count in at_once.items():
        key = (cluster, topic, day(1 + hour // 24))
        most[key] = max(most[key], count)
    found = answers(answered[schemas.EXPOSURE], schemas.EXPOSURE)
    names = ("known_seconds", "one_replica_seconds", "one_rack_seconds")
    assert read_figures(found, ("topic", "day"), names) == expected
    assert {
        (cluster, *row[:2]): row[2] for cluster in GRIDS for row in found(cluster, "topic", "day", "most_partitions")
    } == most
    assert any(counts["one_rack_seconds"] for counts in expected.values())


def test_racks_are_what_counting_hours_gives(answered: dict[Table, DataFrame]) -> None:
    expected: Figures = defaultdict(Counter)
    replicas: dict[tuple[Any, ...], list[int]] = {}
    for cluster, grid, hour, topic, partition, state in cells():
        if state["is_known"]:
            replicas[cluster, topic, partition] = state["replicas"]
        for number in replicas.get((cluster, topic, partition), ()):
            counts = expected[cluster, rack(grid, number, hour), day(1 + hour // 24)]
            counts["replica_seconds"] += 1
            counts["out_of_sync_seconds"] += state["is_known"] and number not in state["isr"]
            counts["leader_seconds"] += state["is_known"] and number == state["leader"]
            counts["unknown_seconds"] += not state["is_known"]
    found = answers(answered[schemas.RACK_AVAILABILITY], schemas.RACK_AVAILABILITY)
    names = ("replica_seconds", "out_of_sync_seconds", "leader_seconds", "unknown_seconds")
    assert read_figures(found, ("rack", "day"), names) == expected


def test_leadership_is_what_counting_hours_gives(answered: dict[Table, DataFrame]) -> None:
    expected: Figures = defaultdict(Counter)
    for cluster, _, hour, _, _, state in cells():
        for number in state["replicas"] if state["is_known"] else ():
            is_preferred = number == state["replicas"][0]
            counts = expected[cluster, number, day(1 + hour // 24)]
            counts["replica_seconds"] += 1
            counts["leader_seconds"] += number == state["leader"]
            counts["preferred_seconds"] += is_preferred
            counts["led_as_preferred_seconds"] += is_preferred and number == state["leader"]
    for cluster, grid in GRIDS.items():
        for number, racks in grid.racks.items():
            for hour, where in enumerate(racks):
                if where is not None:
                    expected[cluster, number, day(1 + hour // 24)]["replica_seconds"] += 0
    found = answers(answered[schemas.LEADERSHIP], schemas.LEADERSHIP)
    names = ("replica_seconds", "leader_seconds", "preferred_seconds", "led_as_preferred_seconds")
    assert read_figures(found, ("broker", "day"), names) == expected
