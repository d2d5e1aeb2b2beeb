"""How a command ends when it cannot go on: one line that says why, and an exit code that says whose turn it is."""

import asyncio
import os
import sys
from collections.abc import Coroutine, Sequence
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperGroup

EXIT_FAILED = 1
EXIT_USAGE = 2
_UsageError: Final[Any] = typer.BadParameter.__mro__[1]
"""What Typer raises of a command line that it cannot read; it does not export it."""
_HELP: Final = "Usage:"
"""So begins the help, which is what a group of commands raises that is given none."""


class OneLine(TyperGroup):
    """Commands that say in one line what is wrong with their command line, as with all else that is wrong."""

    def main(self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **more: Any) -> Any:  # type: ignore[override]  # the rest by name only
        """See Typer."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **more)
        try:
            code = super().main(args, standalone_mode=False, **more)
        except _UsageError as error:
            said = error.format_message().replace("Value error, ", "")
            if said.startswith(_HELP):
                error.show()
                sys.exit(EXIT_USAGE)
            hint = f" ({error.ctx.command_path} --help says more)" if error.ctx is not None else ""
            typer.echo(f"kontroller: {' '.join(said.split()).rstrip('.')}{hint}", err=True)
            sys.exit(EXIT_USAGE)
        except typer.Abort:
            typer.echo("kontroller: interrupted", err=True)
            sys.exit(EXIT_FAILED)
        sys.exit(code if isinstance(code, int) else 0)


def failure(error: Exception) -> typer.Exit:
    """Says what went wrong; the same command may work later."""
    say_in_one_line(error)
    return typer.Exit(EXIT_FAILED)


def usage_error(error: Exception) -> typer.Exit:
    """Says what to change about the command."""
    say_in_one_line(error)
    return typer.Exit(EXIT_USAGE)


def say_in_one_line(said: object) -> None:
    """On standard error, and in one line even where a server's words have more."""
    typer.echo(f"kontroller: {' '.join(str(said).split())}", err=True)


def run_and_exit(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Runs a command whose time is limited, and exits with what it returns, at once.

    The interpreter would wait for its threads, and a name that is being looked up holds one for as long as the
    resolver pleases: a hook of Kubernetes' would be kept from ending in time."""
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(work)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
