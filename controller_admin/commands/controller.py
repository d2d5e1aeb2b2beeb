"""`kontroller controller run`: the controller core as a process."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from controller_admin.commands.endings import failure, usage_error

commands = typer.Typer(help="The controller core.", no_args_is_help=True)


@commands.command("run")
def run(
    zookeeper: Annotated[str | None, typer.Option(help="ZooKeeper: HOST:PORT[,HOST:PORT...][/chroot].")] = None,
    properties: Annotated[
        Path | None, typer.Option(help="How the cluster is secured: a broker's server.properties, or a part of it.")
    ] = None,
    id: Annotated[int | None, typer.Option(help="The controller's id; no broker may have it.")] = None,  # noqa: A002
    listen: Annotated[
        list[str] | None, typer.Option(help="LISTENER://HOST:PORT, where brokers reach it; may be repeated.")
    ] = None,
    advertise: Annotated[
        list[str] | None, typer.Option(help="LISTENER://HOST:PORT or HOST:PORT that they are told, if another.")
    ] = None,
    control_plane_listener: Annotated[
        str | None, typer.Option(help="The brokers' control.plane.listener.name, if they have one.")
    ] = None,
    client_listener: Annotated[
        str | None, typer.Option(help="The clients' listener, where one --listen serves several.")
    ] = None,
    zookeeper_session_timeout_ms: Annotated[int | None, typer.Option(help="ZooKeeper session timeout.")] = None,
    zookeeper_jute_maxbuffer_bytes: Annotated[
        int | None, typer.Option(help="The jute.maxbuffer of the ZooKeeper servers.")
    ] = None,
    zookeeper_timeout_ms: Annotated[int | None, typer.Option(help="Exit when ZooKeeper is away for longer.")] = None,
    hot_standby: Annotated[
        bool | None, typer.Option(help="Whether one that stands by reads the cluster's state beforehand.")
    ] = None,
    request_timeout_ms: Annotated[int | None, typer.Option(help="How long a broker may take to answer.")] = None,
    brokers_timeout_ms: Annotated[
        int | None, typer.Option(help="Give the role back when no broker is within reach for longer.")
    ] = None,
    metrics_host: Annotated[str | None, typer.Option(help="Address of /metrics, /healthz and /readyz.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port of /metrics, /healthz and /readyz.")] = None,
    unclean_leader_election_enable: Annotated[
        bool | None, typer.Option(help="Default of topics that do not set it themselves.")
    ] = None,
    auto_leader_rebalance_enable: Annotated[
        bool | None, typer.Option(help="Whether leaders go back to their preferred replicas by themselves.")
    ] = None,
    leader_imbalance_per_broker_percentage: Annotated[
        int | None, typer.Option(help="How many percent of its leaderships a broker may miss before that.")
    ] = None,
    leader_imbalance_check_interval_seconds: Annotated[
        int | None, typer.Option(help="How often that is looked at.")
    ] = None,
    delete_topic_enable: Annotated[bool | None, typer.Option(help="Whether topics may be deleted at all.")] = None,
    num_partitions: Annotated[
        int | None, typer.Option(help="Partitions of topics created without saying how many.")
    ] = None,
    default_replication_factor: Annotated[
        int | None, typer.Option(help="Replicas of topics created without saying how many.")
    ] = None,
    remote_log_storage_system_enable: Annotated[
        bool | None, typer.Option(help="Whether the brokers have remote storage.")
    ] = None,
    admin_cidr: Annotated[
        list[str] | None, typer.Option(help="A network that may change the cluster; may be repeated.")
    ] = None,
    broker_cidr: Annotated[
        list[str] | None, typer.Option(help="A network of brokers, beside what they register; may be repeated.")
    ] = None,
    relay: Annotated[bool | None, typer.Option(help="Whether what brokers answer is passed on to one.")] = None,
    max_connections: Annotated[int | None, typer.Option(help="How many connections are served.")] = None,
    max_connections_per_address: Annotated[int | None, typer.Option(help="How many of one address.")] = None,
    journal_directory: Annotated[
        Path | None, typer.Option(help="Where the journal of the cluster's state is written.")
    ] = None,
    journal_segment_bytes: Annotated[int | None, typer.Option(help="How large a file of it becomes.")] = None,
    journal_retention_bytes: Annotated[int | None, typer.Option(help="How much of it is kept.")] = None,
    journal_retention_hours: Annotated[int | None, typer.Option(help="How long it is kept.")] = None,
    journal_token_file: Annotated[
        Path | None, typer.Option(help="A file with the token that readers of /journal have to show.")
    ] = None,
    journal_snapshot_interval_seconds: Annotated[
        int | None, typer.Option(help="How often the whole state is written to it.")
    ] = None,
    journal_alive_interval_seconds: Annotated[
        int | None, typer.Option(help="After how long without a record it says that the controller is alive.")
    ] = None,
    journal_topic: Annotated[str | None, typer.Option(help="A Kafka topic that the journal is written to.")] = None,
    journal_bootstrap: Annotated[str | None, typer.Option(help="HOST:PORT[,HOST:PORT...] of its brokers.")] = None,
    log_format: Annotated[str | None, typer.Option(help="json or console.")] = None,
    settings: Annotated[Path | None, typer.Option(help="A YAML file with these settings.")] = None,
) -> None:
    """Stands for the controller's role of a cluster, and does its work while it has it.

    Every option can also be set as KONTROLLER_<OPTION> in the environment, or in the settings file."""
    given = {name: value for name, value in locals().items() if name != "settings" and value != []}

    # Loaded for a controller alone: other commands are over in less time than this takes.
    from controller_core.controller.controller import ZooKeeperGone
    from controller_core.controller.role.presence import IdInUse
    from controller_core.process.logging import configure_logging
    from controller_core.process.run import run_controller
    from controller_core.process.settings import InvalidSettings, load_settings
    from controller_core.zk.codecs import MalformedZnode
    from controller_core.zk.session import ZkError

    try:
        loaded = load_settings(given, settings)
        configure_logging(loaded.log_format)
        asyncio.run(run_controller(loaded))
    except (InvalidSettings, IdInUse) as error:
        raise usage_error(error) from error
    except (ZkError, MalformedZnode, ZooKeeperGone, OSError) as error:
        raise failure(error) from error
