"""`kontroller controller run`, the controller core as a process; `take-over` and `hand-over`, which move the role."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli import options
from kontroller.cli.administering.connection import Yes, confirm
from kontroller.cli.endings import failure, usage_error
from kontroller.cli.options import DeadlineSeconds, LogLevel

if TYPE_CHECKING:
    from controller_core.model.ids import BrokerId
    from controller_core.process.connections import ZooKeeperOptions
    from kontroller.role.obstacles import Obstacle
    from kontroller.role.picture import RolePicture

commands = typer.Typer(help="Run the controller, or move the controller's role.", no_args_is_help=True)

ZooKeeper = Annotated[
    str,
    typer.Option(
        help="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot].", envvar="KONTROLLER_ZOOKEEPER"
    ),
]
Properties = Annotated[
    Path | None,
    typer.Option(
        help="File with the cluster's security settings: a broker's server.properties, or a part of it.",
        envvar="KONTROLLER_PROPERTIES",
        show_default=False,
    ),
]


@commands.command("run")
def run(
    zookeeper: options.ZooKeeperServers = None,
    properties: options.ClusterProperties = None,
    id: Annotated[int | None, typer.Option(help="Id of this controller. No broker may have it.")] = None,  # noqa: A002
    listen: Annotated[
        list[str] | None,
        typer.Option(help="Address to listen on for brokers and clients: LISTENER://HOST:PORT. May be repeated."),
    ] = None,
    advertise: Annotated[
        list[str] | None,
        typer.Option(
            help="Address that brokers and clients connect to, if it differs from --listen: LISTENER://HOST:PORT, or "
            "HOST:PORT with one --listen. May be repeated."
        ),
    ] = None,
    control_plane_listener: Annotated[
        str | None, typer.Option(help="The brokers' control.plane.listener.name, if they have one.")
    ] = None,
    client_listener: Annotated[
        str | None,
        typer.Option(help="Listener whose broker addresses clients receive, if one --listen serves several listeners."),
    ] = None,
    zookeeper_session_timeout_ms: options.ZooKeeperSessionTimeoutMs = None,
    zookeeper_jute_maxbuffer_bytes: options.ZooKeeperJuteMaxbufferBytes = None,
    zookeeper_timeout_ms: options.ZooKeeperTimeoutMs = None,
    hot_standby: Annotated[
        bool | None,
        typer.Option(help="Keep a copy of the cluster's state while standing by, for a faster failover. Default: on."),
    ] = None,
    exclusive: Annotated[
        bool | None,
        typer.Option(help="Take the role from a Kafka broker that has it, without being asked. Default: on."),
    ] = None,
    request_timeout_ms: Annotated[
        int | None, typer.Option(help="Milliseconds that a broker has to answer a request. Default: 30000.")
    ] = None,
    brokers_timeout_ms: Annotated[
        int | None,
        typer.Option(
            help="Milliseconds without any reachable broker after which the controller gives the role back. Default: "
            "30000."
        ),
    ] = None,
    metrics_host: options.MetricsHost = None,
    metrics_port: options.MetricsPort = None,
    unclean_leader_election_enable: Annotated[
        bool | None,
        typer.Option(
            help="Allow unclean elections of topics that do not set unclean.leader.election.enable. Default: off."
        ),
    ] = None,
    unclean_recovery_timeout_ms: Annotated[
        int | None,
        typer.Option(
            help="Milliseconds that brokers have to report the ends of their logs before a requested unclean election. "
            "0: do not ask them; the first live replica leads. Default: 5000."
        ),
    ] = None,
    auto_leader_rebalance_enable: Annotated[
        bool | None, typer.Option(help="Move leaderships back to the preferred replicas automatically. Default: on.")
    ] = None,
    leader_imbalance_per_broker_percentage: Annotated[
        int | None,
        typer.Option(
            help="Percent of its preferred leaderships that a broker may miss before leaderships move back. Default: "
            "10."
        ),
    ] = None,
    leader_imbalance_check_interval_seconds: Annotated[
        int | None, typer.Option(help="Seconds between checks of the leader imbalance. Default: 300.")
    ] = None,
    delete_topic_enable: Annotated[bool | None, typer.Option(help="Allow the deletion of topics. Default: on.")] = None,
    num_partitions: Annotated[
        int | None,
        typer.Option(
            help="Partitions of a topic that is created without a number, as num.partitions of the brokers. "
            "Default: refuse such topics."
        ),
    ] = None,
    default_replication_factor: Annotated[
        int | None,
        typer.Option(
            help="Replicas of a topic that is created without a number, as default.replication.factor of the "
            "brokers. Default: refuse such topics."
        ),
    ] = None,
    remote_log_storage_system_enable: Annotated[
        bool | None,
        typer.Option(help="Allow topics with remote storage. Set it if the brokers have remote storage. Default: off."),
    ] = None,
    admin_cidr: Annotated[
        list[str] | None, typer.Option(help="Network whose addresses may change the cluster. May be repeated.")
    ] = None,
    broker_cidr: Annotated[
        list[str] | None,
        typer.Option(help="Network of brokers, in addition to the addresses that they register. May be repeated."),
    ] = None,
    relay: Annotated[
        bool | None, typer.Option(help="Relay requests that only brokers can answer to one of them. Default: on.")
    ] = None,
    socket_request_max_bytes: options.SocketRequestMaxBytes = None,
    max_connections: options.MaxConnections = None,
    max_connections_per_address: options.MaxConnectionsPerAddress = None,
    connections_max_idle_ms: options.ConnectionsMaxIdleMs = None,
    max_requests_in_flight: options.MaxRequestsInFlight = None,
    queued_max_request_bytes: options.QueuedMaxRequestBytes = None,
    queued_max_requests: Annotated[
        int | None,
        typer.Option(
            help="Requests of one kind that may wait for execution. Default: queued.max.requests of --properties, or "
            "500."
        ),
    ] = None,
    controller_quota_window_num: Annotated[
        int | None,
        typer.Option(
            help="Windows over which a controller quota counts. Default: controller.quota.window.num of --properties, "
            "or 11."
        ),
    ] = None,
    controller_quota_window_size_seconds: Annotated[
        int | None,
        typer.Option(
            help="Seconds of one quota window. Default: controller.quota.window.size.seconds of --properties, or 1."
        ),
    ] = None,
    journal_directory: options.JournalDirectory = None,
    journal_segment_bytes: options.JournalSegmentBytes = None,
    journal_retention_bytes: options.JournalRetentionBytes = None,
    journal_retention_hours: options.JournalRetentionHours = None,
    journal_token_file: options.JournalTokenFile = None,
    journal_snapshot_interval_seconds: options.JournalSnapshotIntervalSeconds = None,
    journal_alive_interval_seconds: options.JournalAliveIntervalSeconds = None,
    journal_topic: Annotated[str | None, typer.Option(help="Kafka topic to write the journal to.")] = None,
    journal_bootstrap_server: Annotated[
        str | None, typer.Option(help="Brokers of the journal's topic: HOST:PORT[,HOST:PORT...].")
    ] = None,
    log_format: options.LogFormat = None,
    log_level: LogLevel = None,
    settings: options.SettingsFile = None,
) -> None:
    """Runs a controller: competes for the role of a cluster's controller, and controls the cluster while it has the
    role.

    Every option can also be set as KONTROLLER_<OPTION> in the environment, or in the settings file."""
    given = {name: value for name, value in locals().items() if name != "settings" and value != []}

    # Imported only here, because this takes longer than many other commands take to run.
    from controller_core.controller.controller import ZooKeeperGone
    from controller_core.controller.role.presence import IdInUse
    from controller_core.process.logging import configure_logging
    from controller_core.process.run import run_controller
    from controller_core.process.settings import InvalidSettings, load_settings
    from controller_core.zk.codecs import MalformedZnode
    from controller_core.zk.session import ZkError

    try:
        loaded = load_settings(given, settings)
        configure_logging(loaded.log_format, loaded.log_level)
        asyncio.run(run_controller(loaded))
    except (InvalidSettings, IdInUse) as error:
        raise usage_error(error) from error
    except (ZkError, MalformedZnode, ZooKeeperGone, OSError) as error:
        raise failure(error) from error


@commands.command("take-over")
def take_over(
    zookeeper: ZooKeeper,
    properties: Properties = None,
    to: Annotated[
        int | None,
        typer.Option(
            "--id",
            help="Id of the Kontroller process that gets the role. Default: the process that is best prepared.",
            min=0,
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Print the obstacles, and change nothing.")] = False,
    yes: Yes = False,
    deadline_seconds: DeadlineSeconds = 60,
) -> None:
    """Moves the role to a Kontroller process, from Kafka's controller or from another Kontroller process.

    Prints the obstacles first. Exits with 0 if the process leads, 1 if it does not or an obstacle prevents the move, 2
    if the command is wrong."""
    _move_role(zookeeper, properties, to, to_ours=True, check=check, yes=yes, deadline_s=deadline_seconds)


@commands.command("hand-over")
def hand_over(
    zookeeper: ZooKeeper,
    properties: Properties = None,
    to: Annotated[
        int | None,
        typer.Option(
            help="Id of the Kontroller process that gets the role. Default: Kafka's brokers, for good.", min=0
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Print the obstacles, and change nothing.")] = False,
    yes: Yes = False,
    deadline_seconds: DeadlineSeconds = 60,
) -> None:
    """Moves the role to Kafka's brokers, which keep it until `take-over`, or to another Kontroller process.

    Prints the obstacles first. Exits with 0 if the new holder has the role, 1 if it does not or an obstacle prevents
    the move, 2 if the command is wrong."""
    _move_role(zookeeper, properties, to, to_ours=to is not None, check=check, yes=yes, deadline_s=deadline_seconds)


def _move_role(
    zookeeper: str,
    properties: Path | None,
    to: int | None,
    *,
    to_ours: bool,
    check: bool,
    yes: bool,
    deadline_s: float,
) -> None:
    """Inspect the role, print the findings, ask for confirmation, and move the role.

    The move uses a second session, so that no ZooKeeper session has to live while a person decides."""
    from controller_core.model.ids import BrokerId
    from controller_core.process.connections import ZooKeeperOptions
    from controller_core.process.settings import InvalidSettings
    from controller_core.zk.codecs import MalformedZnode
    from controller_core.zk.session import ZkError
    from kontroller.role.moving import NotMoved
    from kontroller.role.picture import NoCluster

    options = ZooKeeperOptions(zookeeper=zookeeper, properties=properties)
    try:
        picture, target, found = asyncio.run(_look(options, BrokerId(to) if to is not None else None, to_ours=to_ours))
        is_done = picture.is_as_wanted(target)
        typer.echo(picture.described)
        for obstacle in found:
            typer.echo(f"{'obstacle' if obstacle.is_in_the_way else 'warning'}: {obstacle.said}")
        if is_done:
            return
        if any(obstacle.is_in_the_way for obstacle in found):
            raise typer.Exit(1)
        heir = "Kafka's brokers" if target is None else f"process {target}"
        if check or not confirm(f"The role goes to {heir}.", yes=yes):
            return
        asyncio.run(_move(options, picture, target, deadline_s))
    except InvalidSettings as error:
        raise usage_error(error) from error
    except (ZkError, MalformedZnode, NoCluster, NotMoved) as error:
        raise failure(error) from error


async def _look(
    options: "ZooKeeperOptions", to: "BrokerId | None", *, to_ours: bool
) -> "tuple[RolePicture, BrokerId | None, list[Obstacle]]":
    from controller_core.process.connections import open_zookeeper_session
    from kontroller.role.obstacles import Obstacle, find_obstacles
    from kontroller.role.picture import look

    session = await open_zookeeper_session(options, makes_chroot=False)
    try:
        picture = await look(session)
        target = to if to is not None or not to_ours else picture.holder_of_ours or picture.best_process
        found = await find_obstacles(session, picture, target)
    finally:
        await session.close()
    if to_ours and target is None:
        nobody = "no Kontroller process stands by: start one with `kontroller controller run`"
        found = [Obstacle(said=nobody), *(one for one in found if one.is_in_the_way)]
    return picture, target, found


async def _move(
    options: "ZooKeeperOptions", picture: "RolePicture", target: "BrokerId | None", deadline_s: float
) -> None:
    from controller_core.process.connections import open_zookeeper_session
    from kontroller.role.moving import move

    session = await open_zookeeper_session(options, makes_chroot=False)
    try:
        moved = await move(session, picture, target, deadline_s, typer.echo)
        detours = f", with {moved.detours} brokers in between" if moved.detours else ""
        typer.echo(
            f"{moved.holder} has the role, under controller epoch {moved.epoch}{detours}; "
            f"there was no controller for {moved.gap_s:.2f} s"
        )
    finally:
        await session.close()
