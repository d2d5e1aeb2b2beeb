"""Several journals of one epoch: the records that are taken from each, the known times, and the findings about the
rest."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import Row, SparkSession

from kontroller.history.schemas import EVENTS, KNOWN_SPANS
from kontroller.history.transforms import lines
from kontroller.history.transforms.accounts.once import deduplicate
from kontroller.history.transforms.continuity.breaks import marks
from kontroller.history.transforms.continuity.doubts import doubts
from kontroller.history.transforms.continuity.set_clocks import correct_stamps
from kontroller.history.transforms.known_spans import find_known_spans
from tests.spark.journal_scenes import BEGAN, Folders, controller, make_lines, recorder


def a_minute(name: str) -> Folders:
    """A controller's journal ends after a minute; the recorder saw all."""
    own = controller(name).begin().alive(1 / 60)
    seen = recorder(name).begin().lead(-1, 3.0).lead(2, 3.5).alive(6.0)
    return {"controller": own.lines, "recorder": seen.lines}


def both(name: str) -> Folders:
    """A recorder that goes on for a moment longer, and began a moment earlier."""
    return {
        "controller": controller(name).begin(0.001).lead(2, 3.0).alive(6.0).lines,
        "recorder": recorder(name).begin().lead(2, 3.0).alive(6.01).lines,
    }


def seldom(name: str) -> Folders:
    """A controller that says every five minutes that it lives is not silent in between; a recorder saw an hour."""
    return {
        "controller": controller(name, alive_s=300).begin().lead(2, 3.0).alive(6.0).lines,
        "recorder": recorder(name).begin().alive(1.0).lines,
    }


def a_lost_while(name: str) -> Folders:
    """Return journals of which the controller's own lost only a little."""
    return {
        "controller": controller(name).begin().alive(3.0).lose(3.1).alive(6.0).lines,
        "recorder": recorder(name).begin().alive(6.0).lines,
    }


def fill_gap(name: str) -> Folders:
    """A recorder took a snapshot while the controller could not write."""
    return {
        "controller": controller(name).begin().alive(2.0).lose(3.0).alive(6.0).lines,
        "recorder": recorder(name).begin().alive(2.5).snapshot().lead(2, 2.75).alive(5.0).lines,
    }


def one_after_the_other(name: str) -> Folders:
    """A recorder without a disk of its own is restarted, and counts from 0 again."""
    return {
        "first": recorder(name).begin().alive(3.0).lines,
        "second": recorder(name).begin(3.5).lead(2, 4.0).alive(6.0).lines,
    }


def cut_into_two_folders(name: str) -> Folders:
    """Each half of a controller's journal is less than what the recorder saw; both together are more."""
    own = controller(name).begin().alive(6.0).lines
    half = len(own) // 2
    return {
        "archived": own[: half + 5],
        "current": own[half:],
        "recorder": recorder(name).begin(2.0).alive(6.0).lines,
    }


def slept(name: str) -> Folders:
    """One recorder's process stood still for most of the time. It has the larger numbers."""
    return {
        "awake": recorder(name).begin(3.0).alive(6.0).lines,
        "asleep": recorder(name).begin().alive(0.5).silent(5.5).alive(6.0).lines,
    }


def never_known(name: str) -> Folders:
    """A journal whose snapshots are lost says nothing that is known."""
    without = [
        line for line in controller(name).begin().alive(6.0).lines if b"snapshot" not in line and b"elected" not in line
    ]
    return {"controller": without, "recorder": recorder(name).begin(3.0).alive(6.0).lines}


def copies(name: str) -> Folders:
    """A journal, a copy of it, and a part of it."""
    own = controller(name).begin().lead(2, 1.0).alive(2.0).lines
    return {"own": own, "copy": own, "part": own[20:50]}


def two_controllers(name: str) -> Folders:
    """Both are of one epoch; the records of the first that are left have other numbers than those of the second."""
    first, second = controller(name, who=1).begin().alive(6.0), controller(name, who=2).begin().alive(5.0)
    return {"first": first.lines[-50:], "second": second.lines}


ALL, SOME, NONE = "all", "some", "none"
Hours = tuple[float, float]
SCENES: dict[str, tuple[Callable[[str], Folders], dict[str, str], list[Hours]]] = {
    "a minute of a controller beside a recorder's hours": (
        a_minute, {"recorder": ALL, "controller": NONE}, [(0, 6)],
    ),
    "both saw all": (both, {"controller": ALL, "recorder": NONE}, [(0.001, 6)]),
    "a controller that seldom says that it lives": (seldom, {"controller": ALL, "recorder": NONE}, [(0, 6)]),
    "a controller that lost a while": (a_lost_while, {"controller": ALL, "recorder": NONE}, [(0, 3), (3.1, 6)]),
    "a lost while that is filled": (
        fill_gap, {"controller": ALL, "recorder": SOME}, [(0, 2), (2.5, 3), (3, 6)],
    ),
    "two recorders one after the other": (
        one_after_the_other, {"first": ALL, "second": ALL}, [(0, 3), (3.5, 6)],
    ),
    "a controller's journal in two folders": (
        cut_into_two_folders, {"archived": ALL, "current": ALL, "recorder": NONE}, [(0, 6)],
    ),
    "a recorder that slept": (slept, {"awake": ALL, "asleep": SOME}, [(0, 0.5), (3, 6)]),
    "a controller without any state": (never_known, {"recorder": ALL, "controller": NONE}, [(3, 6)]),
    "copies": (copies, {"own": ALL, "copy": ALL, "part": ALL}, [(0, 2)]),
    "two controllers": (two_controllers, {"first": NONE, "second": ALL}, [(0, 5)]),
}  # fmt: skip
"""Each scene: the journals, how much of each folder is taken, and the hours in which the state is known."""
FOLDERS = {name: make(name) for name, (make, _, _) in SCENES.items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    events: list[Row]
    findings: list[Row]
    spans: list[Row]

    def count_taken(self, name: str) -> Counter[str]:
        """Count the records that were taken of each folder."""
        return Counter(row.journal.rsplit("/", 1)[1] for row in self.events if row.cluster_id == name)

    def select_findings(self, name: str, problem: str) -> list[Row]:
        return [row for row in self.findings if row.cluster_id == name and row.problem == problem]


@pytest.fixture(scope="module")
def outcome(spark: SparkSession) -> Outcome:
    recorded = spark.createDataFrame(
        lines.judge(lines.check_lines(make_lines(spark, FOLDERS)))[0].collect(), EVENTS.schema
    )
    events, findings = deduplicate(correct_stamps(recorded))
    rows = events.orderBy(*EVENTS.order).collect()
    events = spark.createDataFrame(rows, EVENTS.schema)
    found = [*findings.collect(), *doubts(marks(events)).collect()]
    return Outcome(rows, found, find_known_spans(marks(events)).orderBy(*KNOWN_SPANS.order).collect())


@pytest.mark.parametrize("name", SCENES)
def test_what_covers_most_is_taken_and_what_fills_its_silence_each_record_once(name: str, outcome: Outcome) -> None:
    _, expected, _ = SCENES[name]
    taken = outcome.count_taken(name)
    whole = {line for folder, how in expected.items() if how == ALL for line in FOLDERS[name][folder]}
    assert sum(taken[folder] for folder, how in expected.items() if how == ALL) == len(whole)
    for folder, how in expected.items():
        assert (how == SOME) == (0 < taken[folder] < len(FOLDERS[name][folder]) and how != ALL)
        assert how != NONE or not taken[folder]


@pytest.mark.parametrize("name", SCENES)
def test_the_state_is_known_while_any_account_that_is_taken_knows_it(name: str, outcome: Outcome) -> None:
    def hours(moment: datetime) -> float:
        return (moment.astimezone(UTC) - BEGAN) / timedelta(hours=1)

    spans = [row for row in outcome.spans if row.cluster_id == name]
    together = [(hours(row.began), hours(row.ended)) for row in spans]
    assert together == [pytest.approx(span, abs=0.02) for span in SCENES[name][2]]


@pytest.mark.parametrize("name", SCENES)
def test_numbers_are_in_the_order_of_time_and_no_part_is_a_gap(name: str, outcome: Outcome) -> None:
    rows = [row for row in outcome.events if row.cluster_id == name]
    assert len({(row.controller_epoch, row.seq) for row in rows}) == len(rows)
    assert [row.event_time for row in rows] == sorted(row.event_time for row in rows)
    assert sum(row["count"] for row in outcome.select_findings(name, "gap")) == 3 * name.count("lost")


@pytest.mark.parametrize("name", SCENES)
def test_each_journal_that_is_not_all_taken_is_named_with_what_is_left(name: str, outcome: Outcome) -> None:
    _, expected, _ = SCENES[name]
    found = {row.source: row for row in outcome.select_findings(name, "two_journals")}
    assert set(found) == {f"/{name}/{folder}" for folder, how in expected.items() if how != ALL}
    for folder in (folder for folder, how in expected.items() if how != ALL):
        row = found[f"/{name}/{folder}"]
        assert row["count"] == len(FOLDERS[name][folder]) - outcome.count_taken(name)[folder]
        assert expected[row.detail.rsplit("/", 1)[1]] == ALL
