"""The cost of a fleet's history on this machine: 500 clusters over some days, one history, one page with all of them.

    python -m bench.fleet_history --clusters 500 --days 2

The journals are generated (`cluster.py`); in some the clock is wrong, or the controller is silent for hours, or for
good. The shipped command ingests them, writes the page of all and of one, and ingests them again, which is the cost of
an hour without news. It exits with 1 if the page misses a cluster, or calls a silent one healthy. The result is
printed, and saved in bench/results/fleet_history.json.
"""

import json
import os
import re
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from bench.fleet_history.cluster import DAY_US, PaperCluster, Shape, flaws_of
from bench.fleet_history.commands import Took, kontroller_history
from bench.fleet_history.journals import write_fleet

RESULTS: Final = Path(__file__).parents[1] / "results" / "fleet_history.json"
console = Console(highlight=False)


def main(
    clusters: Annotated[int, typer.Option(help="Number of clusters.", min=2)] = 500,
    days: Annotated[int, typer.Option(help="Lifetime of each cluster, in days.", min=1)] = 2,
    topics: Annotated[int, typer.Option(help="Topics of each cluster.", min=1)] = 10,
    partitions: Annotated[int, typer.Option(help="Partitions of each topic.", min=1)] = 4,
    alive_s: Annotated[
        int, typer.Option(help="Seconds of silence after which an alive record is written (controllers: 10).", min=1)
    ] = 120,
    snapshot_s: Annotated[int, typer.Option(help="Seconds between snapshots (controllers: 3600).", min=60)] = 6 * 3600,
    cores: Annotated[int, typer.Option(help="Cores for Spark.", min=1)] = 2,
    memory: Annotated[str, typer.Option(help="Memory for Spark.")] = "3g",
) -> None:
    """Measure, print and save the cost of a fleet."""
    shape = Shape(days=days, topics=topics, partitions=partitions, alive_s=alive_s, snapshot_s=snapshot_s)
    spark = ("--cores", str(cores), "--memory", memory)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        journals, history, page = (folder / name for name in ("journals", "history", "page"))
        written = write_fleet(journals, clusters, shape)
        console.print(f"{clusters} clusters, {days} days: {written.records:,} records, {written.journal_bytes:,} bytes")
        ingest = ("ingest", "--journal", str(journals), "--history", str(history), *spark)
        report = ("report", "--history", str(history), *spark)
        one = PaperCluster(0, shape, flaws_of(0, shape)).cluster_id
        took = {
            "ingest": _measure("ingest", *ingest),
            "report": _measure("report", *report, "--output", str(page)),
            "report of a cluster": _measure(
                "report of a cluster", *report, "--output", str(folder / "one"), "--cluster", one
            ),
            "ingest of nothing new": _measure("ingest of nothing new", *ingest),
        }
        result: dict[str, Any] = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "load": os.getloadavg()[0],
            "clusters": clusters,
            "shape": asdict(shape),
            "written": asdict(written),
            "raw_bytes": _size(history / "raw"),
            "layers_bytes": _size(history / "layers"),
            "files": sum(1 for path in history.rglob("*.parquet")),
            "page_bytes": (page / "index.html").stat().st_size,
            "tables_bytes": _size(page / "tables"),
            "took": {name: asdict(one) for name, one in took.items()},
        }
        missing = find_missing(page / "index.html", clusters, shape)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    console.print(json.dumps({name: value for name, value in result.items() if name != "took"}, indent=2))
    if missing:
        console.print(f"The page is wrong: {missing}")
        sys.exit(1)


def _measure(name: str, *arguments: str) -> Took:
    took = kontroller_history(*arguments)
    steps = ", ".join(f"{step} {cpu_s:.0f} s" for step, cpu_s in took.steps_cpu_s.items())
    console.print(f"{name}: {took.wall_s:.0f} s, {took.cpu_s:.0f} s of the processors ({steps})", soft_wrap=True)
    return took


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def find_missing(page: Path, clusters: int, shape: Shape) -> str:
    """Return what the page lacks of the fleet; empty if it is complete."""
    text = page.read_text(encoding="utf-8")
    if f"of {clusters:,} clusters need" not in text:
        return f"it does not speak of {clusters} clusters"
    gone = [n for n in range(clusters) if any(end == shape.days * DAY_US for _, end in flaws_of(n, shape).silences_us)]
    rows = dict(re.findall(r'<tr id="clusters-\d+"><td>(?:<a [^>]*>)?(fleet-\d+)(?:</a>)?</td><td[^>]*>([^<]*)<', text))
    well = [number for number in gone if "silent since" not in rows.get(f"fleet-{number:04}", "")]
    return f"of clusters {well}, which fell silent, it does not say so" if well else ""


if __name__ == "__main__":
    typer.run(main)
