"""A page of very many clusters: which need a look is said first, each is led to, and the page is bounded all the same."""

from dataclasses import replace
from functools import cache

import pytest

from kontroller.history.reports.attention import need_of, sort_by_need
from kontroller.history.reports.facts import Value
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import HOUR, MINUTE
from kontroller.history.reports.rendering.fleet import fleet
from kontroller.history.reports.rendering.page import page
from tests.unit.reports.facts import cluster_row, fleet_report, full_report, period_of
from tests.unit.reports.html import Page

PERIOD = period_of(1)
MARKS = {"rect", "circle", "line", "text", "polygon"}
MOST_MARKS, MOST_BYTES = 25_000, 6_000_000
"""The limits for a page of 500 clusters and 20 years, from docs/history.md."""
MARKS_OF_A_CLUSTER, BYTES_OF_A_CLUSTER = 0, 1_000
"""The limits for each further cluster: its row and its tile."""


@cache
def count_marks(clusters: int, days: int) -> tuple[int, int]:
    source = page(fleet_report(clusters, days=days))
    return sum(tag in MARKS for tag, _ in Page(source).elements), len(source.encode())


@pytest.mark.parametrize(
    ("kind", "tone", "row"),
    [
        ("data", "bad", {"unclean": 1}),
        ("violations", "bad", {"violations": 2}),
        ("lost", "bad", {"availability": 0.99, "leaderless_seconds": 864.0}),
        ("lost", "warn", {"availability": 0.9995, "leaderless_seconds": 43.0}),
        ("writers", "warn", {"writable": 0.9, "under_seconds": 8640.0}),
        ("silent", "unknown", {"known_until": PERIOD.ended_us - HOUR}),
        ("silent", "unknown", {"known_until": PERIOD.began_us - HOUR, "availability": None, "writable": None}),
        ("silent", "unknown", {"known_until": None, "availability": None, "writable": None}),
        ("unknown", "unknown", {"unknown_share": 0.2}),
    ],
)
def test_what_makes_a_cluster_need_a_look(kind: str, tone: str, row: dict[str, Value]) -> None:
    need = need_of(cluster_row("c", PERIOD, **row), None, PERIOD)
    assert [(reason.kind, reason.tone) for reason in need.reasons] == [(kind, tone)]
    assert need.tone == tone


def test_a_cluster_needs_no_look_for_what_is_usual() -> None:
    usual = {"known_until": PERIOD.ended_us - MINUTE, "availability": 0.99995, "leaderless_seconds": 4.0, "findings": 3}
    assert not need_of(cluster_row("c", PERIOD, **usual), None, PERIOD).reasons
    without_audit = cluster_row("c", PERIOD, violations=None, known_until=None)
    assert not need_of(without_audit, None, PERIOD).reasons


@pytest.mark.parametrize(("percent", "tone"), [(99.999, "bad"), (99.97, "warn"), (99.9, "good")])
def test_an_objective_decides_how_much_may_be_lost(percent: float, tone: str) -> None:
    row = cluster_row("c", PERIOD, availability=0.9998, leaderless_seconds=17.3)
    assert need_of(row, Objective(percent=percent), PERIOD).tone == tone


def test_a_clock_that_is_ahead_is_a_reason_and_no_silence() -> None:
    row = cluster_row("c", PERIOD, known_until=PERIOD.ended_us + 3_600_000_000)
    (reason,) = need_of(row, None, PERIOD).reasons
    assert (reason.kind, reason.tone) == ("clock", "unknown")
    assert reason.said.startswith("its clock is ahead of the clock here: records until ")


def test_the_most_urgent_cluster_is_first() -> None:
    rows = (
        cluster_row("fine", PERIOD),
        cluster_row("slow", PERIOD, writable=0.9, under_seconds=60.0),
        cluster_row("silent", PERIOD, known_until=PERIOD.began_us),
        cluster_row("down", PERIOD, availability=0.5, leaderless_seconds=40_000.0),
        cluster_row("lossy", PERIOD, unclean=1),
    )
    listed = replace(full_report().listings["clusters"], rows=rows, total=5)
    in_order = [row["cluster_id"] for row in sort_by_need(listed, None, PERIOD).rows]
    assert in_order == ["lossy", "down", "silent", "slow", "fine"]


@pytest.mark.nightly("draws and parses pages of hundreds of clusters, which takes seconds of CPU")
def test_the_first_screen_says_which_clusters_need_a_look_and_leads_to_each() -> None:
    read = Page(page(fleet_report(500)))
    top = read.text.split("Risk of data loss")[0]
    assert "128 of 500 clusters need attention" in top
    assert "20 may have lost data" in top
    assert "36 silent" in top
    assert "silent since 2026-11-20 01:00:00" in top  # though more than eight are worse
    assert "120 more are in the list of clusters" in top
    hrefs, ids = set(read.attributes("href")), set(read.attributes("id"))
    rows = {f"clusters-{number}" for number in range(1, 501)}
    assert rows <= ids
    assert {f"#{row}" for row in rows} <= hrefs
    assert next(iter(read.sections)) == "clusters"


def test_a_page_of_one_cluster_says_nothing_of_others() -> None:
    assert fleet(full_report(), Limits()) is None
    assert "clusters" not in Page(page(full_report())).sections


def test_where_more_clusters_than_are_listed_may_need_a_look_it_says_at_least() -> None:
    report = full_report()
    rows = tuple(cluster_row(f"c{number}", report.period, unclean=1) for number in range(4))
    listed = replace(report.listings["clusters"], rows=rows, total=40)
    shown = fleet(replace(report, listings={**report.listings, "clusters": listed}), Limits())
    assert shown is not None
    assert shown.said == "At least 4 of 40 clusters need attention"


def test_a_silent_cluster_has_no_good_tile() -> None:
    silent = cluster_row("quiet", PERIOD, known_until=PERIOD.began_us + HOUR)
    report = full_report()
    rows = (silent, cluster_row("fine", PERIOD))
    listings = {**report.listings, "clusters": replace(report.listings["clusters"], rows=rows, total=2)}
    shown = fleet(replace(report, listings=listings), Limits())
    assert shown is not None
    assert [(tile.state, tile.digit) for tile in shown.tiles] == [("a0", ""), ("u", "?")]


@pytest.mark.parametrize("hostile", ["items", "get", "", "<b>x</b>"])
def test_a_cluster_may_have_any_name(hostile: str) -> None:
    report = fleet_report(3, days=1)
    rows = (cluster_row(hostile, report.period), *report.listings["clusters"].rows)
    listings = {**report.listings, "clusters": replace(report.listings["clusters"], rows=rows, total=4)}
    assert "<b>x" not in page(replace(report, listings=listings))


@pytest.mark.nightly("draws and parses pages of hundreds of clusters, which takes seconds of CPU")
def test_a_page_of_500_clusters_and_20_years_is_bounded() -> None:
    marks, size = count_marks(500, 7300)
    assert marks < MOST_MARKS
    assert size < MOST_BYTES


@pytest.mark.nightly("draws and parses pages of hundreds of clusters, which takes seconds of CPU")
def test_a_further_cluster_is_a_row_and_a_tile_however_long_the_history() -> None:
    for days in (30, 7300):
        (few_marks, few_bytes), (marks, size) = count_marks(100, days), count_marks(500, days)
        assert marks - few_marks == MARKS_OF_A_CLUSTER
        assert size - few_bytes < 400 * BYTES_OF_A_CLUSTER


@pytest.mark.nightly("draws and parses pages of hundreds of clusters, which takes seconds of CPU")
def test_after_a_thousand_clusters_the_page_grows_no_more() -> None:
    (marks, size), (more_marks, more_bytes) = count_marks(1000, 30), count_marks(5000, 30)
    assert marks == more_marks
    assert abs(more_bytes - size) < 200_000  # other clusters are listed
    assert "First 1,000 of 5,000" in page(fleet_report(5000))


def test_a_silent_cluster_is_never_called_wholly_available() -> None:
    row = cluster_row("quiet", PERIOD, known_until=PERIOD.began_us, unknown_share=0.75)
    listed = replace(full_report().listings["clusters"], rows=(row, cluster_row("fine", PERIOD)), total=2)
    report = replace(full_report(), listings={**full_report().listings, "clusters": listed})
    found = fleet(report, Limits())
    assert found is not None
    assert {concern.cluster: concern.available for concern in found.concerns}["quiet"] == "25.00 % to 100 % available"
    assert {tile.tip for tile in found.tiles if tile.tip.startswith("fine")} == {
        "fine: 100 % available; needs no attention"
    }
