"""The `kontroller` command.

`kontroller ready` is started every few seconds beside a broker, so imports are lazy: each command imports its
implementation when it runs."""

from typing import Annotated

import typer

from kontroller.cli import check, controller, history, operator
from kontroller.cli.administering.groups import GROUPS
from kontroller.cli.administering.shell import shell
from kontroller.cli.endings import OneLine
from kontroller.cli.importing import import_topics
from kontroller.cli.option_groups import add_command
from kontroller.cli.planning.plan import plan
from kontroller.cli.planning.snapshot import snapshot
from kontroller.cli.pods.drain import drain
from kontroller.cli.pods.ready import ready
from kontroller.cli.pods.scram_users import scram_users
from kontroller.cli.record import record
from kontroller.cli.settings_options import take_settings

main = typer.Typer(
    name="kontroller",
    cls=OneLine,
    help="A Kafka controller outside the brokers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # square brackets in help texts are literal
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"kontroller {version('kafka-kontroller')}")
        raise typer.Exit


@main.callback()
def read_common_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A Kafka controller outside the brokers."""


main.add_typer(controller.commands, name="controller")
main.add_typer(operator.commands, name="operator")
main.add_typer(check.commands, name="check")
main.add_typer(history.commands, name="history")
for name, commands in GROUPS.items():
    main.add_typer(commands, name=name)
main.command("shell")(shell)
add_command(main, "drain")(drain)
main.command("import")(import_topics)
add_command(main, "plan")(plan)
add_command(main, "ready")(ready)
main.command("record", cls=take_settings("controller_core.process.recording.settings:RecorderProcessSettings"))(record)
main.command("scram-users")(scram_users)
add_command(main, "snapshot")(snapshot)
