"""`kontroller scram-users`: creates the users by which brokers log in with SCRAM, before the first broker starts."""

from pathlib import Path
from typing import Annotated

import typer

from kontroller.cli.endings import failure, run_and_exit, usage_error
from kontroller.cli.options import ClusterProperties, TimeoutMs


def scram_users(
    zookeeper: Annotated[
        str, typer.Option(help="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot].", show_default=False)
    ],
    directory: Annotated[
        Path,
        typer.Option(
            help="Folder with a file for each user: the file's name is the user's, its content the password.",
            show_default=False,
        ),
    ],
    properties: ClusterProperties = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(help="SCRAM-SHA-256 or SCRAM-SHA-512. May be repeated.", show_default="SCRAM-SHA-512"),
    ] = None,
    timeout_ms: TimeoutMs = 60_000,
) -> None:
    """Creates SCRAM credentials in ZooKeeper before there is a broker, so that brokers can log in to each other.

    Does not change users that have this password already. Exits with 0 if all users exist, 1 if ZooKeeper does not
    answer or refuses, 2 if the command is wrong."""
    from kontroller.brokers.first_users import MECHANISMS, UnusableUsers, read_users

    chosen = mechanism or ["SCRAM-SHA-512"]
    if unknown := [each for each in chosen if each not in MECHANISMS]:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(MECHANISMS)}", param_hint="--mechanism")
    try:
        users = read_users(directory)
    except UnusableUsers as error:
        raise usage_error(error) from error

    from controller_core.process.connections import ZooKeeperOptions, open_zookeeper_session
    from controller_core.process.settings import InvalidSettings
    from controller_core.zk.codecs import MalformedZnode
    from controller_core.zk.compare_and_set import Contended
    from controller_core.zk.session import ZkError
    from kontroller.brokers.first_users import make_users

    async def run() -> int:
        options = ZooKeeperOptions(zookeeper=zookeeper, properties=properties, zookeeper_timeout_ms=timeout_ms)
        try:
            zk = await open_zookeeper_session(options)
            try:
                made = await make_users(zk, users, chosen)
            finally:
                await zk.close()
        except InvalidSettings as error:
            return usage_error(error).exit_code
        except (ZkError, MalformedZnode, Contended) as error:
            return failure(error).exit_code
        typer.echo(f"{len(users)} users exist, {len(made)} of them created now")
        return 0

    run_and_exit(run())
