"""The `kontroller-broker` command.

Each command imports what it needs when it runs, so that `--help` stays quick."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from kontroller.cli import options
from kontroller.cli.endings import OneLine, failure, usage_error
from kontroller.cli.options import LogLevel
from replica_broker.cli import admin

main = typer.Typer(
    name="kontroller-broker",
    cls=OneLine,
    help="A reference broker in Python, for tests and study.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

main.add_typer(admin.commands, name="admin")


@main.command("run")
def run(
    zookeeper: Annotated[str | None, typer.Option(help="ZooKeeper: HOST:PORT[,HOST:PORT...][/chroot].")] = None,
    properties: Annotated[
        Path | None,
        typer.Option(help="How the cluster is secured: a stock broker's server.properties, or a part of it."),
    ] = None,
    id: Annotated[int | None, typer.Option(help="The broker's id.")] = None,  # noqa: A002
    listen: Annotated[
        list[str] | None, typer.Option(help="LISTENER://HOST:PORT to listen on; may be repeated. All are PLAINTEXT.")
    ] = None,
    advertise: Annotated[
        list[str] | None, typer.Option(help="LISTENER://HOST:PORT that others are told, if another; may be repeated.")
    ] = None,
    inter_broker_listener: Annotated[
        str | None, typer.Option(help="The listener between brokers; by default that of the first --listen.")
    ] = None,
    log_directory: Annotated[list[Path] | None, typer.Option(help="Where the logs are; may be repeated.")] = None,
    rack: Annotated[str | None, typer.Option(help="The broker's rack.")] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="NAME:MIN-MAX, a feature that it supports; may be repeated.")
    ] = None,
    max_time_lag_ms: Annotated[
        int | None, typer.Option(help="Who has not caught up for so long leaves the ISR.")
    ] = None,
    max_bytes_lag: Annotated[int | None, typer.Option(help="Who is so many bytes behind leaves the ISR.")] = None,
    min_bytes_lag: Annotated[
        int | None, typer.Option(help="Who is no more bytes behind, and has what is committed, joins the ISR.")
    ] = None,
    truncate_to: Annotated[
        str | None, typer.Option(help="leader-epoch, or high-watermark: where a follower cuts its log.")
    ] = None,
    isr_writes: Annotated[str | None, typer.Option(help="alter-partition, or zookeeper: who writes the ISR.")] = None,
    fetchers_per_leader: Annotated[int | None, typer.Option(help="Fetches to one leader, side by side.")] = None,
    fetch_wait_max_ms: Annotated[int | None, typer.Option(help="How long a leader may wait for something new.")] = None,
    min_insync_replicas: Annotated[int | None, typer.Option(help="Default of topics that do not say it.")] = None,
    controlled_shutdown_retry_backoff_ms: Annotated[
        int | None, typer.Option(help="After how long a controller that could not move all leaders is asked again.")
    ] = None,
    may_be_controller: Annotated[
        str | None, typer.Option(help="ID@LISTENER://HOST:PORT: the controller may be in this process, too.")
    ] = None,
    zookeeper_session_timeout_ms: Annotated[int | None, typer.Option(help="ZooKeeper session timeout.")] = None,
    zookeeper_timeout_ms: Annotated[
        int | None, typer.Option(help="How long ZooKeeper may be out of reach at the start.")
    ] = None,
    design: Annotated[
        str | None, typer.Option(help="v3: a controller says who leads. v2: the brokers elect leaders, by ZooKeeper.")
    ] = None,
    preferred_replica_time_ms: Annotated[
        int | None, typer.Option(help="v2: how long an election is left to the preferred replica.")
    ] = None,
    keep_in_sync_time_ms: Annotated[
        int | None, typer.Option(help="v2: how long a new leader waits for live followers.")
    ] = None,
    state_change_queue_bound: Annotated[
        int | None, typer.Option(help="v2: how many state change requests wait for one broker.")
    ] = None,
    becoming_leader_high_watermark: Annotated[
        str | None, typer.Option(help="v2: checkpoint, or end: what a new leader takes as committed.")
    ] = None,
    socket_request_max_bytes: options.SocketRequestMaxBytes = None,
    max_connections: options.MaxConnections = None,
    max_connections_per_address: options.MaxConnectionsPerAddress = None,
    connections_max_idle_ms: options.ConnectionsMaxIdleMs = None,
    max_requests_in_flight: options.MaxRequestsInFlight = None,
    queued_max_request_bytes: options.QueuedMaxRequestBytes = None,
    metrics_host: Annotated[str | None, typer.Option(help="Address of /metrics and /healthz.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port of /metrics and /healthz.")] = None,
    log_format: Annotated[str | None, typer.Option(help="json or console.")] = None,
    log_level: LogLevel = None,
    settings: Annotated[Path | None, typer.Option(help="A YAML file with these settings.")] = None,
) -> None:
    """Hosts replicas of a cluster's partitions, as its controller says: Kafka's own or ours.

    Groups, transactions, compaction, quotas, TLS and logins are left to stock brokers: keep __consumer_offsets and
    __transaction_state on those. Every option can also be set as KONTROLLER_<OPTION> in the environment, or in the settings
    file."""
    given = {name: value for name, value in locals().items() if name != "settings" and value != []}

    # Loaded for a broker alone: other commands are over in less time than this takes.
    from controller_core.controller.controller import ZooKeeperGone
    from controller_core.controller.role.presence import IdInUse
    from controller_core.process.logging import configure_logging
    from controller_core.process.settings import InvalidSettings
    from controller_core.zk.codecs import MalformedZnode
    from controller_core.zk.session import ZkError
    from replica_broker.disk.disk import DiskError
    from replica_broker.log.errors import LogError
    from replica_broker.membership.features import IncompatibleFeatures
    from replica_broker.membership.registration import BrokerIdInUse
    from replica_broker.process.run import run_broker
    from replica_broker.process.run_v2 import run_v2_broker
    from replica_broker.process.settings import load_settings
    from replica_broker.v2.broker.broker import ClusterHasController

    try:
        loaded = load_settings(given, settings)
        configure_logging(loaded.log_format, loaded.log_level)
        asyncio.run(run_v2_broker(loaded) if loaded.design == "v2" else run_broker(loaded))
    except (InvalidSettings, BrokerIdInUse, IdInUse, ClusterHasController) as error:
        raise usage_error(error) from error
    except (IncompatibleFeatures, ZooKeeperGone, ZkError, MalformedZnode, DiskError, LogError, OSError) as error:
        raise failure(error) from error
