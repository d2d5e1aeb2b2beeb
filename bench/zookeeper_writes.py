"""The cost of writing the states of 10,000 partitions to ZooKeeper, in each of the proposed ways.

    python -m bench.zookeeper_writes [--quick] [--output FILE]

Kafka's first design of the controller (seed 004) feared 40 s for one broker's death: 10,000 writes of 4 ms. It proposed
ZooKeeper's multi(); a reader proposed parallel sessions. All are measured with a real ZooKeeper and the controller's
session, and sequentially with plain kazoo. Each write is a controller's: a state, conditional on its version, in a
transaction that checks `/controller_epoch`. All states are read back afterwards. `batch` is the number of states in a
transaction or read; `window` the number of these in flight per session (1: sequential, None: all at once, as in the
controller). ZooKeeper runs with and without `forceSync`.
"""

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from kazoo.client import KazooClient
from rich.console import Console

from bench.setup.disk import sync_latency
from bench.setup.jvm import BenchZooKeeper
from bench.setup.processor import cpu_s
from controller_core.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import LeaderAndIsr
from controller_core.zk import codecs, paths
from controller_core.zk.fenced import FencedWriter
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.session import Check, Create, SetData, ZkSession, ZkVersion
from devcluster.clusters.run_folder import RunFolder, run_folder

IN_TOPIC: Final = 50
SESSIONS: Final = (1, 2, 5, 10)
HEAP_MB: Final = 1024
EPOCH_VERSION: Final = ZkVersion(0)
FENCE: Final = Check(path=paths.CONTROLLER_EPOCH, version=EPOCH_VERSION)
TIMEOUT_MS: Final = 30_000

console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to write or to read many znodes."""

    op: str
    way: str
    batch: int
    window: int | None
    client: str = "kontroller"


WAYS: Final = (
    Way(op="write", way="awaited", batch=1, window=1, client="kazoo"),
    Way(op="write", way="awaited", batch=1, window=1),
    Way(op="write", way="pipelined", batch=1, window=10),
    Way(op="write", way="pipelined", batch=1, window=100),
    *(Way(op="write", way="multi, awaited", batch=batch, window=1) for batch in (10, 100, 1000)),
    *(Way(op="write", way="multi, pipelined", batch=batch, window=None) for batch in (10, 100, 1000)),
    Way(op="read", way="awaited", batch=1, window=1, client="kazoo"),
    Way(op="read", way="awaited", batch=1, window=1),
    Way(op="read", way="pipelined", batch=1, window=100),
    *(Way(op="read", way="multi-read, pipelined", batch=batch, window=None) for batch in (10, 100, 1000)),
)


class States:
    """The state znodes. All have the same version, because each run writes all of them."""

    def __init__(self, partitions: int) -> None:
        self.partitions = [
            TopicPartition(topic=TopicName(f"topic-{number // IN_TOPIC:05}"), partition=PartitionId(number % IN_TOPIC))
            for number in range(partitions)
        ]
        self.paths = [paths.partition_state(partition) for partition in self.partitions]
        self.version = ZkVersion(0)

    @property
    def data(self) -> bytes:
        """The content of each znode at the present version."""
        isr = (BrokerId(1), BrokerId(2), BrokerId(3))
        state = LeaderAndIsr(leader=isr[self.version % 3], isr=isr, leader_epoch=LeaderEpoch(self.version))
        return codecs.encode_partition_state(state, ControllerEpoch(1))

    def next_writes(self) -> list[SetData]:
        """Return the writes that bring all znodes to the next version, which becomes the present one."""
        expected, self.version = self.version, ZkVersion(self.version + 1)
        data = self.data
        return [SetData(path=path, data=data, version=expected) for path in self.paths]

    async def create(self, session: ZkSession) -> None:
        """Create all znodes, and their parents."""
        parents = (paths.CONTROLLER_EPOCH, paths.BROKERS, paths.TOPICS)
        await session.transact([Create(path=path) for path in parents])
        writer = FencedWriter(session, EPOCH_VERSION, reconnect_timeout_ms=TIMEOUT_MS)
        topics = dict.fromkeys(partition.topic for partition in self.partitions)
        for above in (paths.topic, paths.partitions):
            await writer.write({topic: [Create(path=above(topic))] for topic in topics})
        made = await writer.write({
            partition: [
                Create(path=paths.partition(partition)),
                Create(path=paths.partition_state(partition), data=self.data),
            ]
            for partition in self.partitions
        })  # fmt: skip
        assert not made.failed

    async def prove(self, session: ZkSession) -> None:
        """Read all znodes back, and check that they are as the last write made them."""
        expected = (self.data, self.version)
        nodes = await session.read_many(self.paths)
        found = [(node.data, node.version) if node else None for node in nodes]
        wrong = [path for path, state in zip(self.paths, found, strict=True) if state != expected]
        if wrong:
            raise SystemExit(f"{len(wrong)} states are not as they were written, {wrong[:3]} among them")


class Clients:
    """Sessions with one ZooKeeper: some of the controller's, and as many of plain kazoo."""

    def __init__(self, own: Sequence[ZkSession], plain: Sequence[KazooClient]) -> None:
        self.own = own
        self.plain = plain

    @classmethod
    @asynccontextmanager
    async def connect(cls, connect: str, count: int) -> AsyncIterator["Clients"]:
        async with AsyncExitStack() as stack:
            own, plain = [], []
            for _ in range(count):
                session = await KazooSession.connect(
                    connect, session_timeout_ms=TIMEOUT_MS, connect_timeout_ms=TIMEOUT_MS
                )
                stack.push_async_callback(session.close)
                own.append(session)
                client = KazooClient(connect, timeout=TIMEOUT_MS / 1000)
                stack.callback(client.close)
                stack.callback(client.stop)
                await asyncio.to_thread(client.start)
                plain.append(client)
            yield cls(own, plain)


async def write(clients: Clients, way: Way, sessions: int, writes: Sequence[SetData]) -> None:
    """Apply all writes, each session a share of them; every one of them must succeed."""
    shares = [writes[number::sessions] for number in range(sessions)]
    if way.client == "kazoo":
        work = [asyncio.to_thread(_write_with_kazoo, *pair) for pair in zip(clients.plain, shares, strict=False)]
    elif way.window is None:
        work = [_write_as_the_controller(*pair, way.batch) for pair in zip(clients.own, shares, strict=False)]
    else:
        work = [
            _send_in_window(
                [[FENCE, *batch] for batch in _batches(share, way.batch)],
                session.transact,
                way.window,
            )
            for session, share in zip(clients.own, shares, strict=False)
        ]
    await asyncio.gather(*work)


async def read(clients: Clients, way: Way, sessions: int, wanted: Sequence[str]) -> None:
    """Read all znodes, each session a share of them."""
    shares = [wanted[number::sessions] for number in range(sessions)]
    if way.client == "kazoo":
        work = [asyncio.to_thread(_read_with_kazoo, *pair) for pair in zip(clients.plain, shares, strict=False)]
    else:
        work = [
            _send_in_window(_batches(share, way.batch), session.read_many, way.window)
            for session, share in zip(clients.own, shares, strict=False)
        ]
    await asyncio.gather(*work)


async def _send_in_window(
    batches: Sequence[Sequence[Any]], request: Callable[[Sequence[Any]], Awaitable[object]], window: int | None
) -> None:
    """Send one request for each batch, in order, at most `window` of them in flight."""
    remaining = iter(batches)

    async def one_after_the_other() -> None:
        for batch in remaining:
            await request(batch)

    await asyncio.gather(*(one_after_the_other() for _ in range(window or len(batches))))


async def _write_as_the_controller(session: ZkSession, writes: Sequence[SetData], batch: int) -> None:
    writer = FencedWriter(session, EPOCH_VERSION, ops_per_transaction=batch + 1, reconnect_timeout_ms=TIMEOUT_MS)
    outcome = await writer.write({write.path: [write] for write in writes})
    assert not outcome.failed


def _write_with_kazoo(client: KazooClient, writes: Sequence[SetData]) -> None:
    for write in writes:
        transaction = client.transaction()
        transaction.check(FENCE.path, FENCE.version)
        transaction.set_data(write.path, write.data, write.version)
        transaction.commit()


def _read_with_kazoo(client: KazooClient, wanted: Sequence[str]) -> None:
    for path in wanted:
        client.get(path)


def _batches(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


async def measure_run(
    server: BenchZooKeeper, way: Way, sessions: int, clients: Clients, states: States
) -> dict[str, Any]:
    """Measure one run: seconds, and the processor time of this process and of ZooKeeper."""
    writes = states.next_writes() if way.op == "write" else []
    began, cpu, server_cpu = time.perf_counter(), time.process_time(), cpu_s(server.process.pid)
    if way.op == "write":
        await write(clients, way, sessions, writes)
    else:
        await read(clients, way, sessions, states.paths)
    seconds = time.perf_counter() - began
    cpu, server_cpu = time.process_time() - cpu, cpu_s(server.process.pid) - server_cpu
    if way.op == "write":
        await states.prove(clients.own[0])
    return {
        **asdict(way),
        "sessions": sessions,
        "partitions": len(states.paths),
        "seconds": round(seconds, 5),
        "cpu_s": round(cpu, 4),
        "zookeeper_cpu_s": round(server_cpu, 2),
    }


async def measure_server(
    folder: RunFolder, *, syncs: bool, partitions: int, runs: int, sessions: Sequence[int], ways: Sequence[Way]
) -> list[dict[str, Any]]:
    """Measure all ways in turn, round after round, after a warm-up in which ZooKeeper's code is compiled.

    Reads are measured with the fewest and the most sessions.
    """
    found = []
    states = States(partitions)
    name = "zookeeper-syncing" if syncs else "zookeeper"
    with BenchZooKeeper(folder, name=name, heap_mb=HEAP_MB, syncs=syncs) as server:
        async with Clients.connect(server.connect, max(sessions)) as clients:
            await states.create(clients.own[0])
            for way in WAYS[-1], WAYS[3], WAYS[3], WAYS[9]:
                await measure_run(server, way, max(sessions), clients, states)
            for run in range(runs):
                for way in ways:
                    for count in sessions if way.op == "write" else (sessions[0], sessions[-1]):
                        row = await measure_run(server, way, count, clients, states)
                        found.append({**row, "syncs": syncs, "run": run})
    return found


def measure(*, partitions: int, runs: int = 3, quick: bool = False) -> dict[str, Any]:
    """Measure all ways on new ZooKeepers: `writes` has a row for each run, `zookeeper_writes` the settings.

    If ZooKeeper does not wait for the disk, one session is enough, and reads are the same. `quick` skips that, and the
    middle numbers of sessions.
    """
    many = (SESSIONS[0], SESSIONS[-1]) if quick else SESSIONS
    writes = [way for way in WAYS if way.op == "write"]
    servers = [(True, many, WAYS)] if quick else [(True, many, WAYS), (False, SESSIONS[:1], writes)]
    rows = []
    with run_folder("zookeeper-writes") as folder:
        disk = sync_latency(folder.path)
        for syncs, sessions, ways in servers:
            rows += asyncio.run(
                measure_server(folder, syncs=syncs, partitions=partitions, runs=runs, sessions=sessions, ways=ways)
            )
    settings = {"partitions": partitions, "runs": runs, "zookeeper_heap_mb": HEAP_MB, "disk_sync": disk}
    return {"zookeeper_writes": settings, "writes": rows}


def main(
    quick: Annotated[bool, typer.Option(help="Use 1,000 partitions instead of 10,000, and fewer ways")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Number of measurements of each way")] = 3,
    output: Annotated[Path | None, typer.Option(help="File for the result, as JSON")] = None,
) -> None:
    """Measure, print the medians, and save all runs."""
    result = measure(partitions=1_000 if quick else 10_000, runs=runs, quick=quick)
    console.print(result["zookeeper_writes"])
    kinds: dict[tuple[Any, ...], list[float]] = {}
    for row in result["writes"]:
        kind = (row["syncs"], row["op"], row["client"], row["way"], row["batch"], row["window"], row["sessions"])
        kinds.setdefault(kind, []).append(row["seconds"])
    for kind, seconds in kinds.items():
        console.print(*kind, f"min {min(seconds):.3f} s, median {statistics.median(seconds):.3f} s", sep="\t")
    if output:
        output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
