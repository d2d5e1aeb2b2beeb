"""A snapshot refuses what no plan can be made of, and its hash knows its content and nothing else."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller_planner.loads import InvalidSnapshot
from tests.unit.planner.clusters import UNKNOWN, make_cluster

ROWS = [[0, 1], [1, 2], [2]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ids": [1, 1, 2]}, "broker 1 is listed twice"),
        ({"ids": [-1, 1, 2]}, "broker id -1 is negative"),
        ({"ids": [2**40, 1, 2]}, "ids has a value that does not fit into int32"),
        ({"ids": [0.5, 1, 2]}, "ids has values of type float64"),
        ({"racks": ("a", "", "b")}, "broker 1: the rack's name is empty"),
        ({"capacity_disk_bytes": [1.0, 0.0, UNKNOWN]}, "broker 1: capacity_disk_bytes is 0; give a positive number"),
        ({"capacity_in_bytes_per_second": [np.inf, 1.0, 1.0]}, "broker 0: capacity_in_bytes_per_second is inf"),
        ({"is_live": [True, True]}, r"is_live has the shape \(2,\); it must be \(3,\)"),
        ({"number": [0, 1, 1]}, "partition t-1 is listed twice"),
        ({"number": [0, 1, -1]}, "topic t: partition -1"),
        ({"topic": [0, 0, 1]}, "partition at row 2: topic index 1 is none of 1 topics"),
        ({"topics": ("t", "t")}, "topic t is listed twice"),
        ({"replicas": [[0, 0], [1, 2], [2, -1]]}, "partition t-0 has two replicas on one broker"),
        ({"replicas": [[0, 1], [1, 3], [2, -1]]}, "partition t-1: a replica is on broker index 3, and there are 3"),
        ({"replicas": [[0, 1], [-1, 1], [2, -1]]}, "partition t-1: -1 stands before a replica"),
        ({"replicas": [[0, 1], [1, -2], [2, -1]]}, "partition t-1: a negative index"),
        ({"replicas": [[0, 1], [-1, -1], [2, -1]]}, "partition t-1 has no replicas"),
        ({"leader": [0, 0, 2]}, "partition t-1: the leader is none of its replicas"),
        ({"size_bytes": [1.0, -1.0, -2.0]}, r"t-1: size_bytes is -1; .* or nothing \(and 1 more of this kind\)"),
        ({"size_bytes": [1.0, 1e28, 2.0]}, r"partition t-1: size_bytes is 1e\+28; give a number from 0 to 1e\+27"),
        ({"capacity_out_bytes_per_second": [1.0, 1e300, 1.0]}, r"broker 1: .* is 1e\+300; give .* up to 1e\+27"),
        ({"in_bytes_per_second": [1.0, np.inf, 2.0]}, "partition t-1: in_bytes_per_second is inf"),
        ({"min_isr": [1, 0, 1]}, "partition t-1: min_isr is 0"),
        ({"in_sync": [[True, True], [True, True], [True, True]]}, "partition t-2: no replica is in sync there"),
    ],
)
def test_a_wrong_entry_is_named(fields: dict[str, Any], message: str) -> None:
    if "replicas" in fields:
        fields = {"leader": [0, 1, 2], "in_sync": np.zeros((3, 2), dtype=np.bool_), **fields}
    with pytest.raises(InvalidSnapshot, match=message):
        make_cluster(ROWS, **fields)


@pytest.mark.parametrize("taken_at_ms", [-1, 253_402_300_800_000, 2**63, -(2**70)])
def test_a_time_that_no_calendar_has_is_refused(taken_at_ms: int) -> None:
    with pytest.raises(InvalidSnapshot, match=f"taken_at_ms is {taken_at_ms}, which is in none of the years 1970 to"):
        replace(make_cluster(ROWS), taken_at_ms=taken_at_ms)


def test_a_snapshot_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        make_cluster(ROWS).partitions.replicas[0, 0] = 2


def test_the_hash_does_not_depend_on_the_order_of_entries_or_on_padding() -> None:
    one = make_cluster(ROWS, size_bytes=[1.0, UNKNOWN, 3.0])
    other = make_cluster(
        [[0], [2, 0, -1], [1, 2, -1]],
        ids=[2, 1, 0],
        number=[2, 1, 0],
        leader=[0, 1, 2],
        replicas=[[0, -1, -1], [1, 0, -1], [2, 1, -1]],
        size_bytes=[3.0, UNKNOWN, 1.0],
        in_sync=[[True, False, False], [True, True, False], [True, True, False]],
    )
    assert one.compute_hash() == other.compute_hash()


@pytest.mark.parametrize(
    "fields",
    [{"size_bytes": [1.0, 1.0, 2.0]}, {"is_live": [True, True, False]}, {"leader": [1, 1, 2]}, {"topics": ("u",)}],
)
def test_the_hash_depends_on_each_field(fields: dict[str, Any]) -> None:
    assert make_cluster(ROWS).compute_hash() != make_cluster(ROWS, **fields).compute_hash()


def test_an_empty_cluster_is_a_snapshot() -> None:
    assert len(make_cluster([], brokers=0).compute_hash()) == 64
