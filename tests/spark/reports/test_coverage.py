"""The two rows for each interval add up to what counting piece by piece gives."""

from random import Random

from pyspark.sql import SparkSession

from kontroller.history.reports.period import Grid
from kontroller.history.reports.selection.coverage import edges, sum_coverage

GRID = Grid(began_us=1_000, width_us=100, count=7)


def count_us(intervals: list[tuple[int, int]]) -> list[int]:
    pieces = [GRID.edges(index) for index in range(GRID.count)]
    return [sum(max(0, min(end, b) - max(start, a)) for a, b in intervals) for start, end in pieces]


def test_intervals_cover_pieces_as_counted_one_by_one(spark: SparkSession) -> None:
    random = Random(11)
    began = [random.randrange(800, 1900) for _ in range(60)]
    kinds: dict[str, list[tuple[int, int]]] = {
        "random": [(at, at + random.randrange(700)) for at in began],
        "on the edges": [(1_000, 1_100), (1_100, 1_700), (1_300, 1_400), (900, 1_000), (1_700, 1_800)],
        "across all": [(0, 5_000), (0, 1_000), (1_700, 9_000)],
        "empty": [(1_250, 1_250)],
    }
    rows = [(kind, start, ended, "led") for kind, its in kinds.items() for start, ended in its]
    intervals = spark.createDataFrame(rows, "kind string, began_us long, ended_us long, measure string")
    found = sum_coverage(edges(intervals, ("kind",), GRID), ("kind",), GRID)
    expected = {kind: count_us(its) for kind, its in kinds.items()}
    assert {kind: found.get((kind,), {}).get("led", [0] * GRID.count) for kind in kinds} == expected
    assert sum(expected["random"]) > 0
