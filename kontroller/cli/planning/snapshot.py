"""`kontroller snapshot`: writes the loads of a cluster into a file, and the shared part of commands that need loads."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from controller_core.model.wording import format_count, list_some
from kontroller.cli.administering.connection import Allowance, Cluster, read_text
from kontroller.cli.endings import failure, say_in_one_line, usage_error

if TYPE_CHECKING:
    from kontroller import AdminClient
    from kontroller.planning.snapshot_file import StoredLoads

_LONGEST_S: Final = 86_400
_TROUBLES_TOLD: Final = 10

BetweenLooks = Annotated[
    float,
    typer.Option(
        "--between-looks",
        help="Seconds between the two looks at the ends of logs that show what producers write. 0: one look, and these "
        "rates stay unknown.",
        min=0,
        max=_LONGEST_S,
    ),
]
CapacityFile = Annotated[
    Path | None,
    typer.Option(
        "--capacities",
        help="File with the capacities of brokers, in the format of Cruise Control's capacity.json. Default: the disks "
        "as brokers report them (Kafka 3.3 or later).",
        show_default=False,
    ),
]
ClosedBrokers = Annotated[
    list[int] | None,
    typer.Option(
        "--closed-broker", help="Broker that keeps its replicas and takes no new ones. May be repeated.", min=0
    ),
]


def snapshot(
    cluster: Cluster,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write or replace, such as loads.parquet.")],
    between_looks: BetweenLooks = 60,
    capacities: CapacityFile = None,
    closed_broker: ClosedBrokers = None,
) -> None:
    """Writes the replicas and loads of a cluster into a Parquet file, for `kontroller plan --snapshot`.

    Asks brokers alone: sizes of logs, disks, and twice the ends of logs. A broker that does not answer is reported, and
    its numbers are empty. --timeout-ms limits each look."""
    loads = take_loads(cluster, between_looks, capacities, closed_broker or ())

    from controller_planner.resources import describe_unknown_capacities
    from kontroller.planning.snapshot_file import write_snapshot

    try:
        write_snapshot(output, loads)
    except OSError as error:
        raise failure(OSError(f"{output} cannot be written: {error}")) from error
    found = loads.snapshot
    open_brokers = found.brokers.is_live & found.brokers.takes_replicas
    say_troubles((*loads.troubles, *describe_unknown_capacities(found.brokers, open_brokers)))
    typer.echo(
        f"{output}: {format_count(len(found.brokers), 'broker')}, "
        f"{format_count(len(found.partitions), 'partition')}, snapshot {found.compute_hash()[:12]}"
    )


def require_planner() -> None:
    """End the command if the libraries of the planner are not installed."""
    for name in ("numpy", "pyarrow", "jinja2"):
        if find_spec(name) is None:
            raise usage_error(ImportError(f"{name} is not installed: pip install 'kafka-kontroller[planner]'"))


def take_loads(
    cluster: Cluster, between_looks_s: float, capacities: Path | None, closed: Iterable[int]
) -> "StoredLoads":
    """Return the loads of a live cluster. Ends the command if that fails."""
    require_planner()

    from controller_core.model.ids import BrokerId
    from controller_planner.loads import InvalidSnapshot
    from kontroller.planning.taking import take_snapshot

    async def work(admin: "AdminClient", _: Allowance) -> "StoredLoads":
        return await take_snapshot(admin, between_looks_s, frozenset(map(BrokerId, closed)), cluster.timeout_ms)

    try:
        stored = cluster.run(work)
    except InvalidSnapshot as error:
        raise failure(error) from error
    return stored if capacities is None else put_capacities(stored, capacities)


def put_capacities(loads: "StoredLoads", file: Path) -> "StoredLoads":
    """Return the loads with the capacities of a file. Ends the command if it is unusable."""
    from dataclasses import replace

    from controller_planner.loads import InvalidSnapshot
    from kontroller.planning.capacities import UnusableCapacitiesError, read_capacities

    try:
        found = read_capacities(read_text(file))
    except UnusableCapacitiesError as error:
        raise usage_error(ValueError(f"{file}: {error}")) from error
    if unknown := found.find_unknown_brokers(loads.snapshot):
        say_in_one_line(f"{file} has capacities of brokers that the cluster has not: {list_some(unknown)}")
    for gap in found.list_gaps(loads.snapshot):
        say_in_one_line(f"{file} has {gap}")
    try:
        return replace(loads, snapshot=found.put_into(loads.snapshot))
    except InvalidSnapshot as error:
        raise usage_error(ValueError(f"{file}: {error}")) from error


def say_troubles(troubles: Iterable[str]) -> None:
    """Print what was unknown when a snapshot was taken."""
    every = list(troubles)
    for trouble in every[:_TROUBLES_TOLD]:
        say_in_one_line(trouble)
    if len(every) > _TROUBLES_TOLD:
        say_in_one_line(f"and {len(every) - _TROUBLES_TOLD} more, which the snapshot has")
