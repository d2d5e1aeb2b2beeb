"""The known spans of a history, by its few marks: compared with an oracle, with the reasons for their ends."""

from collections.abc import Sequence
from itertools import groupby, pairwise

import pytest
from hypothesis import given

from kontroller.history.transforms.continuity.breaks import BACK, BREAK, END, SILENCE, UNSEEN, Mark
from kontroller.history.transforms.continuity.doubts import doubts_of
from kontroller.history.transforms.known_spans import Span, spans_of
from tests.spark.clocks.drawn import journals
from tests.spark.clocks.journals import Journal, sort_records
from tests.spark.clocks.oracle import SECOND, Record, timelines

SILENCE_S = 60


def marks(records: Sequence[Record]) -> list[Mark]:
    """Return the marks that Spark finds in a controller's records, which are in order."""
    found = [_break(None, records[0])]
    for before, record in pairwise(records):
        mark = _break(before, record)
        if mark.forgets or mark.step or record["event_time_us"] < before["event_time_us"]:
            found.append(mark)
    for record in records:
        if record["kind"].startswith("snapshot_"):
            place = record["controller_epoch"], record["seq"]
            found.append(Mark(*place, record["kind"], record["event_time_us"]))
    last = {"seq_before": records[-1]["seq"], "time_us_before": records[-1]["event_time_us"]}
    found.append(Mark(2**63 - 1, 0, END, records[-1]["event_time_us"], forgets=True, **last))
    return sorted(found, key=lambda mark: mark[:3])


def _break(before: Record | None, record: Record) -> Mark:
    place: tuple[int, int, str, int] = (record["controller_epoch"], record["seq"], BREAK, record["event_time_us"])
    more: Record = {"controller_id": record["controller_id"], "origin": "controller", "source": "memory"}
    if before is None:
        return Mark(*place, forgets=True, **more)
    passed = (record["event_time_us"] - before["event_time_us"]) / SECOND
    is_unseen = passed > 0 and record["cause"] == "unobserved"
    follows = place[:2] == (before["controller_epoch"], before["seq"] + 1)
    return Mark(
        *place,
        forgets=not follows or record["kind"] in ("gap", "recorder_started"),
        step=BACK if passed < -60 else SILENCE if passed > SILENCE_S else UNSEEN if is_unseen else None,
        seq_before=before["seq"],
        time_us_before=before["event_time_us"],
        was_resigned=before["kind"] == "controller_resigned",
        **more,
    )


def join_spans(spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Drop spans without length, and join those that touch."""
    times: list[tuple[int, int]] = []
    for span in (span for span in spans if span.began < span.ended):
        touches = bool(times) and times[-1][1] == span.began
        times.append((times.pop()[0] if touches else span.began, span.ended))
    return times


@given(journals())
def test_the_spans_are_the_times_of_which_the_oracle_knows_something(records: list[Record]) -> None:
    history = sort_records(records)
    states = timelines(history, silence_s=SILENCE_S).get(0, [])
    runs = [[*run] for is_known, run in groupby(states, key=lambda state: state[2] is not None) if is_known]
    assert join_spans(spans_of(marks(history))) == [(run[0][0], run[-1][1]) for run in runs]


@given(journals())
def test_spans_follow_one_another_and_say_until_when_nothing_is_known(records: list[Record]) -> None:
    spans = spans_of(marks(sort_records(records)))
    for span, following in pairwise(spans):
        assert span.began <= span.ended <= following.began == span.known_again
        assert (span.controller_epoch, span.last_seq) < (following.controller_epoch, following.first_seq)


@pytest.mark.parametrize(
    ("journal", "ended_by"),
    [
        (Journal().begin().live(20).wait(5_000).live(20), "silence"),
        (Journal().begin().live(20).wait(20).lead(0, 2, cause="unobserved").live(20), "unobserved"),
        (Journal().begin().live(20).alive(off_s=5_000).live(20), "clock"),
        (Journal().begin().live(2_000).set_clock(-500).live(20), "clock"),
        (Journal().begin().live(20).gap(3).snapshot().live(20), "gap"),
        (Journal().begin().live(20).resign().wait(2).begin(), "resigned"),
        (Journal().begin().live(20).wait(2).begin(), "silence"),
    ],
)
def test_a_span_says_why_nothing_more_is_known(journal: Journal, ended_by: str) -> None:
    spans = spans_of(marks(journal.records))
    assert (spans[0].ended_by, spans[-1].ended_by) == (ended_by, "end")


def test_what_goes_on_behind_a_silence_needs_no_snapshot() -> None:
    before, after = spans_of(marks(Journal().begin().live(20).wait(5_000).live(20).records))
    assert (before.snapshot_seq, after.snapshot_seq) == (7, 7)
    assert (before.first_seq, before.last_seq, after.first_seq, after.last_seq) == (1, 9, 10, 11)


def test_what_was_known_at_a_time_is_known_until_then_though_the_clock_was_set_back_a_little_behind_it() -> None:
    journal = Journal().begin().live(40).set_clock(-15).wait(10).alive().wait(45).gap(1)
    before = spans_of(marks(journal.records))[0]
    assert ((before.ended - before.began) / SECOND, before.ended_by) == (40, "gap")


def test_findings_say_by_how_much_and_what_to_do() -> None:
    journal = Journal().begin().live(20).wait(5_000).live(20).set_clock(-5).alive().alive(off_s=40_000).live(500)
    found = {doubt.problem: (doubt.count, doubt.detail) for doubt in doubts_of(marks(journal.records))}
    assert found == {
        "silence": (
            1,
            "no record since 2026-01-01 00:00:20 UTC, for 5010 seconds: that time is unknown; was the writer frozen "
            "or stopped, its clock set, or is a journal missing?",
        ),
        "clock_went_back": (1, "by 5 seconds: it counts as of the latest time before it"),
        "clock_not_believed": (
            1,
            "the timestamps of controller 101 from 2026-01-01 12:30:35 UTC on contradict the records before and after: "
            "check the clock of its machine. These records keep their order, and have no time",
        ),
    }  # fmt: skip
