"""What these commands print: tables for people, JSON or YAML of the same for programs, and then nothing else."""

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from kontroller.screen import table


class Format(StrEnum):
    """How it is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


_MEANING: Final = "table, json or yaml."
Output = Annotated[Format, typer.Option("--output", "-o", help=_MEANING)]


def ids(brokers: Sequence[int]) -> str:
    """Ids in one cell."""
    return ",".join(map(str, brokers))


def show(output: Format, value: Any, heads: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Prints a value, or for people the rows that say it."""
    say(output, value, table(heads, rows, most=None) or [empty])


def say(output: Format, value: Any, lines: Iterable[str], *, indent: int | str = 2) -> None:
    """Prints a value, or for people the lines that say it."""
    if output is Format.JSON:
        typer.echo(json.dumps(value, indent=indent, ensure_ascii=False))
    elif output is Format.YAML:
        import yaml

        typer.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), nl=False)
    else:
        for line in lines:
            typer.echo(line)
