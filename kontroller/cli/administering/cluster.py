"""`kontroller cluster`: the members of a cluster, and the state of its partitions."""

import typer

from kontroller.cli.administering.connection import Config, Server, TimeoutMs, run
from kontroller.cli.administering.output import Format, Output, show

commands = typer.Typer(help="The cluster: describe.", no_args_is_help=True)


@commands.command("describe")
def describe(
    server: Server = None, output: Output = Format.TABLE, command_config: Config = None, timeout_ms: TimeoutMs = None
) -> None:
    """Shows the cluster's id, its controller and brokers, and how many partitions lack a leader or replicas."""
    found = run(
        server,
        command_config,
        lambda admin, time: admin.describe_cluster(timeout_ms=time.require_time_ms()),
        timeout_ms,
    )
    value = {
        "clusterId": found.cluster_id,
        "controller": found.controller,
        "nodes": [
            {
                "id": each.id,
                "host": each.address.host,
                "port": each.address.port,
                "rack": each.rack,
                "replicas": each.replicas,
            }
            for each in found.nodes
        ],
        "topics": found.topics,
        "partitions": found.partitions,
        "offline": found.offline,
        "underReplicated": found.under_replicated,
    }
    if output is Format.TABLE:
        controller = "unknown" if found.controller is None else found.controller
        typer.echo(
            f"cluster {found.cluster_id}, controller {controller}: {found.topics} topics, {found.partitions} "
            f"partitions, "
            f"{found.offline} without a leader, {found.under_replicated} without all their replicas\n"
        )
    rows = [
        (each.id, each.address, each.rack, each.replicas, "controller" if each.id == found.controller else None)
        for each in found.nodes
    ]
    show(output, value, ("NODE", "ADDRESS", "RACK", "REPLICAS", "ROLE"), rows, empty="there are no nodes")
