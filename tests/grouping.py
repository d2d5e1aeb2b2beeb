"""Decides which tests one process runs, if several processes share a run (`--dist loadgroup`).

A group is a file, a file's tests on one of the clusters that a whole run shares, or all tests of a folder on one of the
clusters that the folder shares.
"""

from collections.abc import Iterable
from typing import Final

import pytest
from _pytest.nodeid import coerce_node_id

_OF_THE_RUN: Final = ("started_cluster", "served")
"""Fixtures whose parameters are clusters that a whole run shares."""
_OF_THE_FOLDER: Final = "operated_cluster"
"""The fixture whose parameters are clusters that the files of one folder share."""


def group_items(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Mark each test with its group.

    xdist sends a group to one process if the node id ends with `@GROUP`. It writes that into an attribute that pytest
    no longer has since 9.2, so this function writes it.
    """
    for item in items:
        group = _find_group(item)
        item.add_marker(pytest.mark.xdist_group(group))
        if config.getoption("loadgroup", False):
            item._id = coerce_node_id(f"{item.nodeid}@{group}")  # no public way exists


def _find_group(item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    parameters = callspec.params if callspec else {}
    if _OF_THE_FOLDER in parameters:
        return f"{item.path.parent.as_posix()} {parameters[_OF_THE_FOLDER]}"
    shared = [str(parameters[name]) for name in _OF_THE_RUN if name in parameters]
    return " ".join([item.path.as_posix(), *shared])
