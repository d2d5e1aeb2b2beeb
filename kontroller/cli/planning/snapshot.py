"""`kontroller snapshot`: writes the loads of a cluster into a file, and the shared part of commands that need loads."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from controller_core.model.wording import format_count, list_some
from kontroller.cli.administering.connection import EXIT_INTERRUPTED, Allowance, Cluster, read_text
from kontroller.cli.endings import failure, say_in_one_line, usage_error
from kontroller.cli.options import LARGEST_ID

if TYPE_CHECKING:
    from kontroller import AdminClient
    from kontroller.planning.snapshot_file import StoredLoads

_LONGEST_S: Final = 86_400
_TROUBLES_TOLD: Final = 10

BetweenLooks = Annotated[
    float,
    typer.Option(
        "--between-looks-seconds",
        help="Seconds between the two readings of log ends from which the producers' rates are computed. 0: one reading, "
        "and these rates stay unknown.",
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
        "--closed-broker",
        help="Broker that keeps its replicas and gets no new ones. May be repeated.",
        min=0,
        max=LARGEST_ID,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """A Prometheus that knows the traffic."""

    prometheus: Annotated[
        str | None,
        typer.Option(
            help="Address of a Prometheus with the brokers' metrics, such as http://prometheus:9090. It supplies "
            "traffic that is otherwise unknown, such as the consumers'. Default: none.",
            show_default=False,
        ),
    ] = None
    bytes_in_query: Annotated[
        str,
        typer.Option(
            metavar="PROMQL",
            help="With --prometheus: query for the bytes per second that producers write. The result must have the label "
            "topic, and may have partition. The default fits the JMX exporter's example for Kafka.",
        ),
    ] = 'sum by (job, namespace, topic) (rate(kafka_server_brokertopicmetrics_bytesin_total{topic!=""}[5m]))'
    bytes_out_query: Annotated[
        str,
        typer.Option(metavar="PROMQL", help="With --prometheus: query for the bytes per second that consumers read."),
    ] = 'sum by (job, namespace, topic) (rate(kafka_server_brokertopicmetrics_bytesout_total{topic!=""}[5m]))'
    prometheus_ca: Annotated[
        Path | None,
        typer.Option(
            help="File with the authorities of an https:// Prometheus, as PEM. Default: those of the system.",
            show_default=False,
        ),
    ] = None
    prometheus_token_file: Annotated[
        Path | None, typer.Option(help="File with the token for the Prometheus. Default: none.", show_default=False)
    ] = None

    def check(self) -> None:
        """End the command if the address or a file is wrong, before the cluster is looked at."""
        from controller_core.security.token_file import TokenFile, UnusableToken
        from kontroller.planning.prometheus import UnusablePrometheusError, make_context, parse_url

        if self.prometheus is None:
            if self.prometheus_ca is not None or self.prometheus_token_file is not None:
                raise usage_error(ValueError("--prometheus-ca and --prometheus-token-file are for --prometheus"))
            return
        try:
            if parse_url(self.prometheus).scheme == "https":
                make_context(self.prometheus_ca)
            if self.prometheus_token_file is not None:
                TokenFile(path=self.prometheus_token_file).require_usable()
        except (UnusablePrometheusError, UnusableToken) as error:
            raise usage_error(error) from error


def snapshot(
    cluster: Cluster,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write or replace, such as loads.parquet.")],
    between_looks_seconds: BetweenLooks = 60,
    capacities: CapacityFile = None,
    closed_broker: ClosedBrokers = None,
    *,
    traffic: Traffic,
) -> None:
    """Writes the replicas and load of a cluster into a Parquet file, for `kontroller plan --snapshot`.

    Reads log sizes, disks, and twice the log ends from the brokers, and other traffic from --prometheus. If a broker
    does not answer, the command reports it and leaves its numbers empty. --timeout-ms limits each reading."""
    loads = take_loads(cluster, between_looks_seconds, capacities, closed_broker or (), traffic)

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
            raise usage_error(ImportError(f"{name} is not installed: in a checkout, pip install '.[planner]'"))


def take_loads(
    cluster: Cluster, between_looks_s: float, capacities: Path | None, closed: Iterable[int], traffic: Traffic
) -> "StoredLoads":
    """Return the loads of a live cluster. Ends the command if that fails."""
    require_planner()
    traffic.check()

    from controller_core.model.ids import BrokerId
    from controller_planner.loads import InvalidSnapshot
    from kontroller.planning.taking import take_snapshot

    async def work(admin: "AdminClient", _: Allowance) -> "StoredLoads":
        return await take_snapshot(admin, between_looks_s, frozenset(map(BrokerId, closed)), cluster.timeout_ms)

    try:
        stored = cluster.run(work)
    except InvalidSnapshot as error:
        raise failure(error) from error
    return complete(stored, capacities, traffic)


def complete(loads: "StoredLoads", capacities: Path | None, traffic: Traffic) -> "StoredLoads":
    """Return the loads with the capacities of a file and the traffic of a Prometheus. Ends the command if one is
    unusable."""
    if capacities is not None:
        loads = _put_capacities(loads, capacities)
    return loads if traffic.prometheus is None else _put_traffic(loads, traffic, traffic.prometheus)


def _put_traffic(loads: "StoredLoads", traffic: Traffic, url: str) -> "StoredLoads":
    from controller_core.security.token_file import UnusableToken
    from kontroller.planning.prometheus import Prometheus, UnusablePrometheusError, fill_traffic

    prometheus = Prometheus(
        url=url,
        in_query=traffic.bytes_in_query,
        out_query=traffic.bytes_out_query,
        authorities=traffic.prometheus_ca,
        token_file=traffic.prometheus_token_file,
    )
    try:
        return asyncio.run(fill_traffic(loads, prometheus))
    except UnusableToken as error:
        raise usage_error(error) from error
    except UnusablePrometheusError as error:
        raise failure(error) from error
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _put_capacities(loads: "StoredLoads", file: Path) -> "StoredLoads":
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
