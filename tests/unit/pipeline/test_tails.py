"""Conditions under which later records leave the results before a midnight unchanged, and the parts of a table that a
tail is in."""

from typing import Any

import pytest
from pyspark.sql import Row

from kontroller.history.folding.tails import begins_as_before, changes_nothing_before, is_once
from kontroller.history.generations.generation import Part, is_from, replace_days_from

SPAN = Row(controller_epoch=5, first_seq=1, last_seq=90, controller_id=7, origin="controller")
MARKED = Row(interval_ms=None, longest_ms=10_000, is_early=False, checked_day="2026-01-30")


def term(**how: Any) -> Row:
    usual = {
        "controller_epoch": 5, "seq": 60, "kind": "controller_alive", "records": 40, "numbers": 40, "journals": 1,
        "journal": "/seven", "is_of_logs": False, "controllers": [7], "intervals_ms": [],
    }  # fmt: skip
    return Row(**usual | how)


LATER = term(controller_epoch=6, seq=0, controllers=[8], intervals_ms=[10_000])


def test_a_tail_begins_within_the_span_that_goes_on_over_midnight() -> None:
    assert begins_as_before(SPAN, (5, 60), term())


@pytest.mark.parametrize(
    ("began", "first"),
    [
        pytest.param((5, 61), term(), id="what is new is the first"),
        pytest.param((5, 1), term(seq=1), id="the span begins with it"),
        pytest.param((5, 91), term(seq=91), id="it is after the span"),
        pytest.param((4, 60), term(controller_epoch=4), id="it is of an earlier term"),
        pytest.param((5, 60), term(kind="controller_resigned"), id="when it was in office is said by those before"),
        pytest.param((5, 60), term(seq=None, kind=None), id="there are only requests"),
    ],
)
def test_else_it_is_none(began: tuple[int, int], first: Row) -> None:
    assert not begins_as_before(SPAN, began, first)


def test_one_journal_has_each_record_once() -> None:
    assert is_once([term(), LATER])
    assert not is_once([term(), term(journals=2)])
    assert not is_once([term(numbers=39)])
    assert not is_once([term(is_of_logs=True)])


def test_what_holds_for_whole_terms_is_left_as_it_was() -> None:
    assert changes_nothing_before(SPAN, MARKED, [term(), LATER], ["/eight"])


@pytest.mark.parametrize(
    ("marked", "of"),
    [
        pytest.param({}, [term(controllers=[7, 8])], id="another controller"),
        pytest.param({}, [term(journal="/eight")], id="somebody who looks on"),
        pytest.param({}, [term(intervals_ms=[10_000])], id="the term now says its interval"),
        pytest.param({"interval_ms": 10_000}, [term(intervals_ms=[10_000, 5_000])], id="it says another one"),
        pytest.param({}, [term(), term(controller_epoch=6)], id="a later term that goes by the cluster's"),
        pytest.param({}, [term(), term(controller_epoch=6, intervals_ms=[20_000])], id="a longer one of the cluster"),
        pytest.param({"longest_ms": None}, [term(), LATER], id="the first one of the cluster"),
        pytest.param({"is_early": True}, [term()], id="a record from before midnight is later"),
        pytest.param({"checked_day": None}, [term()], id="no snapshot is before it"),
    ],
)
def test_else_the_cluster_is_folded_from_its_first_record_on(marked: dict[str, Any], of: list[Row]) -> None:
    assert not changes_nothing_before(SPAN, Row(**MARKED.asDict() | marked), of, ["/eight"])


def test_parts_are_replaced_from_a_day_on() -> None:
    def parts(write: str, *days: str) -> tuple[Part, ...]:
        return tuple(Part(f"{write}/of={cluster}/day={day}") for cluster in ("a%2Fb", "c") for day in days)

    old = parts("1-00", "1970-01-01", "2026-01-30", "2026-01-31", "+12026-01-01", "__HIVE_DEFAULT_PARTITION__")
    days = {"a/b": "2026-01-31"}
    assert [part.rpartition("=")[2] for part in old if is_from(part, days)] == [
        "2026-01-31", "+12026-01-01", "__HIVE_DEFAULT_PARTITION__",
    ]  # fmt: skip
    new = (Part("2-00/of=a%2Fb/day=2026-01-31"),)
    kept = {part for part in replace_days_from(old, days, new) if "of=a" in part}
    assert kept == {*new, Part("1-00/of=a%2Fb/day=1970-01-01"), Part("1-00/of=a%2Fb/day=2026-01-30")}
    assert {part for part in replace_days_from(old, days, new) if "of=c" in part} == {p for p in old if "of=c" in p}
