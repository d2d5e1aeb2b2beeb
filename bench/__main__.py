"""`make bench`: our controller and Kafka's own, one after the other, on the same data and against the same fleet.

A run is one life of each controller: a fresh ZooKeeper with the data, six stub brokers, and all scenarios in order.
Results are saved after every scenario, so that an interrupted run loses nothing.
"""

import os
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from bench.controllers import CONTROLLERS
from bench.fleet import FleetError
from bench.report.page import write_docs, write_report
from bench.scenarios import SCENARIOS
from bench.setup import dataset
from bench.setup.jvm import KAFKA_HEAP_MB
from bench.setup.results_file import ResultsFile
from bench.stage import OutcomeError, Settings, Stage, on_stage
from bench.zookeeper_writes import measure as measure_writes
from devcluster.clusters.run_folder import run_folder
from devcluster.running.processes import ConditionTimeoutError, StartError, exit_on_sigterm

RESULTS: Final = Path(__file__).parent / "results"
_SCALES: Final = (10_000, 30_000, 100_000, 300_000)
_SCALED: Final = ("cold", "broker_death", "hot")
_MILLION: Final = 1_000_000
_WRITTEN: Final = 10_000
"""The number of states that each way to write is measured with."""
_TAKEOVER: Final = ("cold", "hot")

_FAILURES: Final = (OutcomeError, FleetError, StartError, ConditionTimeoutError, OSError)

console = Console(highlight=False, stderr=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def settings_for(partitions: int) -> Settings:
    """Return the settings for a number of partitions: more partitions need more memory for ZooKeeper and the fleet."""
    return Settings(
        partitions=partitions,
        changed=10_000 if partitions >= 50_000 else max(50, partitions // 500 * 50),
        deadline_s=min(1200.0, max(120.0, partitions / 100)),
        zookeeper_heap_mb=1024 if partitions <= 100_000 else 1024 + partitions // 500,
        fleet_heap_mb=1536 if partitions <= 100_000 else 1536 + partitions // 400,
    )


class Results(ResultsFile):
    """The results so far, and their file."""

    def __init__(self, file: Path, settings: dict[str, Any]) -> None:
        super().__init__(file, settings, "runs", "latency", "failures")

    def take(self, stage: Stage, **more: object) -> None:
        """Take the results of a scenario from the stage, print them, and write the file."""
        for record in stage.records:
            console.print(f" {record['seconds']:.2f} s ({record['cpu_s']:.2f} CPU)", end="", soft_wrap=True)
        console.print()
        self.content["runs"] += [record | more for record in stage.records]
        self.content["latency"] += [record | more for record in stage.latencies]
        stage.records, stage.latencies = [], []
        self.keep()

    def record_failure(self, **failure: object) -> None:
        """Record a run that did not finish, and write the file."""
        self.add("failures", failure)


def _facts(partitions: int, runs: int, scenarios: Iterable[str]) -> dict[str, Any]:
    settings = settings_for(partitions)
    return {
        "partitions": partitions,
        "created, reassigned, deleted at once": settings.changed,
        "replicas of each": 3,
        "stub brokers": len(dataset.BROKERS),
        "runs": runs,
        "scenarios": ", ".join(scenarios),
        "zookeeper heap (MB)": settings.zookeeper_heap_mb,
        "zookeeper waits for the disk": False,
        "fleet heap (MB)": settings.fleet_heap_mb,
        "kafka heap (MB)": KAFKA_HEAP_MB,
    }


def play(results: Results, kind: str, partitions: int, scenarios: Iterable[str], run: int) -> None:
    """Run one life of one controller; a failed scenario ends it, and is recorded."""
    load = round(os.getloadavg()[0], 2)
    under_way = "start"
    try:
        with run_folder("bench") as folder, on_stage(folder, kind, settings_for(partitions)) as stage:
            for under_way in scenarios:
                console.print(f"  {kind} {partitions} run {run}: {under_way} ...", end="", soft_wrap=True)
                SCENARIOS[under_way](stage)
                results.take(stage, run=run, load_before=load)
    except _FAILURES as error:
        console.print(f" failed: {error}", soft_wrap=True)
        results.record_failure(controller=kind, partitions=partitions, scenario=under_way, run=run, error=str(error))


def print_summary(results: Results) -> None:
    """Print the shortest and the median time of each scenario, and the speedup over Kafka."""
    found: dict[tuple[str, str, int], dict[str, list[float]]] = {}
    for record in results.content["runs"]:
        key = record["scenario"], record["variant"], record["partitions"]
        found.setdefault(key, {}).setdefault(record["controller"], []).append(record["seconds"])
    for (scenario, variant, partitions), times in found.items():
        parts = [f"{kind} {min(each):.2f} / {statistics.median(each):.2f} s" for kind, each in times.items()]
        if len(times) == len(CONTROLLERS):
            kafka, ours = (statistics.median(times[kind]) for kind in ("kafka", "kontroller"))
            parts.append(f"{kafka / ours:.1f} times")
        console.print(f"{partitions:>8} {scenario} {variant}: {', '.join(parts)}", soft_wrap=True)


@app.command()
def main(
    partitions: Annotated[int, typer.Option(help="Number of partitions, in topics of 50.")] = 100_000,
    runs: Annotated[int, typer.Option(help="Number of runs of each controller.")] = 3,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Run only these scenarios; the first failover always runs.")
    ] = None,
    controller: Annotated[
        list[str] | None, typer.Option(help="Measure only these controllers: kafka, kontroller.")
    ] = None,
    scaling: Annotated[bool, typer.Option(help="Also measure takeovers and a broker's death at other sizes.")] = False,
    million: Annotated[bool, typer.Option(help="Also measure our takeover of a million partitions.")] = False,
    writes: Annotated[bool, typer.Option(help="Also measure the cost of ways to write to ZooKeeper.")] = True,
    output: Annotated[Path, typer.Option(help="File for the results.")] = RESULTS / "performance.json",
    docs: Annotated[bool, typer.Option(help="Show this run in docs/performance.md.")] = False,
) -> None:
    """Measure the controllers, and save the results after each scenario."""
    chosen = [name for name in SCENARIOS if scenario is None or name in (*scenario, "cold")]
    kinds = [kind for kind in CONTROLLERS if controller is None or kind in controller]
    results = Results(output, _facts(partitions, runs, chosen))
    began = time.monotonic()
    plan = [(partitions, chosen, run, kind) for run in range(1, runs + 1) for kind in kinds]
    if scaling:
        plan += [(size, list(_SCALED), 1, kind) for size in _SCALES if size != partitions for kind in kinds]
    if million:
        plan += [(_MILLION, list(_TAKEOVER), 1, "kontroller")]
    with exit_on_sigterm():
        for size, names, run, kind in plan:
            play(results, kind, size, names, run)
    if writes:
        results.content |= measure_writes(partitions=min(partitions, _WRITTEN), quick=partitions < _WRITTEN)
        results.keep()
    print_summary(results)
    for path in write_docs([output]) if docs else write_report([output], output.parent):
        console.print(f"{path} is written", soft_wrap=True)
    console.print(f"{output} is written ({time.monotonic() - began:.0f} s)", soft_wrap=True)
    if results.content["failures"]:
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
