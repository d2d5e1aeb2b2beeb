"""`kontroller shell`: the commands that administer a cluster, typed one after the other."""

import os

import typer

from kontroller.cli.administering.connection import Config, Server, properties_of
from kontroller.cli.endings import OneLine, usage_error


def shell(server: Server = None, command_config: Config = None) -> None:
    """Reads commands and does them: topics, reassign, elect, features, cluster. `help` shows them, `exit` ends.

    Tab completes commands, options, and what the cluster has. The prompt shows its controller."""
    from kontroller.cli.administering.groups import GROUPS
    from kontroller.cli.administering.interactive import run_shell
    from kontroller.client.errors import InvalidArgument

    root = typer.Typer(name="kontroller", cls=OneLine, pretty_exceptions_enable=False, rich_markup_mode=None)
    for name, commands in GROUPS.items():
        root.add_typer(commands, name=name)
    try:
        properties = properties_of(server, command_config)
        properties.security()
    except InvalidArgument as error:
        raise usage_error(error) from error
    # By these the commands find the same cluster.
    os.environ["KONTROLLER_BOOTSTRAP"] = ",".join(map(str, properties.bootstrap_servers))
    if command_config is not None:
        os.environ["KONTROLLER_COMMAND_CONFIG"] = str(command_config)
    run_shell(properties, root)
