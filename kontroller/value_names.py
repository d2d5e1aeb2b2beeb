"""The names of options' values in help texts. Typer would show Python's types, such as list[int]."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, get_args

import typer
from typer.core import TyperGroup

_NAMES: Final[dict[Any, str]] = {
    str: "TEXT",
    int: "INTEGER",
    float: "NUMBER",
    Path: "PATH",
    typer.FileBinaryRead: "FILE",
}


class NamedValues(TyperGroup):
    """A group of commands whose help texts have names for values, also those of the groups in it."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        _name_values_of(self)


def name_values(parameters: Iterable[Any]) -> None:
    """Name the values of options that have no name of their own. Arguments are names already."""
    for each in parameters:
        kind = each.type_descriptor.annotation
        name = _NAMES.get(next(iter(get_args(kind)), kind))
        if each.param_type_name == "argument" and name is not None:
            each.display_type = lambda ctx: ""
        elif each.metavar is None:
            each.metavar = name


def _name_values_of(command: Any) -> None:
    # Options of a settings model are made, with their names, when they are first needed.
    name_values(vars(command).get("params", ()))
    for each in getattr(command, "commands", {}).values():
        _name_values_of(each)
