"""`kontroller controller run`, the controller core as a process; `take-over` and `hand-over`, which move the role."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli import options
from kontroller.cli.administering.connection import Yes, confirmed
from kontroller.cli.endings import failure, usage_error
from kontroller.cli.options import DeadlineSeconds, LogLevel

if TYPE_CHECKING:
    from controller_core.model.ids import BrokerId
    from controller_core.process.connections import ZooKeeperOptions
    from kontroller.role.obstacles import Obstacle
    from kontroller.role.picture import RolePicture

commands = typer.Typer(help="The controller core.", no_args_is_help=True)

ZooKeeper = Annotated[
    str, typer.Option(help="ZooKeeper: HOST:PORT[,HOST:PORT...][/chroot].", envvar="KONTROLLER_ZOOKEEPER")
]
Properties = Annotated[
    Path | None,
    typer.Option(
        help="How the cluster is secured: a broker's server.properties, or a part of it.",
        envvar="KONTROLLER_PROPERTIES",
        show_default=False,
    ),
]


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
    exclusive: Annotated[
        bool | None, typer.Option(help="Whether the role is taken from a Kafka broker that has it, unasked.")
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
    unclean_recovery_timeout_ms: Annotated[
        int | None,
        typer.Option(
            help="How long brokers may take to say whose log is the longest, before an unclean election that somebody asks "
            "for; 0: they are not asked, and the first live replica leads."
        ),
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
        int | None, typer.Option(help="num.partitions of the brokers' files: for topics whose creator does not say it.")
    ] = None,
    default_replication_factor: Annotated[
        int | None,
        typer.Option(
            help="default.replication.factor of the brokers' files: for topics whose creator does not say it."
        ),
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
    socket_request_max_bytes: options.SocketRequestMaxBytes = None,
    max_connections: options.MaxConnections = None,
    max_connections_per_address: options.MaxConnectionsPerAddress = None,
    connections_max_idle_ms: options.ConnectionsMaxIdleMs = None,
    max_requests_in_flight: options.MaxRequestsInFlight = None,
    queued_max_request_bytes: options.QueuedMaxRequestBytes = None,
    queued_max_requests: Annotated[
        int | None,
        typer.Option(help="How many requests of one kind wait for their turn; else as --properties says, or 500."),
    ] = None,
    controller_quota_window_num: Annotated[
        int | None,
        typer.Option(help="For how many windows a quota holds at once; else as --properties says, or 11."),
    ] = None,
    controller_quota_window_size_seconds: Annotated[
        int | None, typer.Option(help="How long one of these windows is; else as --properties says, or 1.")
    ] = None,
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
    log_level: LogLevel = None,
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
            "--id", help="The process that is to have the role; by default the one that would do best.", min=0
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Say what is in the way, and change nothing.")] = False,
    yes: Yes = False,
    deadline_seconds: DeadlineSeconds = 60,
) -> None:
    """Has a process of ours take the role, from Kafka's controller or from another process of ours.

    Says first what is in the way. Exits with 0 when that process leads, 1 when it does not or something is in the way, 2
    when the command is wrong."""
    _move_role(zookeeper, properties, to, to_ours=True, check=check, yes=yes, deadline_s=deadline_seconds)


@commands.command("hand-over")
def hand_over(
    zookeeper: ZooKeeper,
    properties: Properties = None,
    to: Annotated[
        int | None,
        typer.Option(help="A process of ours that is to have the role; by default Kafka's brokers, for good.", min=0),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Say what is in the way, and change nothing.")] = False,
    yes: Yes = False,
    deadline_seconds: DeadlineSeconds = 60,
) -> None:
    """Gives the role to Kafka's brokers, who keep it until `take-over`, or to another process of ours.

    Says first what is in the way. Exits with 0 when the other has it, 1 when it does not or something is in the way, 2
    when the command is wrong."""
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
    """Looks, says what was found, has it confirmed, and moves, in a second session: no session waits for a person."""
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
            typer.echo(f"{'in the way' if obstacle.is_in_the_way else 'mind'}: {obstacle.said}")
        if is_done:
            return
        if any(obstacle.is_in_the_way for obstacle in found):
            raise typer.Exit(1)
        heir = "Kafka's brokers" if target is None else f"process {target}"
        if check or not confirmed(f"The role goes to {heir}.", yes=yes):
            return
        asyncio.run(_move(options, picture, target, deadline_s))
    except InvalidSettings as error:
        raise usage_error(error) from error
    except (ZkError, MalformedZnode, NoCluster, NotMoved) as error:
        raise failure(error) from error


async def _look(
    options: "ZooKeeperOptions", to: "BrokerId | None", *, to_ours: bool
) -> "tuple[RolePicture, BrokerId | None, list[Obstacle]]":
    from controller_core.process.connections import zookeeper_session
    from kontroller.role.obstacles import Obstacle, obstacles
    from kontroller.role.picture import look

    session = await zookeeper_session(options, makes_chroot=False)
    try:
        picture = await look(session)
        target = to if to is not None or not to_ours else picture.holder_of_ours or picture.best_process
        found = await obstacles(session, picture, target)
    finally:
        await session.close()
    if to_ours and target is None:
        nobody = "no process of ours stands by: start one with `kontroller controller run`"
        found = [Obstacle(said=nobody), *(one for one in found if one.is_in_the_way)]
    return picture, target, found


async def _move(
    options: "ZooKeeperOptions", picture: "RolePicture", target: "BrokerId | None", deadline_s: float
) -> None:
    from controller_core.process.connections import zookeeper_session
    from kontroller.role.moving import move

    session = await zookeeper_session(options, makes_chroot=False)
    try:
        moved = await move(session, picture, target, deadline_s, typer.echo)
        detours = f", with {moved.detours} brokers in between" if moved.detours else ""
        typer.echo(
            f"{moved.holder} has the role, under controller epoch {moved.epoch}{detours}; "
            f"there was no controller for {moved.gap_s:.2f} s"
        )
    finally:
        await session.close()
