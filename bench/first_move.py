"""The time from `kubectl apply` of an automatic RebalancePlan to the first replica that moves, on real servers.

    python -m bench.first_move --topics 200 --rounds 2

An operator with the chart's rights runs beside an API server, a ZooKeeper and three brokers. All topics are on two of the
brokers. A rebalance fills the third one, and a drain empties it again. The time between the two looks at the brokers is
a setting, so it is taken off: what is left is the operator's, the brokers' and the planner's. A replica moves from the
first change of a topic's znode on, by the controller among the brokers. The goal is for an idle machine. The result is
printed, and saved in bench/results/first_move.json.
"""

import json
import os
import time
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Final

import typer
from confluent_kafka import Producer
from rich.console import Console

from bench.operator_scale.surroundings import CLUSTER, NAMESPACE, install, make_operator
from bench.setup.jvm import IN_EARNEST
from bench.setup.results_file import ResultsFile
from controller_core.model.ids import TopicName
from controller_core.zk import paths
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kubernetes import KubernetesApi
from devcluster.clusters.run_folder import run_folder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.filling.fill import fill_cache
from devcluster.filling.parts import API_SERVER, Part
from devcluster.running.processes import exit_on_sigterm, wait_until
from kontroller import BlockingAdminClient

RESULTS: Final = Path(__file__).parent / "results" / "first_move.json"
GOAL_S: Final = 10.0
_EMPTY: Final = 3
"""The broker that is filled and emptied."""
_RECORD: Final = bytes(10_000)
_SILENCE_S: Final = 300.0
console = Console(highlight=False, soft_wrap=True)


def main(
    topics: Annotated[int, typer.Option(help="Number of topics.", min=1)] = 200,
    partitions: Annotated[int, typer.Option(help="Partitions of each topic.", min=1)] = 3,
    rounds: Annotated[int, typer.Option(help="Number of plans of each kind.", min=1)] = 2,
    between_looks: Annotated[int, typer.Option(help="Seconds between the two looks at the brokers.", min=0)] = 60,
    output: Annotated[Path, typer.Option(help="File for the results.")] = RESULTS,
) -> None:
    """Measure, print and save the times."""
    fill_cache({Part.KAFKA, *API_SERVER})
    os.environ.update(IN_EARNEST)
    settings = {"topics": topics, "partitions": partitions, "between_looks_s": between_looks}
    results = ResultsFile(output, {**settings, "goal_s": GOAL_S}, "plans")
    with (
        exit_on_sigterm(),
        run_folder("bench-first-move") as folder,
        KubernetesApi(folder) as kubernetes,
        ZooKeeper(folder) as zookeeper,
        KafkaCluster(folder, zookeeper) as kafka,
        BlockingAdminClient({"bootstrap.servers": kafka.bootstrap_servers}) as admin,
    ):
        _create_topics(admin, kafka.bootstrap_servers, topics, partitions)
        install(kubernetes, zookeeper.connect)
        with make_operator(folder, kubernetes):
            console.print("| plan | load | moves | from apply to the first move (s) | without the looks' pause (s) |")
            for number in range(rounds):
                for mode, spec in (("rebalance", {}), ("drain", {"brokers": [_EMPTY]})):
                    name = f"{mode}-{number}"
                    plan = _make_plan(name, mode=mode, betweenLooksSeconds=between_looks, **spec)
                    found = _measure(kubernetes, zookeeper, name, plan, between_looks)
                    results.add("plans", found)
                    console.print(
                        f"| {mode} | {found['load']:.1f} | {found['moves']} | {found['seconds']:.1f} |"
                        f" {found['seconds'] - between_looks:.1f} of {GOAL_S:.0f} |"
                    )


def _measure(
    kubernetes: KubernetesApi, zookeeper: ZooKeeper, name: str, plan: dict[str, Any], between_looks_s: int
) -> dict[str, Any]:
    """Apply a plan, return when its first replica moved, and wait until the plan is complete."""
    with zookeeper.client() as client:
        moved = Event()
        for topic in client.get_children(paths.TOPICS):
            client.get(paths.topic(TopicName(topic)), watch=lambda _: moved.set())
        load, applied_at, began = os.getloadavg()[0], time.time(), time.monotonic()
        kubernetes.kubectl("apply", "-f", "-", stdin=json.dumps(plan))
        if not moved.wait(between_looks_s + _SILENCE_S):
            raise TimeoutError(f"{name} moves nothing: {kubernetes.get('krb', name, '--namespace', NAMESPACE)}")
        seconds = time.monotonic() - began
    status = kubernetes.get("krb", name, "--namespace", NAMESPACE)["status"]

    def is_complete() -> bool:
        phase: str = kubernetes.get("krb", name, "--namespace", NAMESPACE)["status"]["phase"]
        return phase == "Completed"

    wait_until(is_complete, f"{name} is complete", silence_s=_SILENCE_S)
    return {
        "mode": plan["spec"]["mode"],
        "load": load,
        "seconds": round(seconds, 2),
        "look_after_s": round(datetime.fromisoformat(status["lookTime"]).timestamp() - applied_at, 1),
        "moves": status["counts"]["moves"],
    }


def _make_plan(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    whole = {"clusterRef": {"name": CLUSTER}, "scope": {"topics": ["topic-*"]}, **spec}
    return {"apiVersion": "kontroller.dev/v1alpha1", "kind": "RebalancePlan", "metadata": metadata, "spec": whole}


def _create_topics(admin: BlockingAdminClient, servers: str, topics: int, partitions: int) -> None:
    """Create topics on brokers 1 and 2, with a record in each partition."""
    names = [f"topic-{number:05}" for number in range(topics)]
    assignment = ",".join("1:2" if number % 2 else "2:1" for number in range(partitions))
    for name in names:
        admin.create_topic(name, replica_assignment=assignment)
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for name in names:
        for number in range(partitions):
            producer.produce(name, _RECORD, partition=number)
        producer.poll(0)
    if left := producer.flush(120):
        raise TimeoutError(f"{left} records were not acknowledged")


if __name__ == "__main__":
    typer.run(main)
