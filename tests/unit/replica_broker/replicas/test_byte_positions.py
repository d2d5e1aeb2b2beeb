"""The number of bytes that a follower is behind, by the leader's notes of its appends."""

from hypothesis import given
from hypothesis import strategies as st

from replica_broker.replicas.byte_positions import BytePositions


def test_bytes_are_exact_where_appends_ended_and_estimated_between() -> None:
    positions = BytePositions(10, 20, 1_000)
    positions.note(30, 500)
    assert positions.estimate_bytes(20, 30) == 500
    assert positions.estimate_bytes(10, 30) == 1_500
    assert positions.estimate_bytes(15, 20) == 500
    assert positions.estimate_bytes(25, 30) == 250


def test_nothing_lies_between_an_offset_and_a_smaller_one_or_itself() -> None:
    positions = BytePositions(0, 0, 0)
    positions.note(10, 100)
    assert positions.estimate_bytes(10, 10) == positions.estimate_bytes(10, 5) == 0


def test_what_is_before_the_log_or_behind_it_has_no_bytes() -> None:
    positions = BytePositions(10, 20, 1_000)
    assert positions.estimate_bytes(0, 10) == positions.estimate_bytes(20, 99) == 0


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 10_000)), min_size=1, max_size=2_000))
def test_however_many_appends_there_were_the_sum_is_right(appends: list[tuple[int, int]]) -> None:
    positions = BytePositions(0, 0, 0)
    end = 0
    for messages, size_bytes in appends:
        end += messages
        positions.note(end, size_bytes)
    assert positions.estimate_bytes(0, end) == sum(size_bytes for _, size_bytes in appends)
    assert positions.estimate_bytes(end - appends[-1][0], end) >= 0
