"""The journal's cost for a controller: takeovers and a broker's death, with and without it, in turns, in one process.

    python -m bench.journal_cost [PARTITIONS] [ROUNDS]

The production controller runs over ZooKeeper and brokers in memory. No network hides the journal's share, but the
simulation takes its time in the same interpreter. The journal's thread writes to a real directory.
"""

import asyncio
import logging
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import structlog

from controller_core.controller.recording.term_journal import copy_state
from controller_core.controller.term.term import Term
from controller_core.journal.batches import Context, Snapshot
from controller_core.journal.fold import fold
from controller_core.journal.reader import read
from controller_core.journal.segments import SegmentFiles
from controller_core.journal.writer import JournalWriter
from simulation.cluster import Cluster

BROKERS = 6
PARTITIONS_OF_A_TOPIC = 100


async def populate_cluster(partitions: int) -> Cluster:
    """Return a cluster at rest, after a controller created its topics and stopped."""
    cluster = Cluster()
    cluster.start_brokers(*range(1, BROKERS + 1))
    first = await cluster.serve()
    replicas = [[(index + step) % BROKERS + 1 for step in range(3)] for index in range(PARTITIONS_OF_A_TOPIC)]
    for number in range(partitions // PARTITIONS_OF_A_TOPIC):
        cluster.create_topic(f"topic-{number}", *replicas)
    await cluster.settle()
    await first.stop()
    return cluster


async def measure(partitions: int, directory: Path | None) -> dict[str, float]:
    """Return the processor seconds, of all threads, of a takeover, a broker's death and one more snapshot."""
    cluster = await populate_cluster(partitions)
    writer = JournalWriter(SegmentFiles(directory, segment_bytes=64 << 20)) if directory else None
    cluster.journal = writer
    found: dict[str, float] = {}
    began = time.process_time()
    process = await cluster.serve()
    await worst_wait(writer)
    found["takeover"] = time.process_time() - began
    began = time.process_time()
    cluster.kill_broker(1)
    await cluster.settle()
    await worst_wait(writer)
    found["broker's death"] = time.process_time() - began
    if writer and directory:
        found.update(await cost_of_a_snapshot(writer, process.term))
        await cluster.close()
        assert writer.close(60)
        found.update(proven(writer, directory))
    else:
        await cluster.close()
    return found


async def cost_of_a_snapshot(writer: JournalWriter, term: Term) -> dict[str, float]:
    """Return the costs of a snapshot: the copy runs in the event loop, the write in a thread that shares the
    interpreter.
    """
    context = Context(
        cluster_id=None,
        controller_id=term.identity.id,
        controller_epoch=term.identity.epoch,
        event_time_us=0,
        cause="bench",
        correlation_id="",
    )
    began, spent = time.thread_time(), time.process_time()
    copy = copy_state(term.state)
    copied = time.thread_time() - began
    writer.append(Snapshot(context=context, state=copy))
    worst = await worst_wait(writer)
    return {
        "snapshot: copy": copied,
        "snapshot: all of it": time.process_time() - spent,
        "snapshot: longest wait": worst,
    }


def proven(writer: JournalWriter, directory: Path) -> dict[str, float]:
    """Check that the journal is complete and consistent, and return its size."""
    folded = fold(read(directory))
    assert writer.counts.dropped == 0
    assert folded.findings == []
    return {"records": folded.records, "MiB": writer.counts.written_bytes / 2**20}


async def worst_wait(writer: JournalWriter | None) -> float:
    """Wait until everything is written, and return the longest turn of the event loop, whose own share is 1 ms."""
    worst = 0.0
    while writer and not writer.is_idle:
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - began)
    return worst


async def main(partitions: int, rounds: int) -> None:
    results: defaultdict[tuple[str, bool], list[float]] = defaultdict(list)
    for _ in range(rounds):
        for is_kept in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                found = await measure(partitions, Path(folder) if is_kept else None)
            sys.stderr.write(f"{'kept' if is_kept else 'none'}: {found}\n")
            for name, value in found.items():
                results[name, is_kept].append(value)
    for (name, is_kept), values in sorted(results.items()):
        each = " ".join(f"{value:.4f}" for value in values)
        sys.stdout.write(
            f"{name:22} {'kept' if is_kept else 'none'}  median {statistics.median(values):11.4f}  ({each})\n"
        )
    for name in ("takeover", "broker's death"):
        ratio = statistics.median(results[name, True]) / statistics.median(results[name, False])
        sys.stdout.write(f"{name:22} kept / none = {ratio:.3f}\n")


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    given = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(main(*(given + [100_000, 3][len(given) :])))
