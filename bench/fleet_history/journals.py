"""The journals of a fleet, as folders of segments: one for each cluster, written by a process for each core."""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.fleet_history.cluster import PaperCluster, Shape, flaws_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The size of the journals."""

    records: int
    journal_bytes: int


def write_fleet(folder: Path, clusters: int, shape: Shape) -> Written:
    """Write the journals of a fleet. Raises OSError."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        written = list(pool.map(partial(_write, folder, shape), range(clusters), chunksize=5))
    return _sum(written)


def _write(folder: Path, shape: Shape, number: int) -> Written:
    cluster = PaperCluster(number, shape, flaws_of(number, shape))
    journal = folder / cluster.cluster_id
    journal.mkdir(parents=True)
    written = []
    for name, content in cluster.segments():
        (journal / name).write_bytes(content)
        written.append(Written(records=content.count(b"\n"), journal_bytes=len(content)))
    return _sum(written)


def _sum(parts: Sequence[Written]) -> Written:
    return Written(records=sum(part.records for part in parts), journal_bytes=sum(part.journal_bytes for part in parts))
