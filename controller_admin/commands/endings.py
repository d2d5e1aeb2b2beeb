"""How a command ends when it cannot go on: one line that says why, and an exit code that says whose turn it is."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import typer

EXIT_FAILED = 1
EXIT_USAGE = 2


def failure(error: Exception) -> typer.Exit:
    """Says what went wrong; the same command may work later."""
    typer.echo(f"kontroller: {error}", err=True)
    return typer.Exit(EXIT_FAILED)


def usage_error(error: Exception) -> typer.Exit:
    """Says what to change about the command."""
    typer.echo(f"kontroller: {error}", err=True)
    return typer.Exit(EXIT_USAGE)


def run_and_exit(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Runs a command whose time is limited, and exits with what it returns, at once.

    The interpreter would wait for its threads, and a name that is being looked up holds one for as long as the
    resolver pleases: a hook of Kubernetes' would be kept from ending in time."""
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(work)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
