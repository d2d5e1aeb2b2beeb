"""The history of a cluster in one term, and several journals of it, drawn by Hypothesis: the controller's journal,
which lost some records, those of recorders, which slept or started late, and parts of copies. All of them are honest,
and their clocks are right."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from hypothesis import strategies as st

from tests.spark.clocks.journals import PARTITIONS, START_S, Journal
from tests.spark.clocks.oracle import SECOND, Record

LONGEST_S: Final = 1500
LATE_S: Final = 0.5
"""The delay with which a recorder sees a change, in seconds."""


class Change(NamedTuple):
    at_s: float
    partition: int
    leader: int


class Watch(NamedTuple):
    """A time in which the writer of a journal sees all changes."""

    from_s: int
    until_s: int


class Term(NamedTuple):
    changes: Sequence[Change]
    journals: Sequence[Sequence[Record]]
    """The first ones are whole; the others are parts of them."""
    whole: int

    def leader(self, partition: int, at_us: int) -> int:
        """Return the partition's leader at that time."""
        at_s = at_us / SECOND - START_S
        led = [change.leader for change in self.changes if change.partition == partition and change.at_s <= at_s]
        return led[-1] if led else 1


CHANGES: Final = st.lists(
    st.builds(Change, st.sampled_from(range(1, LONGEST_S)), st.sampled_from(PARTITIONS), st.sampled_from((-1, 1, 2))),
    min_size=2,
    max_size=12,
).map(lambda changes: [*_each_a_change(sorted(changes))])
WATCHES: Final = st.lists(st.sampled_from(range(LONGEST_S // 10)), min_size=2, max_size=6, unique=True).map(
    lambda tens: [Watch(10 * a, 10 * b) for a, b in zip(sorted(tens)[::2], sorted(tens)[1::2], strict=False)]
)


@st.composite
def terms(draw: st.DrawFn) -> Term:
    changes = draw(CHANGES)
    journals = [write_as_controller(changes, draw(WATCHES))]
    journals += [write_as_recorder(changes, watches) for watches in draw(st.lists(WATCHES, min_size=1, max_size=2))]
    whole = len(journals)
    for _ in range(draw(st.integers(1, 2))):
        of = draw(st.sampled_from(journals[:whole]))
        first = draw(st.integers(0, len(of) - 1))
        journals.append(of[first : draw(st.integers(first + 1, len(of)))])
    return Term(changes, journals, whole)


def write_as_controller(changes: Sequence[Change], watches: Sequence[Watch]) -> list[Record]:
    """Write the journal of a controller. It loses the changes between two watches and says so; a snapshot follows."""
    journal = Journal()
    for number, watch in enumerate(watches):
        journal.now_s = watch.from_s
        for partition, leader in _state(changes, watch.from_s).items():
            journal.know(partition, leader, version=_version(changes, partition, watch.from_s))
        if number == 0:
            journal.begin()
        else:
            journal.gap(3).snapshot()
        _watch(journal, changes, watch, late_s=0)
    return journal.records


def write_as_recorder(changes: Sequence[Change], watches: Sequence[Watch]) -> list[Record]:
    """Write the journal of a recorder that sleeps between two watches. It then finds the differences, and nobody knows
    their times."""
    journal = Journal(is_recorded=True)
    known_s = float(watches[0].from_s)
    for number, watch in enumerate(watches):
        journal.now_s = watch.from_s + LATE_S
        found = _state(changes, watch.from_s)
        if number == 0:
            for partition, leader in found.items():
                journal.know(partition, leader, version=_version(changes, partition, watch.from_s))
            journal.begin()
        else:
            for partition in PARTITIONS:
                version = _version(changes, partition, watch.from_s)
                if version != _version(changes, partition, known_s):
                    journal.lead(partition, found[partition], cause="unobserved", version=version)
            journal.alive()
        _watch(journal, changes, watch, late_s=LATE_S)
        known_s = watch.until_s
    return journal.records


def _watch(journal: Journal, changes: Sequence[Change], watch: Watch, *, late_s: float) -> None:
    for change in changes:
        if watch.from_s < change.at_s <= watch.until_s:
            journal.live(change.at_s + late_s - journal.now_s)
            journal.lead(change.partition, change.leader)
    journal.live(watch.until_s + late_s - journal.now_s)


def _state(changes: Sequence[Change], at_s: float) -> dict[int, int]:
    return dict.fromkeys(PARTITIONS, 1) | {change.partition: change.leader for change in changes if change.at_s <= at_s}


def _version(changes: Sequence[Change], partition: int, at_s: float) -> int:
    """Return the version of the partition's state: the number of its changes so far."""
    return sum(change.partition == partition and change.at_s <= at_s for change in changes)


def _each_a_change(changes: Sequence[Change]) -> Iterator[Change]:
    leaders = dict.fromkeys(PARTITIONS, 1)
    for change in changes:
        if leaders[change.partition] != change.leader:
            leaders[change.partition] = change.leader
            yield change
