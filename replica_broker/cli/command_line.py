"""The `kontroller-broker` command.

Each command imports its dependencies when it runs, so that `--help` stays quick.
"""

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
    zookeeper: Annotated[
        str | None, typer.Option(help="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot].")
    ] = None,
    properties: Annotated[
        Path | None,
        typer.Option(
            help="File with the security settings of the cluster: a stock broker's server.properties, or a part of it."
        ),
    ] = None,
    id: Annotated[int | None, typer.Option(help="The broker's id.")] = None,  # noqa: A002
    listen: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "LISTENER://HOST:PORT to listen on. May be repeated. The protocol is PLAINTEXT unless "
                "listener.security.protocol.map in --properties maps the listener's name to another one."
            )
        ),
    ] = None,
    advertise: Annotated[
        list[str] | None,
        typer.Option(help="LISTENER://HOST:PORT that others connect to, if it differs from --listen. May be repeated."),
    ] = None,
    inter_broker_listener: Annotated[
        str | None,
        typer.Option(help="Listener for traffic between brokers and from the controller. Default: the first --listen."),
    ] = None,
    log_directory: Annotated[list[Path] | None, typer.Option(help="Directory of logs. May be repeated.")] = None,
    rack: Annotated[str | None, typer.Option(help="The broker's rack.")] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="Supported feature as NAME:MIN-MAX. May be repeated.")
    ] = None,
    max_time_lag_ms: Annotated[
        int | None, typer.Option(help="Milliseconds after which a follower that has not caught up leaves the ISR.")
    ] = None,
    max_bytes_lag: Annotated[
        int | None, typer.Option(help="Bytes behind the leader at which a follower leaves the ISR.")
    ] = None,
    min_bytes_lag: Annotated[
        int | None,
        typer.Option(
            help="Bytes behind the leader within which a follower that has all committed messages joins the ISR."
        ),
    ] = None,
    truncate_to: Annotated[
        str | None, typer.Option(help="Point at which a follower truncates its log: leader-epoch or high-watermark.")
    ] = None,
    isr_writes: Annotated[
        str | None,
        typer.Option(
            help="Path of ISR changes: alter-partition (through the controller) or zookeeper (written by the leader)."
        ),
    ] = None,
    fetchers_per_leader: Annotated[int | None, typer.Option(help="Number of parallel fetches to each leader.")] = None,
    fetch_wait_max_ms: Annotated[
        int | None, typer.Option(help="Milliseconds that a leader may hold a fetch until new messages arrive.")
    ] = None,
    compression_type: Annotated[
        str | None,
        typer.Option(
            help=(
                "Compression of topics that do not set it: producer (the producers' own), uncompressed, gzip, snappy, "
                "lz4 or zstd. Default: producer."
            )
        ),
    ] = None,
    retention_ms: Annotated[
        int | None,
        typer.Option(
            help="Milliseconds that topics keep records if they do not set it. -1: no limit. Default: 604800000."
        ),
    ] = None,
    retention_bytes: Annotated[
        int | None,
        typer.Option(
            help="Bytes that each partition keeps if its topic does not set it. -1: no limit. Default: no limit."
        ),
    ] = None,
    retention_check_interval_ms: Annotated[
        int | None, typer.Option(help="Milliseconds between checks for deletable segments. Default: 300000.")
    ] = None,
    flush_interval_ms: Annotated[
        str | None,
        typer.Option(
            metavar="INTEGER|none",
            help=(
                "Milliseconds between flushes of all logs to the disk. none: only when the broker ends. Default: 60000."
            ),
        ),
    ] = None,
    min_insync_replicas: Annotated[
        int | None, typer.Option(help="Default min.insync.replicas of topics that do not set it.")
    ] = None,
    controlled_shutdown_retry_backoff_ms: Annotated[
        int | None,
        typer.Option(help="Milliseconds before the controller is asked again to move the remaining leaders."),
    ] = None,
    may_be_controller: Annotated[
        str | None,
        typer.Option(
            help=(
                "ID@LISTENER://HOST:PORT of a controller that runs in this process and takes part in the controller "
                "election."
            )
        ),
    ] = None,
    zookeeper_session_timeout_ms: Annotated[
        int | None, typer.Option(help="ZooKeeper session timeout in milliseconds.")
    ] = None,
    zookeeper_timeout_ms: Annotated[
        int | None, typer.Option(help="Milliseconds that ZooKeeper may be unreachable at the start.")
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(
            help="v3: a controller elects the partition leaders. v2: the brokers elect them through ZooKeeper."
        ),
    ] = None,
    preferred_replica_time_ms: Annotated[
        int | None,
        typer.Option(help="v2: milliseconds that the other brokers leave an election to the preferred replica."),
    ] = None,
    keep_in_sync_time_ms: Annotated[
        int | None, typer.Option(help="v2: milliseconds that a new leader waits for live followers.")
    ] = None,
    state_change_queue_bound: Annotated[
        int | None, typer.Option(help="v2: maximum number of state change requests in the queue of one broker.")
    ] = None,
    becoming_leader_high_watermark: Annotated[
        str | None, typer.Option(help="v2: offset that a new leader takes as its high watermark: checkpoint or end.")
    ] = None,
    socket_request_max_bytes: options.SocketRequestMaxBytes = None,
    max_connections: options.MaxConnections = None,
    max_connections_per_address: options.MaxConnectionsPerAddress = None,
    connections_max_idle_ms: options.ConnectionsMaxIdleMs = None,
    max_requests_in_flight: options.MaxRequestsInFlight = None,
    queued_max_request_bytes: options.QueuedMaxRequestBytes = None,
    metrics_host: Annotated[
        str | None, typer.Option(help="Address of the HTTP server of /metrics and /healthz.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Port of the HTTP server of /metrics and /healthz. Default: not served.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(help="Log format: json or console.")] = None,
    log_level: LogLevel = None,
    settings: Annotated[Path | None, typer.Option(help="YAML file with these settings.")] = None,
) -> None:
    """Host replicas of a cluster's partitions under Kafka's controller or a Kontroller.

    The broker has no consumer groups, transactions, compaction, quotas or authorizer: keep __consumer_offsets and
    __transaction_state on stock brokers. Every option can also be set as KONTROLLER_<OPTION> in the
    environment, or in the settings file.
    """
    given = {name: value for name, value in locals().items() if name != "settings" and value != []}

    # Imported here because other commands take less time to run than these imports.
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
