"""The page is one file that needs nothing, says what it does not know, and believes no name."""

import base64
import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest

from controller_pipeline.reports import words
from controller_pipeline.reports.facts import Uptime
from controller_pipeline.reports.limits import Limits
from controller_pipeline.reports.period import DAY, MINUTE
from controller_pipeline.reports.rendering.headline import tiles
from controller_pipeline.reports.rendering.page import page
from tests.unit.reports.facts import HOSTILE, empty_report, full_report
from tests.unit.reports.html import Page

SECTIONS = (
    "availability",
    "incidents",
    "topics",
    "failovers",
    "unclean",
    "audit",
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
    assert all(re.fullmatch(r"#[a-z]+|tables/[a-z_]+\.(json|parquet)", reference) for reference in references), (
        references
    )
    assert {tag for tag, _ in read.elements}.isdisjoint({"link", "img", "iframe", "object", "embed", "base", "form"})
    style = source_of(sample).split("<style>")[1].split("</style>")[0]
    assert "@import" not in style
    assert set(re.findall(r"url\(([^)]*)\)", style)) <= {"#hatch", "#veil", "#dots"}


@pytest.mark.parametrize("sample", SAMPLES)
def test_each_section_is_there_and_each_headline_leads_to_one(sample: str) -> None:
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
    assert "none" not in read.text.split("What the words mean")[0].split("Nothing is known")[0]


def test_what_is_partly_known_is_said_to_be_so() -> None:
    calm = replace(full_report(), episodes=(), episodes_total=0)
    assert "That is of what is known; 1 min are unknown" in Page(page(calm)).sections["incidents"]


def test_what_little_is_known_is_not_called_good() -> None:
    calm = replace(empty_report(), clusters_total=1, uptime=Uptime(known_us=MINUTE), unknown_us=DAY - MINUTE)
    assert {tile.tone for tile in tiles(calm)} == {"unknown"}
    assert "good" in {tile.tone for tile in tiles(replace(calm, unknown_us=MINUTE))}


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


def test_the_same_facts_make_the_same_page_unless_a_time_is_given() -> None:
    report = full_report()
    assert page(report) == page(full_report())
    assert "Written 2026-11-21 06:00:00 UTC" in page(report, now=datetime(2026, 11, 21, 6, tzinfo=UTC))
