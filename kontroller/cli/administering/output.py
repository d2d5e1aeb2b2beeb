"""Output of administering commands: tables for people, or one JSON or YAML document for programs."""

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from kontroller.screen import format_table


class Format(StrEnum):
    """The format of the output."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


_MEANING: Final = "Format of the output: table, json or yaml."
Output = Annotated[Format, typer.Option("--output", "-o", help=_MEANING)]


def show(output: Format, value: Any, heads: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Print a value for programs, or its rows for people."""
    say(output, value, format_table(heads, rows, most=None) or [empty])


def say(output: Format, value: Any, lines: Iterable[str], *, indent: int | str = 2) -> None:
    """Print a value for programs, or its lines for people."""
    if output is Format.JSON:
        typer.echo(json.dumps(value, indent=indent, ensure_ascii=False))
    elif output is Format.YAML:
        from kontroller.yaml_output import dump_yaml

        typer.echo(dump_yaml(value), nl=False)
    else:
        for line in lines:
            typer.echo(line)
