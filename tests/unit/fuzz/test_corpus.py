"""The corpus of fuzzing is read again, each input alone, and its memory is measured."""

import pytest

from tests.fuzz.bounds import read_within_bounds
from tests.fuzz.targets import NAMES, target


def test_the_targets_are_found() -> None:
    assert {"frames", "requests", "answers", "znodes", "journal", "text_logs", "http"} <= {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_is_read_or_refused_in_words_within_the_memory_that_it_may_take(name: str) -> None:
    of = target(name)
    kept = of.list_inputs()
    assert kept
    for data in kept:
        assert len(data) <= of.most_bytes, "what is kept is of a size that is fuzzed"
        read_within_bounds(of.read, data)


def test_more_memory_than_the_bytes_may_take_is_noticed() -> None:
    with pytest.raises(AssertionError, match="2 bytes took"):
        read_within_bounds(lambda data: bytearray(len(data) << 21).clear(), b"xx")
