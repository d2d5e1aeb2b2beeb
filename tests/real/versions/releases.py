"""Tests whose brokers are of one release each: the usual one, and each other one that Kontroller serves."""

from collections.abc import Iterable
from typing import Any

import pytest

from devcluster.building.java import KAFKA_VERSION, OLDER_VERSIONS
from tests.sampling import ONE_EACH


def of_each_release(matrix: str) -> pytest.MarkDecorator:
    """The mark of tests that take a `release`, with ZooKeeper; see `usual_and`."""
    return pytest.mark.parametrize("release", usual_and(OLDER_VERSIONS, usual=KAFKA_VERSION, matrix=matrix))


def usual_and(others: Iterable[str], *, usual: str, matrix: str) -> tuple[Any, ...]:
    """The parameters for tests of these releases; of those with others a commit has one, a matrix of this name."""
    one_each = pytest.mark.matrix(matrix, parts=ONE_EACH)
    return (usual, *(pytest.param(each, marks=one_each) for each in others))
