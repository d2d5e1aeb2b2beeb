"""How a command ends when it cannot go on: one line that says why, and an exit code that says whose turn it is."""

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
