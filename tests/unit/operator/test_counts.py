"""The operator's counts of a topic's partitions."""

import pytest

from controller_core.model.snapshot import count_partitions
from tests.unit.operator.clusters import assign, lead, topic


@pytest.mark.parametrize(
    ("replicas", "adding", "isr", "under_min_isr"),
    [
        ([1], [], [1], 0),
        ([1, 2], [2], [1], 1),
        ([1, 2], [2], [1, 2], 0),
        ([1, 2, 3], [], [1], 1),
        ([1, 2, 3], [], [1, 2], 0),
    ],
)
def test_a_leader_asks_for_no_more_in_sync_replicas_than_are_assigned(
    replicas: list[int], adding: list[int], isr: list[int], under_min_isr: int
) -> None:
    """The assigned replicas include those that a reassignment still adds, as in the leader's count."""
    orders = topic((assign(replicas, adding), lead(1, isr)), config={"min.insync.replicas": "2"})
    assert count_partitions(orders).under_min_isr == under_min_isr
