"""With brokers of other releases a commit has one of the operator's tests; `make versions` has them all."""

import pytest

from devcluster.building.java import OLDER_VERSIONS, OTHER_KRAFT_VERSIONS
from tests.sampling import ONE_EACH


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and _release_of(item) in (*OLDER_VERSIONS, *OTHER_KRAFT_VERSIONS):
            matrix = pytest.mark.matrix("the operator and brokers of other releases", parts=ONE_EACH)
            item.add_marker(matrix, append=False)  # before what a test says of its cases


def _release_of(item: pytest.Function) -> str:
    """Of the brokers, where the cluster's name says it."""
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("kafka", "")).partition("-")[2] if callspec else ""
