"""Small clusters for the tests of the planner, also by Hypothesis."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from controller_planner.goals import Goals, Limits, Mode
from controller_planner.loads import Brokers, LoadSnapshot, Partitions
from controller_planner.plan import Plan

UNKNOWN = float("nan")


def make_cluster(
    rows: Sequence[Sequence[int]],
    brokers: int = 3,
    racks: Sequence[str | None] | None = None,
    **fields: Any,
) -> LoadSnapshot:
    """Return a snapshot of brokers 0, 1, ... and of one topic `t`, with the given replicas. `fields` change the rest."""
    width, number = max((len(row) for row in rows), default=0), len(rows)
    table = np.full((number, width), -1, dtype=np.int32)
    for at, row in enumerate(rows):
        table[at, : len(row)] = row
    of_brokers: dict[str, Any] = {
        "ids": np.arange(brokers),
        "racks": tuple(racks) if racks is not None else (None,) * brokers,
        "capacity_disk_bytes": np.full(brokers, UNKNOWN),
        "capacity_in_bytes_per_second": np.full(brokers, UNKNOWN),
        "capacity_out_bytes_per_second": np.full(brokers, UNKNOWN),
        "takes_replicas": np.ones(brokers, dtype=np.bool_),
        "is_live": np.ones(brokers, dtype=np.bool_),
    }
    of_partitions: dict[str, Any] = {
        "topics": ("t",),
        "topic": np.zeros(number, dtype=np.int32),
        "number": np.arange(number),
        "replicas": table,
        "leader": table[:, 0] if width else np.zeros(0, dtype=np.int32),
        "size_bytes": np.ones(number),
        "in_bytes_per_second": np.ones(number),
        "out_bytes_per_second": np.ones(number),
        "min_isr": np.ones(number, dtype=np.int32),
        "in_sync": table >= 0,
    }
    for name, value in fields.items():
        (of_brokers if name in of_brokers else of_partitions)[name] = np.asarray(value) if name != "topics" else value
    return LoadSnapshot(
        cluster_id="c", taken_at_ms=1, brokers=Brokers(**of_brokers), partitions=Partitions(**of_partitions)
    )


def apply_plan(plan: Plan) -> LoadSnapshot:
    """Return the snapshot after the plan: replicas as planned, all in sync, led by the first."""
    old = plan.snapshot.partitions
    width = max(plan.after.shape[1], old.replicas.shape[1])
    replicas = np.full((len(old), width), -1, dtype=np.int32)
    replicas[:, : old.replicas.shape[1]] = old.replicas
    in_sync = np.zeros(replicas.shape, dtype=np.bool_)
    in_sync[:, : old.replicas.shape[1]] = old.in_sync
    leader = old.leader.copy()
    replicas[plan.partition, : plan.after.shape[1]] = plan.after
    in_sync[plan.partition] = replicas[plan.partition] >= 0
    leader[plan.partition] = replicas[plan.partition, 0]
    fields: Mapping[str, Any] = {
        name: getattr(old, name)
        for name in (
            "topics",
            "topic",
            "number",
            "size_bytes",
            "in_bytes_per_second",
            "out_bytes_per_second",
            "min_isr",
        )
    }
    return LoadSnapshot(
        cluster_id="c",
        taken_at_ms=2,
        brokers=plan.snapshot.brokers,
        partitions=Partitions(replicas=replicas, leader=leader, in_sync=in_sync, **fields),
    )


@st.composite
def problems(draw: st.DrawFn, modes: Sequence[Mode] = tuple(Mode)) -> tuple[LoadSnapshot, Goals]:
    """Return a random cluster with goals, also strange ones."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    brokers = draw(st.integers(1, 9))
    partitions = draw(st.sampled_from([0, 1, 2, 5, 20, 60]))
    rack_kind = draw(st.sampled_from(["none", "one", "some", "few", "own"]))
    racks: list[str | None] = {
        "none": [None] * brokers,
        "one": ["a"] * brokers,
        "some": [None if at % 3 == 0 else "ab"[at % 2] for at in range(brokers)],
        "few": ["abc"[int(rng.integers(0, 3))] for _ in range(brokers)],
        "own": [f"r{at}" for at in range(brokers)],
    }[rack_kind]  # type: ignore[assignment]
    most = draw(st.integers(1, min(4, brokers)))
    rows = [rng.permutation(brokers)[: int(rng.integers(1, most + 1))].tolist() for _ in range(partitions)]
    live = rng.random(brokers) > draw(st.sampled_from([0.0, 0.0, 0.3]))
    size = rng.lognormal(0, 2, partitions) * draw(st.sampled_from([0.0, 1.0, 1e12]))
    size[rng.random(partitions) < draw(st.sampled_from([0.0, 0.2, 1.0]))] = UNKNOWN
    width = max((len(row) for row in rows), default=0)
    used = np.array([[at < len(row) for at in range(width)] for row in rows], dtype=np.bool_).reshape(partitions, width)
    capacity = (
        np.nansum(size) * most / brokers * draw(st.sampled_from([UNKNOWN, 1.0, 1.3, 3.0])) * (1 + rng.random(brokers))
    )
    capacity[~(capacity > 0)] = UNKNOWN
    lead = rng.random(partitions) < 0.9
    snapshot = make_cluster(
        rows,
        brokers=brokers,
        racks=racks,
        topics=("t", "u"),
        topic=(rng.random(partitions) < 0.5).astype(np.int32),
        leader=np.array([row[0] if leads else -1 for row, leads in zip(rows, lead, strict=True)], dtype=np.int32),
        size_bytes=size,
        in_bytes_per_second=rng.zipf(1.8, partitions).clip(max=300).astype(np.float64),
        out_bytes_per_second=np.full(partitions, draw(st.sampled_from([UNKNOWN, 0.0, 5.0]))),
        in_sync=used & (rng.random(used.shape) < 0.9),
        is_live=live,
        takes_replicas=rng.random(brokers) < draw(st.sampled_from([0.7, 1.0])),
        capacity_disk_bytes=capacity,
    )
    mode = draw(st.sampled_from(modes))
    named = draw(st.integers(0, brokers - 1))
    percents = st.sampled_from([None, 30, 50, 80]) if capacity[named] > 0 else st.none()
    brokers_of_mode = (named,) if mode in (Mode.DRAIN, Mode.RELIEVE, Mode.EXPAND) else ()
    known_racks = sorted({rack for rack in racks if rack is not None})
    goals = Goals(
        mode=mode,
        brokers=brokers_of_mode,
        excluded_brokers=draw(st.sampled_from([(), (), tuple({brokers - 1} - {*brokers_of_mode})])),
        racks=draw(st.sampled_from([None, None, tuple(known_racks[:2]) or None])),
        below_percent=draw(percents) if mode is Mode.RELIEVE else None,
        replication_factor=draw(st.integers(1, 5)) if mode is Mode.REPLICATION_FACTOR else None,
        topics=draw(st.sampled_from([None, None, ("t",)])),
        seed=draw(st.integers(0, 3)),
        limits=Limits(
            max_moves=draw(st.sampled_from([None, None, 3])),
            max_batch_bytes_per_broker=draw(st.sampled_from([None, 2.0])),
        ),
    )
    return snapshot, goals
