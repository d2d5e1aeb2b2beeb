"""The demo's first part: brokers and our controller, with Kafka's own tools. It needs no Kubernetes."""

import json
from pathlib import Path

from devcluster.clients.tools import REASSIGN_PARTITIONS, TOPICS, run_tool
from devcluster.demo.cluster import Cluster, assignment, stop_broker
from devcluster.demo.move import NEW, OLD, show_move

TOPIC = "deliveries"


def first_part(cluster: Cluster) -> None:
    create_topic(cluster)
    move_partition(cluster)
    stop_broker(cluster, TOPIC)


def create_topic(cluster: Cluster) -> None:
    cluster.stage.step("A topic", "Kafka's own tool asks our controller for it.")
    replicas = [OLD[index:] + OLD[:index] for index in range(3)]
    arguments = ["--create", "--topic", TOPIC, "--replica-assignment", assignment(replicas)]
    _run(cluster, TOPICS, "kafka-topics.sh", *arguments, "--config", "min.insync.replicas=2")
    cluster.produce(TOPIC)
    cluster.stage.await_(cluster.is_served, f"every replica of {TOPIC} is in sync")


def move_partition(cluster: Cluster) -> None:
    cluster.stage.step(
        f"Reassignment {set(OLD)} -> {set(NEW)}",
        "Kafka's own tool asks for it. This is partition 0, on its way through the steps; AR is written last.",
    )
    wanted = {"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": NEW}]}
    path = cluster.folder.data("tools") / "move.json"
    path.write_text(json.dumps(wanted))
    show_move(
        cluster.stage,
        lambda: cluster.place(TOPIC, 0),
        lambda: _run(
            cluster,
            REASSIGN_PARTITIONS,
            "kafka-reassign-partitions.sh",
            *("--reassignment-json-file", path, "--execute"),
        ),
        lambda: tuple(sorted(cluster.znodes.read_assignment(TOPIC, 0))) == NEW and cluster.is_served(),
    )


def _run(cluster: Cluster, tool: str, script: str, *arguments: str | Path) -> None:
    """Run a tool on the brokers, and show the last line of its output."""
    done = run_tool(tool, "--bootstrap-server", cluster.kafka.bootstrap_servers, *map(str, arguments))
    shown = " ".join(argument.name if isinstance(argument, Path) else argument for argument in arguments)
    printed = (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip().splitlines()
    cluster.stage.show(f"{script} {shown}", "\n".join(printed[-1:] if done.returncode == 0 else printed))
    cluster.stage.expect(done.returncode == 0, "the tool is content")
