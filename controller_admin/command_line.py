"""The `kontroller` command.

`kontroller ready` is started every few seconds beside a broker, so nothing is imported before it is known to be needed:
each command imports what it does when it runs."""

import typer

from controller_admin import check_command, controller_command, history_command, operator_command
from controller_admin.drain_command import drain
from controller_admin.ready_command import ready
from controller_admin.record_command import record

main = typer.Typer(
    name="kontroller",
    help="A Kafka controller outside the brokers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # square brackets in a help text are what they are
)
main.add_typer(controller_command.commands, name="controller")
main.add_typer(operator_command.commands, name="operator")
main.add_typer(check_command.commands, name="check")
main.add_typer(history_command.commands, name="history")
main.command("drain")(drain)
main.command("ready")(ready)
main.command("record")(record)
