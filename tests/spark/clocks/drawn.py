"""Journals as Hypothesis draws them: clocks that are off, set, or wrong once; silences; losses; cuts and repetitions."""

from collections.abc import Callable
from typing import Final, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.spark.clocks.journals import PARTITIONS, Journal
from tests.spark.clocks.oracle import Record

HOURS: Final = 3600
T = TypeVar("T")
Step = Callable[[Journal], Journal]

PARTITION: Final = st.sampled_from(PARTITIONS)
LEADER: Final = st.sampled_from((-1, 1, 2))
WAIT_S: Final = st.one_of(st.integers(0, 12), st.sampled_from((0.5, 40, 60, 61, 300, 5 * HOURS)))
OFF_S: Final = st.one_of(st.just(0), st.just(0), st.sampled_from((-2, 30, -45, 70, -90, 10 * HOURS, -20 * HOURS, -2e9)))
AHEAD_S: Final = st.sampled_from((0, 0, 0, 3, -50, 75, -300, 20 * HOURS, -3 * HOURS, -2e9, 4e8))


def alive(journal: Journal, wait_s: float, off_s: float) -> Journal:
    return journal.wait(wait_s).alive(off_s=off_s)


def lead_after(journal: Journal, wait_s: float, off_s: float, partition: int, leader: int) -> Journal:
    return journal.wait(wait_s).lead(partition, leader, off_s=off_s)


STEPS: Final[st.SearchStrategy[Step]] = st.one_of(
    st.builds(lambda wait_s, off_s: lambda journal: alive(journal, wait_s, off_s), WAIT_S, OFF_S),
    st.builds(
        lambda wait_s, off_s, partition, leader: lambda journal: lead_after(journal, wait_s, off_s, partition, leader),
        WAIT_S, OFF_S, PARTITION, LEADER,
    ),
    st.builds(lambda seconds: lambda journal: journal.live(seconds), st.integers(10, 200)),
    st.builds(lambda ahead_s: lambda journal: journal.set_clock(ahead_s), AHEAD_S),
    st.builds(lambda wait_s, ahead_s: lambda journal: journal.wait(wait_s).begin(ahead_s=ahead_s), WAIT_S, AHEAD_S),
    st.builds(lambda wait_s: lambda journal: journal.wait(wait_s).snapshot(), WAIT_S),
    st.builds(
        lambda wait_s, partition, leader: lambda journal: journal.wait(wait_s).lead(partition, leader, cause="unobserved"),
        WAIT_S, PARTITION, LEADER,
    ),
    st.builds(lambda partition, leader: lambda journal: journal.lead(partition, leader).lose(), PARTITION, LEADER),
    st.builds(lambda dropped: lambda journal: journal.gap(dropped), st.integers(1, 4)),
)  # fmt: skip


@st.composite
def journals(draw: st.DrawFn) -> list[Record]:
    """The records as they are read: segments may be cut at both ends, and come twice."""
    journal = Journal().begin(ahead_s=draw(AHEAD_S))
    for step in draw(st.lists(STEPS, max_size=14)):
        step(journal)
    records = journal.records
    first = draw(st.one_of(st.just(0), st.integers(0, len(records) // 2)))
    last = len(records) - draw(st.one_of(st.just(0), st.integers(0, 3)))
    kept = records[first:last] or records
    again = draw(st.integers(0, len(kept)))
    return [*kept[again:], *kept, *kept[: again // 2]]


def examples(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Draw all examples at once, because one run of Spark takes as long for all of them as for one."""
    found: list[T] = []

    @settings(
        max_examples=count, phases=[Phase.generate], deadline=None, suppress_health_check=[*HealthCheck], database=None
    )
    @given(strategy)
    def collect(one: T) -> None:
        found.append(one)

    collect()
    return found
