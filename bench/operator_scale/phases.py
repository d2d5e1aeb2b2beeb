"""The phases of the measurement, sequentially on one cluster: from nothing, a restart, resyncs, an outage.

Each phase knows from the outside when it is over: the objects are Ready, the operator's metrics count a reconciliation
of all of them, and the servers' counters have the writes. During two of the phases a user changes one topic after
another.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from statistics import median
from time import monotonic
from typing import Any, Final

from bench.operator_scale.counters import Written, count_writes, looks, memory_mb
from bench.operator_scale.surroundings import NAMESPACE, Surroundings, topic
from bench.operator_scale.watching import Staleness, Watching
from controller_core.zk import paths
from controller_operator.kubernetes.kubernetes_objects import KubernetesObjects
from controller_operator.kubernetes.object_store import Key
from controller_operator.resources import KafkaTopic
from devcluster.clusters.kontroller import OperatorProcess

FROM_NOTHING: Final = "from nothing until all are Ready"
RESTART: Final = "restart"
RESYNC: Final = "resync"
OUTAGE: Final = "outage of ZooKeeper"
_CREATED_AT_ONCE: Final = 32
_BETWEEN_CHANGES_S: Final = 1.0
_BETWEEN_LOOKS_S: Final = 0.25
_QUIET_S: Final = 5.0
_IDLE_S: Final = 1.0
_SHORTEST_RESYNC_S: Final = 5.0
_TOPICS_FOR_A_SECOND: Final = 200
"""Topics for each second of the resync interval."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a measurement. An outage of 0 s is skipped."""

    topics: int
    partitions: int
    outage_s: float
    deadline_s: float

    @property
    def resync_s(self) -> float:
        return max(_SHORTEST_RESYNC_S, self.topics / _TOPICS_FOR_A_SECOND)


@dataclass(slots=True, kw_only=True)
class Phase:
    """One measurement. `memory_mb` is the operator's at its end, `most_memory_mb` its maximum."""

    name: str
    began_s: float = field(default_factory=monotonic)
    seconds: float = 0.0
    processor_s: float = 0.0
    memory_mb: float = 0.0
    most_memory_mb: float = 0.0
    kubernetes_writes: dict[str, int] = field(default_factory=dict)
    zookeeper_writes: int = 0
    changes_s: list[float] = field(default_factory=list)
    """The seconds until each change of a user was Ready."""
    oldest_status_s: float | None = None

    def record(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "began_s"}

    def __str__(self) -> str:
        writes = ", ".join(f"{number} {what}" for what, number in sorted(self.kubernetes_writes.items())) or "none"
        text = (
            f"{self.name}: {self.seconds:.1f} s, {self.processor_s:.1f} s of a processor, {self.memory_mb:.0f} MB (most "
            f"{self.most_memory_mb:.0f}); writes to Kubernetes: {writes}; to ZooKeeper: {self.zookeeper_writes}"
        )
        if self.changes_s:
            worst = f"median {median(self.changes_s):.2f} s, worst {max(self.changes_s):.2f} s"
            text += f"; {len(self.changes_s)} changes of a user: {worst}"
        return text if self.oldest_status_s is None else f"{text}; oldest KafkaCluster {self.oldest_status_s:.1f} s"


class Phases:
    """Measures one operator after the other in these surroundings."""

    def __init__(
        self, around: Surroundings, api: KubernetesObjects, watching: Watching, sizes: Sizes, say: Say
    ) -> None:
        self._around = around
        self._api = api
        self._watching = watching
        self._sizes = sizes
        self._say = say
        self._retention = count(90_000_000)
        self._names: list[str] = []

    async def all(self) -> list[Phase]:
        """Run every phase. Raises TimeoutError if one misses its deadline."""
        await self._create_objects()
        first = self._around.operator(name="operator", resync_interval_s=24 * 3600)
        try:
            found = [await self._measure_creation(first)]
            await self._quiet()
            await asyncio.to_thread(
                first.process.stop
            )  # a graceful end, so that its session ends before the next phase
        finally:
            await asyncio.to_thread(first.close)
        second = self._around.operator(name="operator-again", resync_interval_s=self._sizes.resync_s)
        try:
            found.append(await self._measure_restart(second))
            found.append(await self._resync(second, RESYNC, changes=False))
            found.append(await self._resync(second, "resync with changes", changes=True))
            if self._sizes.outage_s:
                found.append(await self._outage(second))
        finally:
            await asyncio.to_thread(second.close)
        return found

    async def _create_objects(self) -> None:
        began = monotonic()
        numbers = iter(range(self._sizes.topics))

        async def create() -> None:
            for number in numbers:
                self._names.append((await self._api.create(topic(number, self._sizes.partitions)))["metadata"]["name"])

        await asyncio.gather(*(create() for _ in range(_CREATED_AT_ONCE)))
        self._say(f"{self._sizes.topics} KafkaTopics created in {monotonic() - began:.0f} s, without an operator")

    async def _measure_creation(self, operator: OperatorProcess) -> Phase:
        """Measure from no topic until all are Ready and counted by the KafkaCluster."""
        watching, wanted = self._watching, self._sizes.topics
        async with self._measure_phase(FROM_NOTHING, operator, starts=True) as phase:
            changes = asyncio.create_task(self._change_one_after_the_other(phase, lambda: len(watching.ready) < wanted))
            stale = asyncio.create_task(self._watch_staleness(phase))
            await watching.wait_until(lambda: len(watching.ready) >= wanted, self._sizes.deadline_s)
            await changes
            await watching.wait_until(lambda: watching.said_topics == wanted, self._sizes.deadline_s)
            stale.cancel()
        return phase

    async def _measure_restart(self, operator: OperatorProcess) -> Phase:
        async with self._measure_phase(RESTART, operator, starts=True) as phase:
            await self._wait_for_looks(operator, self._sizes.topics)
        return phase

    async def _resync(self, operator: OperatorProcess, name: str, *, changes: bool) -> Phase:
        """Measure another reconciliation of all topics, from its first one on."""
        async with self._measure_phase(name, operator) as phase:
            before = await self._looks_of_one_at_rest(operator)
            await self._wait_for_looks(operator, before + 1)
            phase.began_s = monotonic()
            looked = asyncio.create_task(self._wait_for_looks(operator, before + self._sizes.topics))
            if changes:
                await self._change_one_after_the_other(phase, lambda: not looked.done())
            await looked
        return phase

    async def _outage(self, operator: OperatorProcess) -> Phase:
        """Measure an outage of ZooKeeper, until nothing has been written for a while after it."""
        async with self._measure_phase(OUTAGE, operator) as phase:
            self._around.zookeeper.process.send_signal(signal.SIGSTOP)
            try:
                await asyncio.sleep(self._sizes.outage_s)
            finally:
                self._around.zookeeper.process.send_signal(signal.SIGCONT)
            await self._quiet()
        return phase

    async def _quiet(self) -> None:
        """Wait until nothing was written to Kubernetes for a while."""
        last, since = await self._count_writes(), monotonic()
        while monotonic() - since < _QUIET_S:
            await asyncio.sleep(_BETWEEN_LOOKS_S)
            now = await self._count_writes()
            if now.kubernetes != last.kubernetes:
                last, since = now, monotonic()

    async def _looks_of_one_at_rest(self, operator: OperatorProcess) -> int:
        """Return the number of the operator's reconciliations once it stops growing."""
        last = -1
        while (now := await asyncio.to_thread(looks, operator.metrics_port)) != last:
            last = now
            await asyncio.sleep(_IDLE_S)
        return last

    async def _wait_for_looks(self, operator: OperatorProcess, times: int) -> None:
        async with asyncio.timeout(self._sizes.deadline_s):
            while await asyncio.to_thread(looks, operator.metrics_port) < times:  # noqa: ASYNC110 - a process is asked
                await asyncio.sleep(_BETWEEN_LOOKS_S)

    async def _change_one_after_the_other(self, phase: Phase, goes_on: Callable[[], bool]) -> None:
        """Change a Ready topic as a user, wait until it is Ready again, and go on with another one."""
        await self._watching.wait_until(lambda: bool(self._watching.ready), self._sizes.deadline_s)
        for number in count():
            if not goes_on():
                return
            ready = list(self._watching.ready)
            phase.changes_s.append(await self._change(ready[number * 7919 % len(ready)]))
            await asyncio.sleep(_BETWEEN_CHANGES_S)

    async def _change(self, name: str) -> float:
        began = monotonic()
        patch = {"config": {"retention.ms": str(next(self._retention))}}
        changed = await self._api.patch_spec(Key(KafkaTopic.definition.kind, NAMESPACE, name), patch)
        generation = changed["metadata"]["generation"]
        await self._watching.wait_until(lambda: self._watching.ready.get(name, 0) >= generation, self._sizes.deadline_s)
        return monotonic() - began

    async def _watch_staleness(self, phase: Phase) -> None:
        staleness = Staleness()
        with self._around.zookeeper.client() as client:
            while True:
                stat = await asyncio.to_thread(client.exists, paths.TOPICS)
                staleness.look(monotonic(), stat.numChildren, self._watching.said_topics)
                phase.oldest_status_s = staleness.worst_s
                await asyncio.sleep(_BETWEEN_LOOKS_S)

    async def _count_writes(self) -> Written:
        return await asyncio.to_thread(count_writes, self._around)

    @asynccontextmanager
    async def _measure_phase(
        self, name: str, operator: OperatorProcess, *, starts: bool = False
    ) -> AsyncIterator[Phase]:
        phase = Phase(name=name)
        before, used_s = await self._count_writes(), 0.0 if starts else _processor_s(operator)
        phase.began_s = monotonic()
        if starts:
            await asyncio.to_thread(operator.start)
        yield phase
        phase.seconds = monotonic() - phase.began_s
        phase.processor_s = _processor_s(operator) - used_s
        phase.memory_mb, phase.most_memory_mb = memory_mb(operator.process.pid)
        since = (await self._count_writes()).subtract(before)
        phase.zookeeper_writes = since.zookeeper
        phase.kubernetes_writes = dict(since.kubernetes)
        self._say(str(phase))


def _processor_s(operator: OperatorProcess) -> float:
    with open(f"/proc/{operator.process.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
