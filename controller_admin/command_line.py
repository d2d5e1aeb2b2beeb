"""The `kontroller` command."""

import typer

from controller_admin import controller_command, operator_command

main = typer.Typer(
    name="kontroller",
    help="A Kafka controller outside the brokers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
main.add_typer(controller_command.commands, name="controller")
main.add_typer(operator_command.commands, name="operator")
