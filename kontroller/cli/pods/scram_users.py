"""`kontroller scram-users`: what runs before a broker that logs in by SCRAM itself."""

from pathlib import Path
from typing import Annotated

import typer

from kontroller.cli.endings import failure, run_and_exit, usage_error
from kontroller.cli.options import DeadlineSeconds


def scram_users(
    zookeeper: Annotated[
        str, typer.Option(help="The brokers' zookeeper.connect: host:port[,host:port...][/chroot].", show_default=False)
    ],
    directory: Annotated[
        Path, typer.Option(help="A file for each user, named like the user, with the password.", show_default=False)
    ],
    properties: Annotated[
        Path | None, typer.Option(help="How the cluster is secured: a broker's server.properties, or a part of it.")
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(help="SCRAM-SHA-256 or SCRAM-SHA-512; several times for both.", show_default="SCRAM-SHA-512"),
    ] = None,
    deadline_seconds: DeadlineSeconds = 60,
) -> None:
    """Gives users passwords in ZooKeeper, before there is a broker: those by whom brokers log in at each other.

    Who has this password already is left as he is. Exits with 0 when all are there, 1 when ZooKeeper does not answer or
    refuses, 2 when the command is wrong."""
    from kontroller.brokers.first_users import MECHANISMS, UnusableUsers, users_in

    chosen = mechanism or ["SCRAM-SHA-512"]
    if unknown := [each for each in chosen if each not in MECHANISMS]:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(MECHANISMS)}", param_hint="--mechanism")
    try:
        users = users_in(directory)
    except UnusableUsers as error:
        raise usage_error(error) from error

    from controller_core.process.connections import ZooKeeperOptions, zookeeper_session
    from controller_core.process.settings import InvalidSettings
    from controller_core.zk.codecs import MalformedZnode
    from controller_core.zk.compare_and_set import Contended
    from controller_core.zk.session import ZkError
    from kontroller.brokers.first_users import make_users

    async def run() -> int:
        options = ZooKeeperOptions(
            zookeeper=zookeeper, properties=properties, zookeeper_timeout_ms=deadline_seconds * 1000
        )
        try:
            zk = await zookeeper_session(options)
            try:
                made = await make_users(zk, users, chosen)
            finally:
                await zk.close()
        except InvalidSettings as error:
            return usage_error(error).exit_code
        except (ZkError, MalformedZnode, Contended) as error:
            return failure(error).exit_code
        typer.echo(f"{len(users)} users are there, of whom {len(made)} were given their passwords now")
        return 0

    run_and_exit(run())
