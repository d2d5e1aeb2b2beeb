"""The result file of the benchmark, and the queries of tables and plots.

The file is JSON with a row for each run, so that the times behind each median are kept. It may have further fields that
no table or plot needs.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict

Controller = Literal["kafka", "kontroller"]
TITLES: Final[dict[Controller, str]] = {"kontroller": "Kontroller", "kafka": "Kafka"}
REQUESTS: Final = {"alter_partition": "AlterPartition", "metadata": "Metadata"}
MEMORY_GOAL_MB: Final = 300
LATENCY_GOAL_MS: Final = 100
SEEDS_WRITE_MS: Final = 4
"""Seed 004's estimate of a write to ZooKeeper, in milliseconds."""
Fact = str | int | float | bool | None
Facts = dict[str, Fact | list[Fact] | dict[str, Fact]]


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Run(_Row):
    """One run of a scenario. Processor time and memory are of the controller's process alone.

    The worst stall is the longest event of the queue; `load_before` is the machine's load at the start.
    """

    controller: Controller
    scenario: str
    variant: str = ""
    partitions: int
    seconds: float
    cpu_s: float | None = None
    rss_mb: float | None = None
    peak_rss_mb: float | None = None
    worst_stall_ms: float | None = None
    load_before: float | None = None


class Latency(_Row):
    """The waiting times of requests that arrived during a scenario, in one run."""

    controller: Controller
    scenario: str
    variant: str = ""
    partitions: int
    request: str
    p50_ms: float
    p99_ms: float
    max_ms: float
    count: int


class Failure(_Row):
    """A run that did not reach the expected state."""

    controller: Controller
    scenario: str
    partitions: int
    error: str


class Transfer(_Row):
    """One run over the states of many partitions: `bench.zookeeper_writes` explains batches and windows."""

    op: Literal["write", "read"] = "write"
    client: str = "kontroller"
    way: str
    batch: int
    window: int | None = None
    sessions: int
    partitions: int
    syncs: bool = True
    seconds: float
    cpu_s: float | None = None
    zookeeper_cpu_s: float | None = None


class Result(_Row):
    """A whole result file. Facts about machine and settings are shown unchanged."""

    began: str | None = None
    machine: Facts = {}
    settings: Facts = {}
    zookeeper_writes: Facts = {}
    runs: tuple[Run, ...] = ()
    latency: tuple[Latency, ...] = ()
    failures: tuple[Failure, ...] = ()
    writes: tuple[Transfer, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load a file. Raises `pydantic.ValidationError`, a `ValueError` that names the wrong rows."""
        return cls.model_validate_json(path.read_text())

    def find_runs(self, controller: Controller, scenario: "Scenario") -> list[Run]:
        """Return the runs of a scenario. Kafka has only one kind of failover, which is compared with each of ours."""
        runs = [run for run in self.runs if run.controller == controller and run.scenario == scenario.name]
        same = [run for run in runs if run.variant == scenario.variant]
        return same if same or controller == "kontroller" else runs

    def scenarios(self) -> list["Scenario"]:
        """Return the scenarios with runs of ours: those with goals in their order, then the others in the order of the
        file.
        """
        found = dict.fromkeys((run.scenario, run.variant) for run in self.runs if run.controller == "kontroller")
        known = [(scenario.name, scenario.variant) for scenario in SCENARIOS]
        return [scenario_of(*key) for key in dict.fromkeys([*known, *found]) if key in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario and its goal: a speedup over Kafka, or a number of seconds."""

    name: str
    variant: str = ""
    title: str
    ratio: float | None = None
    seconds: float | None = None

    @property
    def goal(self) -> str:
        wanted = [f"{self.ratio:g}x"] if self.ratio else []
        wanted += [f"≤ {self.seconds:g} s"] if self.seconds else []
        return ", ".join(wanted)


SCENARIOS: Final = (
    Scenario(name="failover", variant="cold", title="failover, cold", ratio=10),
    Scenario(name="failover", variant="hot", title="failover, hot standby", ratio=10, seconds=0.5),
    Scenario(name="failover", variant="again", title="failover, same process again"),
    Scenario(name="broker_death", title="a broker's death", ratio=10),
    Scenario(name="broker_return", variant="after death", title="its return"),
    Scenario(name="controlled_shutdown", title="controlled shutdown", ratio=5),
    Scenario(name="broker_return", variant="after shutdown", title="return after the shutdown"),
    Scenario(name="create", title="creation", ratio=5),
    Scenario(name="reassign", title="reassignment", ratio=5),
    Scenario(name="delete", title="deletion", ratio=5),
)


def scenario_of(name: str, variant: str = "") -> Scenario:
    """Return the scenario with its goals; a scenario without goals gets its name as the title."""
    known = {(scenario.name, scenario.variant): scenario for scenario in SCENARIOS}
    title = name.replace("_", " ") + (f", {variant}" if variant else "")
    return known.get((name, variant)) or Scenario(name=name, variant=variant, title=title)


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def group_by_partitions(runs: Iterable[Run], value: Callable[[Run], float | None]) -> dict[int, list[float]]:
    """Return the measured values by size, smallest first; sizes without a value are left out."""
    found: dict[int, list[float]] = {}
    for run in sorted(runs, key=lambda run: run.partitions):
        measured = value(run)
        if measured is not None:
            found.setdefault(run.partitions, []).append(measured)
    return found


def times(runs: Iterable[Run]) -> dict[int, list[float]]:
    return group_by_partitions(runs, lambda run: run.seconds)


def find_scaled(result: Result) -> list[Scenario]:
    """Return the scenarios that we were measured with at several sizes."""
    return [scenario for scenario in result.scenarios() if len(times(result.find_runs("kontroller", scenario))) > 1]


def waits(result: Result) -> list[Latency]:
    """Return one row for each kind of request and scenario, of all runs at the largest common size, if any.

    Its p50 is the median; its p99 and maximum are the worst.
    """
    found: dict[tuple[str, ...], list[Latency]] = {}
    largest = find_common_size(result.latency) or max((row.partitions for row in result.latency), default=0)
    for row in result.latency:
        if row.partitions == largest:
            found.setdefault((row.scenario, row.variant, row.request, row.controller), []).append(row)
    return [
        rows[0].model_copy(
            update={
                "p50_ms": median(row.p50_ms for row in rows),
                "p99_ms": max(row.p99_ms for row in rows),
                "max_ms": max(row.max_ms for row in rows),
                "count": sum(row.count for row in rows),
            }
        )
        for _, rows in sorted(found.items(), key=lambda item: _place(*item[0]))
    ]


def _place(scenario: str, variant: str, request: str, controller: str) -> tuple[object, ...]:
    """Return a sort key: by scenario, with the controllers one below the other."""
    known = [(one.name, one.variant) for one in SCENARIOS]
    place = known.index((scenario, variant)) if (scenario, variant) in known else len(known)
    return place, scenario, variant, request, controller


def find_common_size(rows: Sequence[Run] | Sequence[Latency]) -> int | None:
    """Return the largest number of partitions with measurements of both controllers."""
    sizes = [{row.partitions for row in rows if row.controller == name} for name in ("kafka", "kontroller")]
    return max(sizes[0] & sizes[1], default=None)
