"""A small result of a benchmark."""

import pytest

from bench.report.result import Result
from tests.unit.bench.rows import run, transfer

SECONDS = {"kafka": (12.0, 14.0, 13.0), "kontroller": (1.0, 1.5, 1.3)}


@pytest.fixture
def result() -> Result:
    runs = [
        run(name, size, seconds * size / 100_000, rss_mb=200.0)
        for name, all_seconds in SECONDS.items()
        for size in (10_000, 100_000)
        for seconds in all_seconds
    ]
    alone = run("kontroller", 1_000_000, 20.0, scenario="failover", variant="hot")
    latency = {
        "controller": "kontroller", "scenario": "broker_death", "request": "alter_partition", "partitions": 100_000,
        "p50_ms": 2.0, "p99_ms": 30.0, "max_ms": 45.25, "count": 1200,
    }  # fmt: skip
    writes = [transfer("awaited", sessions, 20 / sessions, cpu_s=9.5) for sessions in (1, 1, 1, 10)]
    writes += [transfer("multi-read", 1, 0.02, op="read", window=None), transfer("awaited", 1, 4.0, syncs=False)]
    machine = {"cpus": 2, "memory_mb": 24_000, "kernel": "6.1", "java": {"heap_mb": 1024}, "kinds": ["a", "b"]}
    latencies = [latency, {**latency, "p50_ms": 1.0, "p99_ms": 50.0, "count": 800}]
    return Result.model_validate({
        "machine": machine, "runs": [*runs, alone], "latency": latencies, "writes": writes, "of_no_concern": 1,
    })  # fmt: skip
