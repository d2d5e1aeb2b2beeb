"""`kontroller controller run`, the controller core as a process; `take-over` and `hand-over`, which move the role."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli import options
from kontroller.cli.administering.connection import Yes, confirm
from kontroller.cli.endings import failure, usage_error
from kontroller.cli.option_groups import add_command
from kontroller.cli.settings_options import take_settings

if TYPE_CHECKING:
    from controller_core.model.ids import BrokerId
    from controller_core.process.connections import ZooKeeperOptions
    from kontroller.role.obstacles import Obstacle
    from kontroller.role.picture import RolePicture

commands = typer.Typer(help="Run the controller, or move the controller's role.", no_args_is_help=True)


@dataclass(frozen=True, kw_only=True)
class Move:
    """A move of the role, in the cluster of a ZooKeeper."""

    zookeeper: Annotated[
        str,
        typer.Option(
            help="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot].", envvar="KONTROLLER_ZOOKEEPER"
        ),
    ]
    properties: options.ClusterProperties = None
    check: Annotated[bool, typer.Option("--check", help="Print the obstacles, and change nothing.")] = False
    yes: Yes = False
    timeout_ms: options.TimeoutMs = 60_000

    def run(self, to: int | None, *, to_ours: bool) -> None:
        """Inspect the role, print the findings, ask for confirmation, and move the role.

        The move uses a second session, so that no ZooKeeper session has to live while a person decides."""
        from controller_core.model.ids import BrokerId
        from controller_core.process.connections import ZooKeeperOptions
        from controller_core.process.settings import InvalidSettings
        from controller_core.zk.codecs import MalformedZnode
        from controller_core.zk.session import ZkError
        from kontroller.role.moving import NotMoved
        from kontroller.role.picture import NoCluster

        options = ZooKeeperOptions(zookeeper=self.zookeeper, properties=self.properties)
        try:
            picture, target, found = asyncio.run(
                _look(options, BrokerId(to) if to is not None else None, to_ours=to_ours)
            )
            is_done = picture.is_as_wanted(target)
            typer.echo(picture.described)
            for obstacle in found:
                typer.echo(f"{'obstacle' if obstacle.is_in_the_way else 'warning'}: {obstacle.said}")
            if is_done:
                return
            if any(obstacle.is_in_the_way for obstacle in found):
                raise typer.Exit(1)
            heir = "Kafka's brokers" if target is None else f"process {target}"
            if self.check or not confirm(f"The role goes to {heir}.", yes=self.yes):
                return
            asyncio.run(_move(options, picture, target, self.timeout_ms / 1000))
        except InvalidSettings as error:
            raise usage_error(error) from error
        except (ZkError, MalformedZnode, NoCluster, NotMoved) as error:
            raise failure(error) from error


@commands.command("run", cls=take_settings("controller_core.process.settings:ControllerProcessSettings"))
def run(ctx: typer.Context, settings: options.SettingsFile = None) -> None:
    """Runs a controller: competes for the controller role of a cluster, and controls the cluster while it has the role.

    Every option can also be set as KONTROLLER_<OPTION> in the environment, or in the settings file."""
    # Imported only here, because this takes longer than many other commands take to run.
    from controller_core.controller.controller import ZooKeeperGone
    from controller_core.controller.role.presence import IdInUse
    from controller_core.process.logging import configure_logging
    from controller_core.process.run import run_controller
    from controller_core.process.settings import InvalidSettings, load_settings
    from controller_core.zk.codecs import MalformedZnode
    from controller_core.zk.session import ZkError

    try:
        loaded = load_settings(ctx.obj, settings)
        configure_logging(loaded.log_format, loaded.log_level)
        asyncio.run(run_controller(loaded))
    except (InvalidSettings, IdInUse) as error:
        raise usage_error(error) from error
    except (ZkError, MalformedZnode, ZooKeeperGone, OSError) as error:
        raise failure(error) from error


@add_command(commands, "take-over")
def take_over(
    move: Move,
    to: Annotated[
        int | None,
        typer.Option(
            "--id",
            help="Id of the Kontroller process that gets the role. Default: the process that is best prepared.",
            min=0,
        ),
    ] = None,
) -> None:
    """Moves the role to a Kontroller process, from Kafka's controller or from another Kontroller process.

    Prints the obstacles first. Exits with 0 if the process leads, 1 if it does not or an obstacle prevents the move, 2
    if the command is wrong."""
    move.run(to, to_ours=True)


@add_command(commands, "hand-over")
def hand_over(
    move: Move,
    to: Annotated[
        int | None,
        typer.Option(
            help="Id of the Kontroller process that gets the role. Default: Kafka's brokers, for good.", min=0
        ),
    ] = None,
) -> None:
    """Moves the role to Kafka's brokers, which keep it until `take-over`, or to another Kontroller process.

    Prints the obstacles first. Exits with 0 if the new holder has the role, 1 if it does not or an obstacle prevents
    the move, 2 if the command is wrong."""
    move.run(to, to_ours=to is not None)


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
    options: "ZooKeeperOptions", picture: "RolePicture", target: "BrokerId | None", timeout_s: float
) -> None:
    from controller_core.process.connections import open_zookeeper_session
    from kontroller.role.moving import move

    session = await open_zookeeper_session(options, makes_chroot=False)
    try:
        moved = await move(session, picture, target, timeout_s, typer.echo)
        detours = f", with {moved.detours} brokers in between" if moved.detours else ""
        typer.echo(
            f"{moved.holder} has the role, under controller epoch {moved.epoch}{detours}; "
            f"there was no controller for {moved.gap_s:.2f} s"
        )
    finally:
        await session.close()
