"""The page is one file without dependencies, names the unknown, and escapes every name."""

import base64
import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest

from kontroller.history.reports import words
from kontroller.history.reports.facts import Uptime
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.period import DAY, HOUR, MINUTE
from kontroller.history.reports.plots.calendar import weeks
from kontroller.history.reports.rendering.figures import figures
from kontroller.history.reports.rendering.headline import panels
from kontroller.history.reports.rendering.leads import leads_of_days
from kontroller.history.reports.rendering.page import page
from tests.unit.reports.facts import HOSTILE, empty_report, full_report
from tests.unit.reports.html import Page

SECTIONS = (
    "service",
    "availability",
    "incidents",
    "topics",
    "failovers",
    "unclean",
    "audit",
    "requests",
    "brokers",
    "exposure",
    "flapping",
    "reassignments",
    "controllers",
    "unknown",
    "findings",
    "definitions",
)
SAMPLES = {
    "nothing": empty_report(),
    "a day": full_report(),
    "hostile": full_report(name=HOSTILE),
    "400 days": full_report(days=400),
    "twenty years": full_report(days=7300),
    "everything": full_report(days=400, topics=500, brokers=40, rows=200),
}


@cache
def source_of(sample: str) -> str:
    return page(SAMPLES[sample])


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_page_asks_for_nothing_from_elsewhere(sample: str) -> None:
    read = Page(source_of(sample))
    references = [
        value for name in ("src", "href", "srcset", "data", "action", "xlink:href") for value in read.attributes(name)
    ]
    assert references
    assert all(re.fullmatch(r"#[a-z]+(-\d+)*|tables/[a-z_]+\.(json|parquet)", reference) for reference in references), (
        references
    )
    assert {tag for tag, _ in read.elements}.isdisjoint({"link", "img", "iframe", "object", "embed", "base", "form"})
    style = source_of(sample).split("<style>")[1].split("</style>")[0]
    assert "@import" not in style
    assert set(re.findall(r"url\(([^)]*)\)", style)) <= {"#hatch", "#veil", "#dots"}


@pytest.mark.parametrize("sample", SAMPLES)
def test_each_section_is_there_and_each_link_leads_to_something(sample: str) -> None:
    read = Page(source_of(sample))
    assert tuple(read.sections) == SECTIONS
    assert all(text.strip() for text in read.sections.values())
    ids = set(read.attributes("id"))
    assert {href.removeprefix("#") for href in read.attributes("href") if href.startswith("#")} <= ids
    assert len(read.attributes("id")) == len(ids)


def test_a_hostile_name_is_text_everywhere() -> None:
    source = page(full_report(name=HOSTILE))
    read = Page(source)
    assert len(read.scripts) == 1
    assert "evil.example" not in read.scripts[0]
    assert not any(name.startswith("on") for _, attributes in read.elements for name in attributes)
    shown = words.visible(HOSTILE)
    assert "\u202e" not in source
    assert "\x00" not in source
    for section in (
        "incidents",
        "topics",
        "failovers",
        "unclean",
        "audit",
        "exposure",
        "reassignments",
        "controllers",
        "unknown",
        "findings",
    ):
        assert shown in read.sections[section], section
    assert shown in read.text.split("Cluster history")[1][:400]


def test_only_the_pages_own_script_may_run() -> None:
    read = Page(page(full_report()))
    digest = base64.b64encode(hashlib.sha256(read.scripts[0].encode()).digest()).decode()
    policy = next(
        attributes["content"] for tag, attributes in read.elements if tag == "meta" and "http-equiv" in attributes
    )
    assert f"script-src 'sha256-{digest}'" in (policy or "")
    assert "default-src 'none'" in (policy or "")


def test_nothing_known_is_not_called_available() -> None:
    read = Page(page(empty_report()))
    assert "Nothing is known of this period" in read.sections["incidents"]
    assert "All of this period is unknown" in read.sections["unknown"]
    assert "100 %" not in read.text.split("Availability")[0]
    assert "none" not in read.text.split("Definitions")[0].split("Nothing is known")[0]


def test_what_is_partly_known_is_said_to_be_so() -> None:
    calm = replace(full_report(), episodes=(), episodes_total=0)
    assert "This covers the known time only; 1 min are unknown" in Page(page(calm)).sections["incidents"]


def test_what_little_is_known_is_not_called_good() -> None:
    calm = replace(empty_report(), clusters_total=1, uptime=Uptime(known_us=MINUTE), unknown_us=DAY - MINUTE)
    assert {one.tone for one in panels(calm)} == {"unknown"}
    assert {one.tone for one in figures(calm)} == {"unknown"}
    mostly = replace(calm, unknown_us=MINUTE // 20)
    assert {one.tone for one in panels(mostly)} == {"good"}
    assert {one.tone for one in figures(mostly) if one.section != "unknown"} == {"good"}


def test_a_table_that_was_not_given_is_not_called_empty() -> None:
    read = Page(page(replace(empty_report(), uptime=Uptime(known_us=1), missing=("violations", "findings"))))
    assert "was not audited" in read.sections["audit"]
    assert "was not checked" in read.sections["findings"]
    assert "violations, findings" in read.text


def test_cut_tables_say_so_and_where_the_rest_is() -> None:
    read = Page(page(full_report(rows=200)))
    assert "First 200 of 100,000; all are in tables/incidents.json and .parquet" in read.sections["incidents"]


def test_a_page_is_bounded() -> None:
    largest = page(
        full_report(name="n" * 249, days=7300, topics=100_000, brokers=Limits().brokers, rows=Limits().table_rows)
    )
    assert len(largest.encode()) < 6_000_000


def test_the_same_facts_make_the_same_page() -> None:
    assert page(full_report()) == page(full_report())


def test_what_may_have_gone_unnoticed_is_a_second_figure_and_a_bound() -> None:
    report = full_report()
    uptime = Uptime(known_us=DAY, under_us=DAY // 100, detection_us=DAY // 50, detection_writable_us=DAY // 100)
    crashed = replace(report, uptime=uptime, broker_session_timeout_ms=6_000)
    available, _ = panels(crashed)
    notes = [note for note in available.notes if "until each crash was noticed" in note]
    assert available.value == "100 %"
    assert notes == ["With detection: at least 98.00 %, with at most 6 s until each crash was noticed"] * 2
    calm, _ = panels(replace(report, uptime=Uptime(known_us=DAY)))
    assert not any("noticed" in note for note in calm.notes)


def test_the_page_says_where_sums_are_of_whole_days() -> None:
    words = "Sums cover the whole days that this period touches"
    assert words in page(replace(full_report(), has_whole_days=True))
    assert words not in source_of("a day")


def test_availability_risk_and_the_worst_incident_stand_before_all_sections() -> None:
    top = Page(page(full_report())).text.split("This period and the previous one")[0]
    assert top.index("Available") < top.index("Risk of data loss") < top.index("The worst incident")
    assert "Broker 3 was lost at 00:01:00; 4 partitions, orders, had no leader for up to 3 min 12 s" in top


def test_marks_of_pictures_lead_to_rows_by_keyboard_too() -> None:
    read = Page(page(full_report()))
    links = {href for tag, attributes in read.elements if tag == "a" and (href := attributes["href"])}
    assert {"#episode-1", "#episode-1-1", "#failovers-1", "#reassignments-1", "#topics-1", "#controllers-1"} <= links
    drawn = [attributes for tag, attributes in read.elements if tag == "svg" and attributes.get("role")]
    assert {attributes["role"] for attributes in drawn} == {"group", "img"}


def test_times_are_written_for_the_readers_place_too() -> None:
    read = Page(page(full_report()))
    instants = read.attributes("datetime")
    assert instants
    assert all(datetime.fromisoformat(instant).tzinfo == UTC for instant in instants)
    assert len(read.attributes("data-from")) == len(read.attributes("data-to")) >= 2


def test_the_period_before_stands_beside_this_one() -> None:
    of = {figure.label: (figure.now, figure.before) for figure in figures(full_report())}
    assert of["Available"] == ("99.88 % to 99.952 %", "98.33 %")
    assert of["Incidents"] == ("1", "7")
    assert of["Unknown"] == ("1 min", "23 h")
    assert of["ISR flaps"] == ("4", "3")
    assert of["Input findings"] == ("100,000", "1")
    unknown = replace(full_report(), before=None)
    assert {figure.before for figure in figures(unknown)} == {"not known", "all"}


def test_findings_of_no_known_time_are_said_to_be_in_no_comparison() -> None:
    report = full_report()
    notes = {figure.label: figure.note for figure in figures(replace(report, tallies={"findings:untimed": 3}))}
    assert "3 without a known time" in notes["Input findings"]


def test_a_day_of_the_calendar_leads_to_its_worst_incident() -> None:
    report = full_report(days=60)
    began = report.period.began_us
    listed = report.listings["incidents"]
    calm = listed.rows[0]
    rows = (
        {**calm, "began": began - HOUR, "seconds": 0.5},  # had ended before the period
        {**calm, "began": began + 3 * DAY + HOUR, "seconds": 2 * 86400.0},
        {**calm, "began": began + 4 * DAY, "seconds": 60.0},
        {**calm, "cluster_id": "another", "began": began + 9 * DAY, "seconds": 60.0},
    )
    report = replace(report, listings={**report.listings, "incidents": replace(listed, rows=rows)})
    leads = {day.day: (lead.row, lead.search) for day, lead in leads_of_days(report, "orders").items()}
    # The second day of the long one is searched for nothing: its row names the day on which it began.
    assert leads == {23: ("incidents-2", "2026-11-23"), 24: ("incidents-2", ""), 25: ("incidents-2", "")}
    drawn = [
        attributes for tag, attributes in Page(page(report)).elements if tag == "a" and "data-search" in attributes
    ]
    assert {"href": "#incidents-2", "data-search": "2026-11-23"} in drawn


def test_weeks_lead_somewhere_too() -> None:
    report = full_report(days=7300)
    leads = leads_of_days(report, "orders")
    drawn = weeks({}, report.period.first_day, report.period.last_day, leads=leads)
    assert drawn.count("#incidents-1") == 1


def test_a_count_whose_table_was_not_given_is_not_compared() -> None:
    report = full_report()
    assert report.before is not None
    less = replace(report, before=replace(report.before, counts={}))
    assert {figure.before for figure in figures(less) if figure.label in {"Incidents", "Failovers"}} == {"not known"}
