"""`kontroller shell`: an interactive shell of the administering commands."""

import os

import typer

from kontroller.cli.administering.connection import Server, load_properties
from kontroller.cli.endings import OneLine, usage_error
from kontroller.cli.options import CommandConfig


def shell(server: Server = None, command_config: CommandConfig = None) -> None:
    """Reads and runs commands: topics, reassign, elect, features, cluster. `help` lists them, `exit` ends the shell.

    Tab completes commands, options, and names from the cluster. The prompt shows the cluster's controller."""
    from kontroller import InvalidArgument
    from kontroller.cli.administering.groups import GROUPS
    from kontroller.cli.administering.interactive import run_shell

    root = typer.Typer(name="kontroller", cls=OneLine, pretty_exceptions_enable=False, rich_markup_mode=None)
    for name, commands in GROUPS.items():
        root.add_typer(commands, name=name)
    try:
        properties = load_properties(server, command_config)
        properties.security()
    except InvalidArgument as error:
        raise usage_error(error) from error
    # The commands find the same cluster through these variables.
    os.environ["KONTROLLER_BOOTSTRAP_SERVER"] = ",".join(map(str, properties.bootstrap_servers))
    if command_config is not None:
        os.environ["KONTROLLER_COMMAND_CONFIG"] = str(command_config)
    run_shell(properties, root)
