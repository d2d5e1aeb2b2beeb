"""`make bench-designs`: v2 (seed 003) and v3 (seed 004) with the same Python brokers, counted at the servers.

Results are saved after every scenario, so that an interrupted run loses nothing.
"""

import os
import time
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from bench.designs.clusters import BROKERS, SETTINGS
from bench.designs.counting.leaderships import DESIGNS, Design
from bench.designs.lives import ZOOKEEPER_HEAP_MB, Sizes, measure
from bench.designs.report.page import write_docs
from bench.designs.throughput import throughput
from bench.setup.results_file import ResultsFile
from devcluster.clusters.run_folder import run_folder
from devcluster.running.processes import ConditionTimeoutError, StartError, exit_on_sigterm

RESULTS: Final = Path(__file__).parents[1] / "results" / "designs.json"

console = Console(highlight=False, soft_wrap=True, stderr=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def compare_throughput(results: ResultsFile, records: int, rounds: int) -> None:
    """Compare the Python broker with a stock one."""
    with run_folder("bench-throughput") as folder:
        for row in throughput(folder, records, rounds):
            results.add("throughput", row)


def play(results: ResultsFile, design: Design, sizes: Sizes) -> None:
    """Run one life of a cluster; a scenario that misses its deadline ends it, and is recorded."""
    began, load = time.monotonic(), round(os.getloadavg()[0], 1)
    try:
        with run_folder("bench-designs") as folder:
            for row in measure(folder, design, sizes):
                results.add("scenarios", {**row, "load_before": load})
                console.print(f"  {design} {sizes.partitions} {row['scenario']}: {time.monotonic() - began:.0f} s")
    except (ConditionTimeoutError, StartError) as error:
        console.print(f"  {design} {sizes.partitions} failed: {error}")
        results.add("failures", {"design": design, "partitions": sizes.partitions, "error": str(error)})


@app.command()
def main(
    partitions: Annotated[
        list[int] | None, typer.Option(help="Number of partitions; may be repeated; 0: only compare the brokers.")
    ] = None,
    in_topic: Annotated[int, typer.Option(help="Partitions of a topic.")] = 50,
    replication_factor: Annotated[int, typer.Option(help="Replicas of a partition.")] = 3,
    design: Annotated[list[str] | None, typer.Option(help="Measure only these designs: v2, v3.")] = None,
    deadline: Annotated[float, typer.Option(help="Deadline of each scenario, in seconds.")] = 3600.0,
    records: Annotated[
        int, typer.Option(help="Records written to the Python broker and a stock one; 0: none.")
    ] = 200_000,
    rounds: Annotated[int, typer.Option(help="Number of rounds of these writes.")] = 3,
    alone: Annotated[bool, typer.Option(help="Nothing else runs on this machine, so also show times.")] = False,
    output: Annotated[Path, typer.Option(help="File for the results.")] = RESULTS,
    docs: Annotated[bool, typer.Option(help="Show this run in docs/performance.md.")] = False,
) -> None:
    """Measure both designs, and save the results."""
    sizes = [
        Sizes(partitions=each, in_topic=in_topic, replication_factor=replication_factor, deadline_s=deadline)
        for each in partitions or (1_000, 10_000)
        if each
    ]
    settings = {
        "alone": alone,
        "brokers": len(BROKERS),
        "partitions_of_a_topic": in_topic,
        "replication_factor": replication_factor,
        "zookeeper_heap_mb": ZOOKEEPER_HEAP_MB,
        **SETTINGS,
    }
    results = ResultsFile(output, settings, "scenarios", "throughput", "failures")
    with exit_on_sigterm():
        for size in sizes:
            for each in DESIGNS:
                if design is None or each in design:
                    play(results, each, size)
        if records:
            compare_throughput(results, records, rounds)
    for path in write_docs([output]) if docs else ():
        console.print(f"{path} is written")
    console.print(f"{output} is written")
    if results.content["failures"]:
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
