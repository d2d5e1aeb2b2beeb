"""Windows and pieces hold the partition time of the intervals, to the microsecond."""

from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from kontroller.history import schemas
from kontroller.history.reports.period import DAY, HOUR, MINUTE, SECOND, Period
from kontroller.history.reports.selection.levels.measured import MOST_PIECES, make_grid, measure_levels
from kontroller.history.reports.service_levels import BUDGET_US, WINDOWS, Amount, Level
from tests.spark.answers.literals import DAY_1, PROVEN, Histories, Row, partition, span

END_S = 60 * 86_400
PERIOD = Period(began=DAY_1 + timedelta(days=59), ended=DAY_1 + timedelta(days=60))


def lose(number: int, began: float, ended: float, *, until: float = END_S, since: float = 0) -> list[Row]:
    return partition((since, {}), (began, {"leader": -1}), (ended, {"leader": 1}), until=until, number=number)


HISTORIES = {
    # 30 s of the last five minutes, half an hour of the last six hours, and a day that left the window.
    "c": [
        span(0, END_S),
        *lose(0, END_S - 60, END_S - 30),
        *lose(1, END_S - 5 * 3600 - 0.25, END_S - 4.5 * 3600),
        *lose(2, END_S - 30 * 86_400, END_S - 29 * 86_400),
    ],
    "late": [span(0, END_S - 480), *lose(0, END_S - 600, END_S - 540, until=END_S - 480)],
    "silent": [span(0, END_S - 7200), *lose(0, 10, 20, until=END_S - 7200)],
    "gone": [span(0, 20 * 86_400), *lose(0, 10, 20, until=20 * 86_400)],
    "young": [
        span(END_S - 86_400, END_S - 7200, known_again=None),
        span(END_S - 3600, END_S),
        *partition((END_S - 86_400, {}), (END_S - 7200, None), (END_S - 3600, {"leader": None}), until=END_S),
    ],
    "frozen": [
        span(END_S - 86_400, END_S - 7200),
        span(END_S - 3600, END_S),
        *partition(
            (END_S - 86_400, {}),
            (END_S - 7260, {"leader": -1}),
            (END_S - 7200, PROVEN),
            (END_S - 3600, {"leader": 1}),
            until=END_S,
        ),
    ],
}


@pytest.fixture(scope="module")
def levels(spark: SparkSession) -> dict[str, Level]:
    histories = Histories(spark, HISTORIES)
    given = {schemas.PARTITION_INTERVALS.name: histories.partitions, schemas.KNOWN_SPANS.name: histories.spans}
    whole, each = measure_levels(given, PERIOD, ["c", "silent", "gone"])
    assert whole is not None
    return {"": whole} | {level.cluster: level for level in each}


def test_windows_end_now_and_hold_what_was_lost_in_them(levels: dict[str, Level]) -> None:
    lost = {us: amount.lost_us for us, amount in levels["c"].windows.items()}
    half_an_hour = 1800 * SECOND + 250_000
    assert lost == {
        5 * MINUTE: 30 * SECOND,
        30 * MINUTE: 30 * SECOND,
        HOUR: 30 * SECOND,
        6 * HOUR: 30 * SECOND + half_an_hour,
        3 * DAY: 30 * SECOND + half_an_hour,
        BUDGET_US: 30 * SECOND + half_an_hour,
    }
    assert {us: amount.total_us for us, amount in levels["c"].windows.items()} == {us: 3 * us for us in WINDOWS}


def test_a_cluster_that_was_read_a_little_earlier_is_not_unknown(levels: dict[str, Level]) -> None:
    late = levels["late"]
    assert late.as_of_us == PERIOD.ended_us - 480 * SECOND
    assert late.windows[5 * MINUTE] == Amount(known_us=5 * MINUTE, lost_us=60 * SECOND)


def test_silence_is_unknown_time_of_the_partitions(levels: dict[str, Level]) -> None:
    silent = levels["silent"]
    assert silent.windows[HOUR] == Amount(unknown_us=HOUR)
    assert silent.budget == Amount(known_us=BUDGET_US - 2 * HOUR, unknown_us=2 * HOUR)
    assert silent.pieces is not None
    assert silent.pieces.amounts[-3:] == (Amount(known_us=HOUR), Amount(unknown_us=HOUR), Amount(unknown_us=HOUR))


def test_a_cluster_counts_since_its_history_began_with_its_gaps_unknown(levels: dict[str, Level]) -> None:
    young = levels["young"]
    assert young.budget == Amount(known_us=23 * HOUR, unknown_us=HOUR, lost_us=HOUR)
    assert young.began_us == PERIOD.ended_us - DAY
    assert young.pieces is None


def test_unknown_time_in_which_there_was_provably_no_leader_is_lost(levels: dict[str, Level]) -> None:
    assert levels["frozen"].budget == Amount(known_us=DAY, lost_us=HOUR + MINUTE)


def test_a_cluster_that_was_silent_in_all_of_the_window_has_no_level(levels: dict[str, Level]) -> None:
    assert levels.keys() == {"", "c", "late", "silent", "young", "frozen"}


def test_the_sum_is_that_of_all_clusters_and_pieces_come_to_their_window(levels: dict[str, Level]) -> None:
    whole = levels[""]
    for us in WINDOWS:
        assert whole.windows[us] == sum((levels[name].windows[us] for name in levels if name), Amount())
    pieces = levels["c"].pieces
    assert pieces is not None
    windows = dict(pieces.sum_windows())
    assert windows[PERIOD.ended_us] == levels["c"].budget
    assert windows[PERIOD.ended_us - 10 * DAY].lost_us == DAY
    assert whole.pieces is not None
    assert len(whole.pieces.amounts) == len(pieces.amounts)


@pytest.mark.parametrize("days", [1, 28, 60, 400, 7300])
def test_the_pieces_are_few_and_end_with_the_period(days: int) -> None:
    grid = make_grid(Period(began=PERIOD.ended - timedelta(days=days), ended=PERIOD.ended))
    assert grid.count <= MOST_PIECES
    assert BUDGET_US % grid.width_us == 0
    assert grid.ended_us == PERIOD.ended_us
    assert grid.began_us <= PERIOD.ended_us - 2 * BUDGET_US


def test_without_intervals_there_is_no_level() -> None:
    assert measure_levels({}, PERIOD, []) == (None, ())
