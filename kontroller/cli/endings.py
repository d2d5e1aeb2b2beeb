"""The ends of commands that cannot go on: one line with the reason, and an exit code that says who has to act."""

import asyncio
import os
import sys
from collections.abc import Coroutine, Sequence
from contextvars import ContextVar
from typing import Any, Final, NoReturn

import typer

from kontroller.value_names import NamedValues

EXIT_FAILED = 1
EXIT_USAGE = 2
_UsageError: Final[Any] = typer.BadParameter.__mro__[1]
"""The error that Typer raises for a wrong command line. Typer does not export it."""
_HELP: Final = "Usage:"
"""The first word of a help text. A group of commands without a command raises its help text as a usage error."""
_PROGRAM: Final[ContextVar[str]] = ContextVar("program", default="kontroller")
"""The name of the running program, with which its errors begin."""


class OneLine(NamedValues):
    """A group of commands that reports a wrong command line in one line, like every other error."""

    def main(self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **more: Any) -> Any:  # type: ignore[override]  # the rest by name only
        """Override Typer's method."""
        running = _PROGRAM.set(more.get("prog_name") or self.name or _PROGRAM.get())
        try:
            return self._run(args, standalone_mode=standalone_mode, **more)
        finally:
            _PROGRAM.reset(running)

    def _run(self, args: Sequence[str] | None, *, standalone_mode: bool, **more: Any) -> Any:
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
            say_in_one_line(f"{' '.join(said.split()).rstrip('.')}{hint}")
            sys.exit(EXIT_USAGE)
        except typer.Abort:
            say_in_one_line("interrupted")
            sys.exit(EXIT_FAILED)
        sys.exit(code if isinstance(code, int) else 0)


def failure(error: Exception) -> typer.Exit:
    """Print what went wrong, and return the exit. The same command may succeed later."""
    say_in_one_line(error)
    return typer.Exit(EXIT_FAILED)


def usage_error(error: Exception) -> typer.Exit:
    """Print what to change about the command, one line for each problem, and return the exit."""
    for problem in getattr(error, "problems", (error,)):
        say_in_one_line(problem)
    return typer.Exit(EXIT_USAGE)


def say_in_one_line(said: object) -> None:
    """Print a text on standard error in one line, even if it has several, after the name of the program."""
    typer.echo(f"{_PROGRAM.get()}: {' '.join(str(said).split())}", err=True)


def run_and_exit(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run a command with a time limit, and exit with its return value at once.

    `sys.exit` would wait for all threads, and a thread that looks up a name lasts as long as the resolver takes: a
    Kubernetes hook could then miss its deadline."""
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(work)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
