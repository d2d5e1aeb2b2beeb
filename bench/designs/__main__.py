"""`make bench-designs`: v2 (seed 003) and v3 (seed 004) with the same Python brokers, counted at the servers.

What was measured is kept after every scenario, so that nothing is lost when the rest is interrupted.
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
from devcluster.running.processes import ConditionTimeoutError, StartError, ending_on_sigterm

RESULTS: Final = Path(__file__).parents[1] / "results" / "designs.json"

console = Console(highlight=False, soft_wrap=True, stderr=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def compare_throughput(results: ResultsFile, records: int, rounds: int) -> None:
    """The Python broker beside a stock one."""
    with run_folder("bench-throughput") as folder:
        for row in throughput(folder, records, rounds):
            results.add("throughput", row)


def play(results: ResultsFile, design: Design, sizes: Sizes) -> None:
    """One life of a cluster; a scenario that is not over in time ends it, and is recorded."""
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
        list[int] | None, typer.Option(help="How many; may be repeated; 0: only the brokers are compared.")
    ] = None,
    in_topic: Annotated[int, typer.Option(help="Partitions of a topic.")] = 50,
    replication_factor: Annotated[int, typer.Option(help="Replicas of a partition.")] = 3,
    design: Annotated[list[str] | None, typer.Option(help="Only these: v2, v3.")] = None,
    deadline: Annotated[float, typer.Option(help="Seconds that each scenario may take.")] = 3600.0,
    records: Annotated[int, typer.Option(help="Written to the Python broker and a stock one; 0: neither.")] = 200_000,
    rounds: Annotated[int, typer.Option(help="How often these are written.")] = 3,
    alone: Annotated[bool, typer.Option(help="Nothing else runs on this machine: times are shown, too.")] = False,
    output: Annotated[Path, typer.Option(help="The file that results are kept in.")] = RESULTS,
    docs: Annotated[bool, typer.Option(help="Make it the run that docs/performance.md shows.")] = False,
) -> None:
    """Measures both designs, and keeps what it finds in a file."""
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
    with ending_on_sigterm():
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
