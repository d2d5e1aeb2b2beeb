"""The operator with thousands of topics on this machine.

    python -m bench.operator_scale --topics 1000 --partitions 3

The shipped operator runs with its chart's rights on a real API server and a real ZooKeeper. A simulated controller
gives each new topic its leaders at once. The phases are: from nothing until all topics are Ready, while a user changes
one after the other; a restart; a resync without and one with changes; an outage of ZooKeeper. It exits with 1 if a
restart or an idle resync writes anything. Missed goals are printed; with --hold-to-goals they also exit with 1, because
they are for an idle machine of two cores. The result is printed, and saved in bench/results/operator_scale.json.
"""

import asyncio
import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from bench.operator_scale.goals import find_missed
from bench.operator_scale.phases import RESTART, RESYNC, Phase, Phases, Sizes
from bench.operator_scale.surroundings import Surroundings, surroundings
from bench.operator_scale.watching import Watching
from bench.setup.machine import machine
from controller_operator.kubernetes.api_client import api_client
from controller_operator.kubernetes.api_server import load_configuration
from controller_operator.kubernetes.kubernetes_objects import KubernetesObjects
from devcluster.clusters.run_folder import run_folder
from devcluster.filling.fill import fill_cache
from devcluster.filling.parts import API_SERVER, Part
from devcluster.running.processes import exit_on_sigterm

RESULTS: Final = Path(__file__).parents[1] / "results" / "operator_scale.json"
_SESSION_TRANSACTIONS: Final = {RESTART: 1, RESYNC: 0}
"""The transactions that an idle phase may write to ZooKeeper: the operator's session opens."""
console = Console(highlight=False)


def main(
    topics: Annotated[int, typer.Option(help="Number of KafkaTopics.", min=1)] = 1_000,
    partitions: Annotated[int, typer.Option(help="Partitions of each topic.", min=1)] = 3,
    outage: Annotated[float, typer.Option(help="Seconds that ZooKeeper is stopped; 0: no outage.", min=0)] = 30,
    deadline: Annotated[float, typer.Option(help="Deadline of a phase, in seconds.", min=1)] = 900,
    zookeeper_heap_mb: Annotated[int, typer.Option(help="Heap of ZooKeeper, in MiB.", min=64)] = 1_024,
    hold_to_goals: Annotated[bool, typer.Option("--hold-to-goals", help="Exit with 1 if a goal was missed.")] = False,
    output: Annotated[Path, typer.Option(help="File for the results.")] = RESULTS,
) -> None:
    """Measure, print and save the operator's cost of the topics."""
    sizes = Sizes(topics=topics, partitions=partitions, outage_s=outage, deadline_s=deadline)
    load = os.getloadavg()[0]
    fill_cache({Part.KAFKA, *API_SERVER})
    with (
        exit_on_sigterm(),
        run_folder("bench-operator") as folder,
        surroundings(folder, zookeeper_heap_mb=zookeeper_heap_mb) as around,
    ):
        found = asyncio.run(_measure(around, sizes))
    result = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load_before": load,
        "sizes": asdict(sizes),
        "phases": [phase.record() for phase in found],
        "missed": (misses := find_missed(found, topics)),
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n")
    for goal in misses:
        console.print(f"Goal missed: {goal}", soft_wrap=True)
    if not misses:
        console.print("All goals were reached.")
    if wrong := needless_writes(found):
        console.print(f"Written where nothing was to be done: {wrong}", soft_wrap=True)
        raise typer.Exit(1)
    if misses and hold_to_goals:
        raise typer.Exit(1)


async def _measure(around: Surroundings, sizes: Sizes) -> list[Phase]:
    configuration = await load_configuration(kubeconfig=around.kubernetes.kubeconfig)
    api, client = KubernetesObjects(configuration), api_client(configuration)
    watching = Watching(api, client)
    watches = [asyncio.create_task(watching.run(kind)) for kind in ("KafkaTopic", "KafkaCluster")]
    phases = Phases(around, api, watching, sizes, lambda text: console.print(text, soft_wrap=True))
    work = asyncio.create_task(phases.all())
    try:
        await asyncio.wait((work, *watches), return_when=asyncio.FIRST_COMPLETED)
        for watch in watches:
            if watch.done():
                watch.result()  # it failed: nothing would ever be seen to end
        return await work
    finally:
        work.cancel()
        for watch in watches:
            watch.cancel()
        await asyncio.gather(work, *watches, return_exceptions=True)
        await api.close()
        await client.close()


def needless_writes(found: list[Phase]) -> str:
    """Return the writes of phases in which nothing had to be done; empty if there were none."""
    return "; ".join(
        f"{phase.name}: {phase.kubernetes_writes}, {phase.zookeeper_writes} to ZooKeeper"
        for phase in found
        if phase.name in _SESSION_TRANSACTIONS
        and (phase.kubernetes_writes or phase.zookeeper_writes > _SESSION_TRANSACTIONS[phase.name])
    )


if __name__ == "__main__":
    typer.run(main)
