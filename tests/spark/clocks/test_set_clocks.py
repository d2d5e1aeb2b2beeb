"""Clocks that are set within a term: with the machine's uptime in each record, every duration is what it was.

The reference is what happened, by the time that the test let pass. It reads no stamp."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.spark.clocks.drawn import examples
from tests.spark.clocks.folded import Folded, fold_journals
from tests.spark.clocks.journals import PARTITIONS, START_S, Journal

BOOT: Final = "1f0e5a2b"
HOUR: Final = 3600
EXAMPLES: Final = 60
States = list[tuple[float, float, int]]
"""From when, to when, in seconds since the history began, and the leader."""


def down(seconds: float, *, ahead_s: float, set_after_s: float, boot: str = BOOT) -> Journal:
    """An outage of partition 0 that lasts so long. The clock is set in the middle of it, and is right from then on."""
    journal = Journal(boot=boot).begin(ahead_s=ahead_s).live(600).lead(0, -1).live(set_after_s)
    return journal.set_clock(0).live(seconds - set_after_s).lead(0, 2).live(2 * HOUR)


def stamp_far_ahead() -> Journal:
    journal = Journal(boot=BOOT).begin().live(600).lead(0, -1).live(300).alive(off_s=1.7e12).live(600)
    return journal.lead(0, 2, off_s=-1.7e9).live(600)


def boot_in_1970() -> Journal:
    return Journal(boot=BOOT).begin(ahead_s=-START_S).live(40).lead(0, -1).set_clock(0).live(860).lead(0, 2).live(600)


def run_on_two_machines() -> Journal:
    """The recorder of a term moved to a machine with another clock."""
    journal = down(900, ahead_s=30, set_after_s=300)
    journal._boot = "another1"
    return journal.lead(0, -1).set_clock(-30).live(300).lead(0, 2).set_clock(0).live(HOUR)


CASES: Final = {
    "back by 30 seconds": (down(900, ahead_s=30, set_after_s=300), 900),
    "back by 5 minutes": (down(900, ahead_s=300, set_after_s=590), 900),
    "back by a leap second": (down(0.75, ahead_s=1, set_after_s=0.25), 0.75),
    "ahead by an hour": (down(900, ahead_s=-HOUR, set_after_s=300), 900),
    "one stamp far ahead and one far back": (stamp_far_ahead(), 900),
    "boot in 1970": (boot_in_1970(), 860),
    "two machines": (run_on_two_machines(), 1200),
}
WITHOUT_UPTIME: Final = {
    "old: back by 30 seconds": (down(900, ahead_s=30, set_after_s=300, boot=""), 870),
    "old: back by 5 minutes": (down(900, ahead_s=300, set_after_s=590, boot=""), 600),
}

STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("live"), st.sampled_from((0.25, 3, 20, 600))),
        st.tuples(st.just("set"), st.sampled_from((0, 0.05, -1, 30, -300, 5 * HOUR, -START_S, 4e8))),
        st.tuples(st.just("lead"), st.tuples(st.sampled_from(PARTITIONS), st.sampled_from((-1, 1, 2)))),
    ),
    min_size=3,
    max_size=16,
)


def draw_journals() -> Iterator[tuple[str, Journal]]:
    for number, steps in enumerate(examples(STEPS, EXAMPLES)):
        journal = Journal(boot=BOOT).begin()
        for what, how in steps:
            if what == "live":
                journal.live(float(how))  # type: ignore[arg-type]
            elif what == "set":
                journal.set_clock(float(how))  # type: ignore[arg-type]
            else:
                journal.lead(*how)  # type: ignore[misc]
        yield f"drawn {number}", journal.live(30)


DRAWN: Final = dict(draw_journals())


def what_happened(journal: Journal, partition: int) -> States:
    """Return the leaders of the partition by the right time."""
    changes = [(0.0, 1), *((at, leader) for at, of, leader in journal.led if of == partition), (journal.now_s, 0)]
    lasting = [(at, until, leader) for (at, leader), (until, _) in pairwise(changes) if at < until]
    joined: States = []
    for at, until, leader in lasting:
        if joined and joined[-1][2] == leader:
            at = joined.pop()[0]
        joined.append((at, until, leader))
    return joined


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Folded:
    of_cases = {name: [journal.records] for name, (journal, _) in (CASES | WITHOUT_UPTIME).items()}
    return fold_journals(spark, of_cases | {name: [journal.records] for name, journal in DRAWN.items()})


@pytest.mark.parametrize("name", CASES)
def test_an_outage_is_as_long_as_it_was(found: Folded, name: str) -> None:
    assert found.leaderless_seconds[name] == CASES[name][1]
    assert found.unknown_seconds[name] == 0
    assert found.findings[name] == {}


@pytest.mark.parametrize("name", WITHOUT_UPTIME)
def test_a_journal_without_uptimes_is_still_read_by_its_stamps(found: Folded, name: str) -> None:
    assert found.leaderless_seconds[name] == WITHOUT_UPTIME[name][1]
    assert found.findings[name] == {"clock_went_back": 1}


@pytest.mark.parametrize("name", ["back by 30 seconds", "back by 5 minutes", "ahead by an hour", "boot in 1970"])
def test_times_are_those_of_the_clock_that_was_right_longest(found: Folded, name: str) -> None:
    journal, _ = CASES[name]
    states = found.timelines[name][0]
    in_seconds = [(began / 1e6 - START_S, ended / 1e6 - START_S, leader) for began, ended, leader in states]
    assert in_seconds == what_happened(journal, 0)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_whatever_the_clock_did_every_state_lasts_as_long_as_it_did(found: Folded, partition: int) -> None:
    wrong = {}
    for name, journal in DRAWN.items():
        states = found.timelines[name][partition]
        told = [((began - states[0][0]) / 1e6, (ended - states[0][0]) / 1e6, leader) for began, ended, leader in states]
        if told != what_happened(journal, partition):
            wrong[name] = (told, what_happened(journal, partition), journal.records)
    assert wrong == {}
    assert {leader for journal in DRAWN.values() for *_, leader in what_happened(journal, partition)} == {-1, 1, 2}
