"""What a benchmark has measured: the shape of its result file, and the questions that tables and plots ask of it.

The file is JSON with a row for each run, so that a median never stands without the times that it is of. What a table or
plot does not need may stand in it, too.
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
"""What seed 004 takes a write to ZooKeeper to last."""
Fact = str | int | float | bool | None
Facts = dict[str, Fact | list[Fact] | dict[str, Fact]]


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Run(_Row):
    """One run of a scenario. Processor time and memory are of the controller's process alone.

    The longest event is how long the queue stood still at most, `load_before` how many others wanted the processors."""

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
    """How long requests waited that arrived while a scenario ran, in one run."""

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
    """A run that did not bring about what it should."""

    controller: Controller
    scenario: str
    partitions: int
    error: str


class Transfer(_Row):
    """One run over the states of many partitions: `bench.zookeeper_writes` says what a batch and a window are."""

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
    """All of a result file. Facts about machine and settings are shown as they are written."""

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
        """Raises `pydantic.ValidationError`, a `ValueError` that says which row is none."""
        return cls.model_validate_json(path.read_text())

    def of(self, controller: Controller, scenario: "Scenario") -> list[Run]:
        """The runs of a scenario. Kafka has one way to fail over, which stands against each of ours."""
        runs = [run for run in self.runs if run.controller == controller and run.scenario == scenario.name]
        same = [run for run in runs if run.variant == scenario.variant]
        return same if same or controller == "kontroller" else runs

    def scenarios(self) -> list["Scenario"]:
        """What we were measured in: in the order of the goals, then what has none in the order of the file."""
        found = dict.fromkeys((run.scenario, run.variant) for run in self.runs if run.controller == "kontroller")
        known = [(scenario.name, scenario.variant) for scenario in SCENARIOS]
        return [scenario_of(*key) for key in dict.fromkeys([*known, *found]) if key in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is measured, and what was to be reached: so many times faster than Kafka, or so many seconds."""

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
    """The scenario with its goals; one that has none is called by its name."""
    known = {(scenario.name, scenario.variant): scenario for scenario in SCENARIOS}
    title = name.replace("_", " ") + (f", {variant}" if variant else "")
    return known.get((name, variant)) or Scenario(name=name, variant=variant, title=title)


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def by_partitions(runs: Iterable[Run], value: Callable[[Run], float | None]) -> dict[int, list[float]]:
    """What was measured at each size, smallest first; sizes without a value are left out."""
    found: dict[int, list[float]] = {}
    for run in sorted(runs, key=lambda run: run.partitions):
        measured = value(run)
        if measured is not None:
            found.setdefault(run.partitions, []).append(measured)
    return found


def times(runs: Iterable[Run]) -> dict[int, list[float]]:
    return by_partitions(runs, lambda run: run.seconds)


def scaled(result: Result) -> list[Scenario]:
    """What we were measured in at several sizes."""
    return [scenario for scenario in result.scenarios() if len(times(result.of("kontroller", scenario))) > 1]


def waits(result: Result) -> list[Latency]:
    """One row for each kind of request and scenario, of all runs at the largest size that both were measured with, if any.

    Its p50 is the middle one, its p99 and maximum are the worst."""
    found: dict[tuple[str, ...], list[Latency]] = {}
    largest = compared_size(result.latency) or max((row.partitions for row in result.latency), default=0)
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
    """Sorts by scenario, and shows the controllers one below the other."""
    known = [(one.name, one.variant) for one in SCENARIOS]
    place = known.index((scenario, variant)) if (scenario, variant) in known else len(known)
    return place, scenario, variant, request, controller


def compared_size(rows: Sequence[Run] | Sequence[Latency]) -> int | None:
    """The largest number of partitions that both controllers were measured with."""
    sizes = [{row.partitions for row in rows if row.controller == name} for name in ("kafka", "kontroller")]
    return max(sizes[0] & sizes[1], default=None)
