"""Journals on paper are journals: the pure fold finds nothing wrong with them, but for the flaws that they are given."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from bench.fleet_history.__main__ import find_missing
from bench.fleet_history.cluster import BEGAN_US, DAY_US, HOUR_US, Flaws, PaperCluster, Shape, flaws_of
from controller_core.journal.fold import fold
from controller_core.journal.reader import Position, check, parse

SHAPE: Final = Shape(days=1, topics=3, partitions=2, alive_s=600, snapshot_s=6 * 3600)
NONE: Final = Flaws()


def lines_of(flaws: Flaws = NONE, number: int = 1) -> list[bytes]:
    segments = PaperCluster(number, SHAPE, flaws).segments()
    return [line for _, content in segments for line in content.splitlines()]


def records_of(flaws: Flaws = NONE, number: int = 1) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in lines_of(flaws, number)]


@pytest.mark.parametrize("number", range(4))
def test_what_is_written_is_what_the_last_snapshot_says(number: int) -> None:
    lines = lines_of(number=number)
    folded = fold(check(parse(Position(segment="memory", line=at), line) for at, line in enumerate(lines, start=1)))
    assert folded.image is not None
    snapshots = [record for record in map(orjson.loads, lines) if record["kind"] == "snapshot_ended"]
    assert len(snapshots) >= 4
    after_the_last = lines[lines.index(orjson.dumps(snapshots[-1])) + 1 :]
    if all(orjson.loads(line)["kind"] == "controller_alive" for line in after_the_last):
        assert folded.image.checksum() == snapshots[-1]["checksum"]


def test_a_cluster_has_a_life() -> None:
    kinds = Counter(record["kind"] for number in range(8) for record in records_of(number=number))
    assert {"broker_removed", "leadership", "controller_alive", "controller_elected", "snapshot_ended"} <= kinds.keys()
    terms = [record["controller_epoch"] for number in range(8) for record in records_of(number=number)]
    assert max(terms) > 1


def test_a_frozen_controller_writes_nothing() -> None:
    silence = (10 * HOUR_US, 13 * HOUR_US)
    times = [record["event_time_us"] - BEGAN_US for record in records_of(Flaws(silences_us=(silence,)))]
    assert not [at for at in times if silence[0] <= at < silence[1]]
    assert [at for at in times if at >= silence[1]]
    for_good = records_of(Flaws(silences_us=((10 * HOUR_US, DAY_US),)))
    assert max(record["event_time_us"] for record in for_good) < BEGAN_US + 10 * HOUR_US


def test_a_clock_is_ahead_for_an_hour_and_right_again() -> None:
    times = [
        record["event_time_us"] for record in records_of(Flaws(clock_us=(10 * HOUR_US, 11 * HOUR_US, 10 * HOUR_US)))
    ]
    steps = [later - earlier for earlier, later in pairwise(times) if abs(later - earlier) > 5 * HOUR_US]
    assert [step > 0 for step in steps] == [True, False]


def test_of_fifty_clusters_one_falls_silent_for_good() -> None:
    gone = [n for n in range(100) if any(end == DAY_US for _, end in flaws_of(n, SHAPE).silences_us)]
    assert gone == [7, 57]


def test_a_page_that_calls_a_silent_cluster_well_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    row = '<p>3 of 8 clusters need</p><tr id="clusters-1"><td>fleet-0007</td><td class="reasons">{}</td>'
    page.write_text(row.format("silent since 2026"))
    assert find_missing(page, 8, SHAPE) == ""
    page.write_text(row.format(""))
    assert "[7]" in find_missing(page, 8, SHAPE)
    assert "9 clusters" in find_missing(page, 9, SHAPE)
