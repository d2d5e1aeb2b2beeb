"""`kontroller cluster`: the members of a cluster, and the state of its partitions."""

import typer

from kontroller.cli.administering.connection import Cluster
from kontroller.cli.administering.output import Format, Output, show
from kontroller.cli.option_groups import add_command

commands = typer.Typer(help="The cluster: describe.", no_args_is_help=True)


@add_command(commands, "describe")
def describe(cluster: Cluster, output: Output = Format.TABLE) -> None:
    """Shows the cluster's id, its controller and brokers, and how many partitions lack a leader or replicas."""
    found = cluster.ask(lambda admin, timeout_ms: admin.describe_cluster(timeout_ms=timeout_ms))
    controller = found.controller.id if found.controller else None
    replicas, counts = found.count_replicas(), found.counts
    nodes = [(each.id, each.endpoints[0], each.rack, replicas[each.id]) for each in found.brokers.values()]
    value = {
        "clusterId": found.cluster_id,
        "controller": controller,
        "nodes": [
            {"id": number, "host": endpoint.host, "port": endpoint.port, "rack": rack, "replicas": held}
            for number, endpoint, rack, held in nodes
        ],
        "topics": len(found.topics),
        "partitions": counts.partitions,
        "offline": counts.offline,
        "underReplicated": counts.under_replicated,
    }
    if output is Format.TABLE:
        typer.echo(
            f"cluster {found.cluster_id}, controller {'unknown' if controller is None else controller}: "
            f"{len(found.topics)} topics, {counts.partitions} partitions, "
            f"{counts.offline} without a leader, {counts.under_replicated} without all their replicas\n"
        )
    rows = [
        (number, endpoint.address, rack, held, "controller" if number == controller else None)
        for number, endpoint, rack, held in nodes
    ]
    show(output, value, ("NODE", "ADDRESS", "RACK", "REPLICAS", "ROLE"), rows, empty="there are no nodes")
