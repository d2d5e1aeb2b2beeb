"""`make bench-stops`: the chart on a cluster that runs pods, its parts stopped in turn while producers write.

Each partition of a topic gets messages all the time, with a producer's default settings and acks=all. The times are
those that Kafka's verifiable producer records with each acknowledgement. Results are saved after every stop.
"""

import os
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from bench.broker_stops.gaps import find_longest_gap
from bench.broker_stops.report import write_docs
from bench.broker_stops.stops import STOPS, Scene, give_leaders_back
from bench.setup.results_file import ResultsFile
from devcluster.clusters.run_folder import run_folder
from devcluster.node.pods import NoCluster, cluster_with_pods, prepare
from devcluster.running.processes import exit_on_sigterm
from tests.e2e.manifests import topic
from tests.e2e.release import PROJECT, STANDBYS, Release
from tests.e2e.toolbox import Toolbox

RESULTS: Final = Path(__file__).parents[1] / "results" / "stops.json"
_TOPIC: Final = "gaps"
_REPLICAS: Final = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]

console = Console(highlight=False, soft_wrap=True, stderr=True)


def main(
    rounds: Annotated[int, typer.Option(help="Number of rounds; each has all kinds of stop.", min=1)] = 3,
    stop: Annotated[list[str] | None, typer.Option(help="Only this kind of stop; may be repeated.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Value of the chart, as for `helm --set`; may be repeated.")
    ] = None,
    output: Annotated[Path, typer.Option(help="File for the results.")] = RESULTS,
    docs: Annotated[bool, typer.Option("--docs", help="Show this run in docs/performance.md.")] = False,
) -> None:
    """Measure the longest gaps between acknowledgements, and save them."""
    if unknown := set(stop or ()) - STOPS.keys():
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: the kinds are {', '.join(STOPS)}")
    values = [part for value in option or () for part in ("--set", value)]
    settings = {"partitions": len(_REPLICAS), "messages a second": 100, "values": " ".join(option or ()) or "defaults"}
    results = ResultsFile(output, settings, "gaps")
    prepare()
    with (
        exit_on_sigterm(),
        run_folder("bench-stops") as folder,
        cluster_with_pods(folder) as pods,
        Release(pods, options=(*STANDBYS, *values)) as release,
        Toolbox(pods, release) as toolbox,
    ):
        release.kubectl("apply", "--server-side", "-f", str(PROJECT / "examples" / "cluster.yaml"))
        release.apply(topic(_TOPIC, _REPLICAS, **{"min.insync.replicas": "2"}))
        release.wait_ready("kafkatopic", _TOPIC)
        release.wait_healthy()
        for run in range(1, rounds + 1):
            scene = Scene(pods=pods, release=release, toolbox=toolbox, load=toolbox.start_load(_TOPIC))
            for kind in stop or STOPS:
                _measure(scene, kind, run, results)
            scene.load.stop()
    for path in write_docs([output]) if docs else ():
        console.print(f"{path} is written")
    console.print(f"{output} is written")


def _measure(scene: Scene, kind: str, run: int, results: ResultsFile) -> None:
    give_leaders_back(scene)
    load_before = round(os.getloadavg()[0], 1)
    new, old = scene.toolbox.start_load(_TOPIC), scene.load
    earlier = {
        each: (len(each.list_acknowledged()), len(each.list_errors()), len(each.list_timeouts())) for each in (new, old)
    }
    STOPS[kind](scene)
    for load in (new, old):
        scene.toolbox.wait_for_progress(load)
    for producer, load in (("new", new), ("old", old)):
        acknowledged, errors, timeouts = earlier[load]
        row = {
            "stop": kind,
            "producer": producer,
            "run": run,
            "seconds": round(find_longest_gap(load.list_acknowledged(), since=acknowledged), 3),
            "errors": len(load.list_errors()) - errors,
            "timeouts": len(load.list_timeouts()) - timeouts,
            "load_before": load_before,
        }
        results.add("gaps", row)
        console.print(f"  {kind}, {producer} producer: {row['seconds']} s")
    new.stop()


if __name__ == "__main__":
    try:
        typer.run(main)
    except NoCluster as error:
        raise SystemExit(str(error)) from error
