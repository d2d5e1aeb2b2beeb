"""Options that several commands share, as one parameter of each command.

A group is a dataclass whose fields are options. A command has one parameter for a group, and Typer sees the fields.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

import typer


def add_command(commands: typer.Typer, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a function with groups of options to the commands."""
    return lambda function: commands.command(name)(flatten(function))


def flatten(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function whose parameters are options only: the fields of a group in the place of the group."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            parameters += inspect.signature(groups[name], eval_str=True).parameters.values()
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(function)
    def command(**given: Any) -> None:
        made = {
            name: kind(**{each.name: given.pop(each.name) for each in fields(kind)}) for name, kind in groups.items()
        }
        function(**given, **made)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
