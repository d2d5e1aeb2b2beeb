"""What these commands print: tables for people, JSON or YAML of the same for programs."""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from controller_admin.screen import table


class Format(StrEnum):
    """How it is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Output = Annotated[Format, typer.Option("--output", "-o", help="table, json or yaml.")]


def ids(brokers: Sequence[int]) -> str:
    """Ids in one cell."""
    return ",".join(map(str, brokers))


def show(output: Format, value: Any, heads: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Prints a value, or for people the rows that say it."""
    if output is Format.JSON:
        typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
    elif output is Format.YAML:
        import yaml

        typer.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), nl=False)
    else:
        typer.echo("\n".join(table(heads, rows) or [empty]))
