"""One life of one controller: a fresh ZooKeeper with the data, a fleet, the controller, and its measurements.

A measurement ends when the brokers have the expected state, nothing new has come for a while, and ZooKeeper's content
agrees with the requests that every broker received. The measured time ends with the last news, so the wait does not
count.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from bench import evaluation
from bench.controllers import CONTROLLERS, MeasuredController
from bench.fleet import Comparison, Fleet, Look, Request
from bench.setup import dataset
from bench.setup.jvm import BenchZooKeeper
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.processes import wait_until

Record = dict[str, Any]

QUIET_US: Final = 1_000_000
"""The time without news after which a measurement ends."""
_LOOK_INTERVAL_S: Final = 3.0
"""The interval of looks at the brokers' state while requests keep coming, because a look costs processor time."""
_POLL_S: Final = 0.05
_PROBE_INTERVAL_MS: Final = 50
_IDLE_POLLS: Final = 40
"""Polls of `wait_until`, which are 50 ms apart."""
_IDLE_CPU_S: Final = 0.1


class OutcomeError(Exception):
    """A controller did not reach the expected state in time; the message says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The sizes of a measurement. `changed`: the number of partitions that are created, reassigned and deleted at once."""

    partitions: int
    changed: int
    deadline_s: float
    zookeeper_heap_mb: int
    fleet_heap_mb: int


@dataclass(slots=True, kw_only=True)
class Settled:
    """The end of a measurement."""

    requests: list[Request]
    comparison: Comparison


@dataclass(slots=True, kw_only=True)
class Stage:
    """The servers that a scenario uses. `controller` is the active one."""

    folder: RunFolder
    kind: str
    settings: Settings
    zookeeper: BenchZooKeeper
    fleet: Fleet
    controller: MeasuredController
    live: set[int] = field(default_factory=lambda: set(dataset.BROKERS))
    partitions: int = 0
    started: list[MeasuredController] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    latencies: list[Record] = field(default_factory=list)

    def another_controller(self) -> MeasuredController:
        """Add a process of the same kind without starting it; it ends with the stage."""
        one = CONTROLLERS[self.kind](self.folder, self.zookeeper.connect, number=len(self.started))
        self.started.append(one)
        return one

    def settle(
        self,
        is_known: Callable[[Look], bool],
        is_right: Callable[[Comparison], bool],
        *,
        since_us: int | None = None,
        leaving: int | None = None,
    ) -> Settled:
        """Wait for the end of a measurement that began now, or at `since_us`. `leaving`: a broker that is shut down.

        Raises `OutcomeError` after the deadline.
        """
        requests: list[Request] = []
        looked_us = since_us or now_us()
        deadline = time.monotonic() + self.settings.deadline_s
        comparison: Comparison | None = None
        while time.monotonic() < deadline:
            self._wait_for_quiet(looked_us)
            looked_us = now_us()
            look = self.fleet.look()
            requests += look.requests
            last = evaluation.last_news_us(requests) or 0
            if is_known(look) and now_us() - last > QUIET_US:
                comparison = self.fleet.compare(leaving=leaving)
                if is_right(comparison) and comparison.differences == 0:
                    return Settled(requests=requests, comparison=comparison)
        raise OutcomeError(
            f"{self.kind} did not come to an end in {self.settings.deadline_s:.0f} s: "
            + (f"ZooKeeper and fleet: {comparison}" if comparison else f"{look.brokers}, {look.alter_partition}")
        )

    def controller_since_us(self) -> int | None:
        """Return the creation time of the present `/controller`; None if there is none."""
        with self.zookeeper.client() as client:
            stat = client.exists("/controller")
            return None if stat is None else int(stat.ctime) * 1000

    def add(
        self, scenario: str, variant: str, *, began_us: int, settled: Settled, cost: "Cost", also_us: int = 0
    ) -> None:
        """Record one measurement. `also_us`: the time of another event that must have happened."""
        sent = evaluation.traffic(settled.requests)
        self.records.append(
            {
                "controller": self.kind,
                "scenario": scenario,
                "variant": variant,
                "partitions": self.settings.partitions,
                "seconds": round(evaluation.seconds(began_us, settled.requests, also_us), 4),
                "milestones": evaluation.milestones(began_us, settled.requests),
                "requests": sent.requests,
                "entries": sent.partitions,
                "megabytes": round(sent.megabytes, 2),
                **cost.record,
            }
        )

    def _wait_for_quiet(self, looked_us: int) -> None:
        """Wait until something came since the last look and nothing follows, or until the next look is due anyway."""
        began = time.monotonic()
        while time.monotonic() - began < _LOOK_INTERVAL_S:
            time.sleep(_POLL_S)
            if looked_us < self.fleet.last_request_us() < now_us() - QUIET_US:
                return


@dataclass(slots=True, kw_only=True)
class Cost:
    """A controller's costs of a measurement, filled when the block of `measure_cost` ends."""

    record: Record = field(default_factory=dict)


@contextmanager
def measure_cost(controller: MeasuredController, *, from_its_start: bool = False) -> Iterator[Cost]:
    """Measure the processor seconds and the longest event of the block, and the memory at its end."""
    cost = Cost()
    cpu_s = 0.0 if from_its_start else controller.cpu_s()
    before = {} if from_its_start else controller.event_times()
    yield cost
    memory = controller.memory()
    after = controller.event_times()
    cost.record = {
        "cpu_s": round(controller.cpu_s() - cpu_s, 3),
        "rss_mb": round(memory.now_mb, 1),
        "peak_rss_mb": round(memory.most_mb, 1),
        "worst_stall_ms": _worst_stall_ms(before, after),
    }


def _worst_stall_ms(
    before: Mapping[str, evaluation.Distribution], after: Mapping[str, evaluation.Distribution]
) -> float | None:
    values = [evaluation.worst(before.get(kind, evaluation.Distribution()), one) for kind, one in after.items()]
    return round(max(values) * 1000, 1) if values else None


@contextmanager
def probe(stage: Stage, scenario: str) -> Iterator[None]:
    """Request an ISR change and metadata from the controller at a fixed rate while the block runs."""
    stage.fleet.start_probe(interval_ms=_PROBE_INTERVAL_MS)
    try:
        yield
    finally:
        probed = stage.fleet.stop_probe()
    for request, sample in (("alter_partition", probed.alter_partition), ("metadata", probed.metadata)):
        stage.latencies.append(
            {
                "controller": stage.kind,
                "scenario": scenario,
                "partitions": stage.settings.partitions,
                "request": request,
                **evaluation.latency(sample),
            }
        )


@contextmanager
def on_stage(folder: RunFolder, kind: str, settings: Settings) -> Iterator[Stage]:
    """Start ZooKeeper, write the data, start the fleet; all of it, and all controllers, end with the block."""
    with (
        BenchZooKeeper(folder, heap_mb=settings.zookeeper_heap_mb) as zookeeper,
        Fleet(folder, zookeeper.connect, heap_mb=settings.fleet_heap_mb) as fleet,
    ):
        fleet.write(dataset.dataset(settings.partitions))
        fleet.start_brokers()
        first = CONTROLLERS[kind](folder, zookeeper.connect, number=0)
        stage = Stage(
            folder=folder,
            kind=kind,
            settings=settings,
            zookeeper=zookeeper,
            fleet=fleet,
            controller=first,
            partitions=settings.partitions,
            started=[first],
        )
        try:
            yield stage
        finally:
            for controller in stage.started:
                controller.close()


def wait_for_controller(stage: Stage, *, after_us: int) -> int:
    """Wait until a controller takes the role, at this time or later; return when. Raises `ConditionTimeoutError`."""
    since: list[int | None] = [None]

    def is_taken() -> bool:
        since[0] = stage.controller_since_us()
        return since[0] is not None and since[0] >= after_us

    wait_until(is_taken, "somebody became the controller", silence_s=120)
    assert since[0] is not None
    return since[0]


def wait_until_idle(controller: MeasuredController) -> None:
    """Wait until a process uses almost no processor time. Raises `ConditionTimeoutError`."""
    spent: list[float] = []

    def is_idle() -> bool:
        spent.append(controller.cpu_s())
        return len(spent) > _IDLE_POLLS and spent[-1] - spent[-1 - _IDLE_POLLS] <= _IDLE_CPU_S

    wait_until(is_idle, f"process {controller.pid} has nothing to do", silence_s=120)


def now_us() -> int:
    """Return the time of day by the fleet's clock."""
    return time.time_ns() // 1000
