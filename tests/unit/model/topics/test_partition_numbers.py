"""The partitions that may be added and removed, so that the numbers of a topic's partitions have no gaps."""

from collections.abc import Set

from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import PartitionId
from controller_core.model.topics.partition_numbers import find_removable, refuse_additions, refuse_removals

NUMBERS = st.sets(st.integers(0, 12).map(PartitionId))
COUNTS = st.integers(0, 8)


def first(count: int) -> set[PartitionId]:
    return set(map(PartitionId, range(count)))


@given(count=COUNTS, asked=NUMBERS)
def test_what_is_added_continues_the_numbers(count: int, asked: Set[PartitionId]) -> None:
    present = first(count)
    refused = refuse_additions(present, asked)
    added = asked - refused.keys()
    assert added.isdisjoint(present)
    assert present | added == first(count + len(added))
    assert count + len(added) not in asked, "the next one is refused only where it is not asked for"


@given(present=NUMBERS, asked=NUMBERS)
def test_gaps_that_there_are_are_filled_from_below(present: Set[PartitionId], asked: Set[PartitionId]) -> None:
    added = asked - refuse_additions(present, asked).keys()
    for number in added:
        assert first(number) <= present | added


@given(count=COUNTS, asked=NUMBERS)
def test_what_is_removed_is_the_end_and_not_all(count: int, asked: Set[PartitionId]) -> None:
    present = first(count)
    removed = asked - refuse_removals(present, asked).keys()
    assert present - removed == first(count - len(removed))
    assert removed <= present
    assert count == 0 or present - removed


@given(present=NUMBERS, asked=NUMBERS)
def test_what_can_go_now_are_the_last_ones_that_are_asked_to(
    present: Set[PartitionId], asked: Set[PartitionId]
) -> None:
    gone = find_removable(present, asked)
    assert gone <= present & asked
    assert all(number < least for number in present - gone for least in [min(gone, default=PartitionId(1 << 31))])
    assert not present - gone or max(present - gone) not in asked


def test_each_refusal_says_which_number_comes_first() -> None:
    three = first(3)
    assert "partition 3 is the next" in refuse_additions(three, [PartitionId(4)])[PartitionId(4)]
    assert "partition 2 has to be removed first" in refuse_removals(three, [PartitionId(1)])[PartitionId(1)]
