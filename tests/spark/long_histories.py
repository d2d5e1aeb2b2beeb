"""Tests of histories that take minutes: two matrices, of each of which a commit runs one case, before all others."""

import pytest

from tests.sampling import ONE_EACH


def long_histories(case: str) -> list[pytest.MarkDecorator]:
    """The marks of the tests that are together the case of this name: some ten minutes of one processor."""
    return _one_each("long histories", case)


def slow_histories(case: str) -> list[pytest.MarkDecorator]:
    """The same of what takes two to eight minutes."""
    return _one_each("slow histories", case)


def _one_each(matrix: str, case: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long, pytest.mark.matrix(matrix, case, parts=ONE_EACH)]
