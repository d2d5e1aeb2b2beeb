"""The `kontroller` command.

`kontroller ready` is started every few seconds beside a broker, so nothing is imported before it is known to be needed:
each command imports what it does when it runs."""

import typer

from controller_admin.commands import broker, check, controller, history, operator
from controller_admin.commands.administering.groups import GROUPS
from controller_admin.commands.administering.shell import shell
from controller_admin.commands.endings import OneLine
from controller_admin.commands.importing import import_topics
from controller_admin.commands.pods.drain import drain
from controller_admin.commands.pods.ready import ready
from controller_admin.commands.pods.scram_users import scram_users
from controller_admin.commands.record import record

main = typer.Typer(
    name="kontroller",
    cls=OneLine,
    help="A Kafka controller outside the brokers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # square brackets in a help text are what they are
)
main.add_typer(controller.commands, name="controller")
main.add_typer(broker.commands, name="broker")
main.add_typer(operator.commands, name="operator")
main.add_typer(check.commands, name="check")
main.add_typer(history.commands, name="history")
for name, commands in GROUPS.items():
    main.add_typer(commands, name=name)
main.command("shell")(shell)
main.command("drain")(drain)
main.command("import")(import_topics)
main.command("ready")(ready)
main.command("record")(record)
main.command("scram-users")(scram_users)
