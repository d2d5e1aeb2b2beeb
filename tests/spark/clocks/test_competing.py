"""Several honest journals of one term: the result is true, and covers about as much as any of them knows. Copies change
nothing."""

from collections.abc import Iterator
from typing import Final

import pytest
from pyspark.sql import SparkSession

from kontroller.history.transforms.accounts.choice import ABOUT_AS_MUCH
from tests.spark.clocks.competing import LATE_S, Term, terms
from tests.spark.clocks.drawn import examples
from tests.spark.clocks.folded import Folded, fold_journals
from tests.spark.clocks.journals import START_S
from tests.spark.clocks.oracle import SECOND, Timeline, timelines

EXAMPLES: Final = 60
SILENCE_S: Final = 60
LATE_US: Final = round(LATE_S * SECOND)
TERMS: Final = {f"term {number}": term for number, term in enumerate(examples(terms(), EXAMPLES))}
BARE: Final = " without copies"


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Folded:
    journals = {name: term.journals for name, term in TERMS.items()}
    return fold_journals(spark, journals | {name + BARE: term.journals[: term.whole] for name, term in TERMS.items()})


def sum_known_us(timeline: Timeline) -> int:
    return sum(ended - began for began, ended, leader in timeline if leader is not None)


def untrue(term: Term, partition: int, timeline: Timeline) -> Iterator[tuple[int, int, int]]:
    """Return the states that are wrongly said to be known. A recorder may report an event a little late."""
    for began, ended, leader in timeline:
        if leader is None:
            continue
        first = {term.leader(partition, began), term.leader(partition, began - LATE_US)}
        changes = (START_S * SECOND + round(change.at_s * SECOND) for change in term.changes)
        later = {term.leader(partition, at) for at in changes if began < at < ended - LATE_US}
        if leader not in first or later - {leader}:
            yield began, ended, leader


def test_what_is_said_to_be_known_was_so(found: Folded) -> None:
    wrong = [
        (name, partition, state)
        for name, term in TERMS.items()
        for partition, timeline in found.timelines[name].items()
        for state in untrue(term, partition, timeline)
    ]
    assert wrong == []
    leaders = {state[2] for name in TERMS for timeline in found.timelines[name].values() for state in timeline}
    assert leaders == {None, -1, 1, 2}, "or this compares nothing"


def test_as_much_is_known_as_of_the_journal_that_knows_most(found: Folded) -> None:
    for name, term in TERMS.items():
        single = [timelines(records, silence_s=SILENCE_S) for records in term.journals]
        most_us = max(sum_known_us(timeline) for of_journal in single for timeline in of_journal.values() or [[]])
        for timeline in found.timelines[name].values():
            assert sum_known_us(timeline) >= ABOUT_AS_MUCH * most_us, name


def test_copies_and_parts_of_journals_change_nothing(found: Folded) -> None:
    for name in TERMS:
        assert found.timelines[name] == found.timelines[name + BARE], name
