"""Options of a command from its settings model: the model alone names, types and describes each setting.

A process has dozens of settings. Each is an option, an environment variable (KONTROLLER_<OPTION>) and a line of the
settings file. The model is imported when the options are first needed, because other commands of the same program must
start quickly.
"""

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, get_args, get_origin

import typer
from typer.core import TyperCommand

from kontroller.value_names import name_values

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_settings import BaseSettings

_OPTION_TYPES: Final = (bool, int, float)
"""The types that Typer checks. Every other setting is read as text, and checked by its model."""


class _SettingsCommand(TyperCommand):
    model: ClassVar[str]
    """The settings model, as MODULE:CLASS."""
    _declared: list[Any]
    _all: list[Any] | None

    @property
    def params(self) -> list[Any]:
        """The options of the model, and those that the function declares."""
        if self._all is None:
            self._all = [*_make_options(self._load_model()), *self._declared]
            name_values(self._all)
        return self._all

    @params.setter
    def params(self, declared: list[Any]) -> None:
        self._declared, self._all = declared, None

    def invoke(self, ctx: Any) -> Any:
        """Override Typer's method. Give the function the settings as `ctx.obj`."""
        named = {name: ctx.params.pop(name) for name in self._load_model().model_fields}
        ctx.obj = {name: value for name, value in named.items() if value not in (None, [], ())}
        return super().invoke(ctx)

    def _load_model(self) -> "type[BaseSettings]":
        module, _, name = self.model.partition(":")
        kind: type[BaseSettings] = getattr(import_module(module), name)
        return kind


def take_settings(model: str) -> type[TyperCommand]:
    """Return the class of a command that has an option for each setting of a model, given as MODULE:CLASS.

    The command's function gets a dictionary of the given values as `ctx.obj`.
    """
    return type("SettingsCommand", (_SettingsCommand,), {"model": model})


def _make_options(kind: "type[BaseSettings]") -> list[Any]:
    """Return an option for each field: required ones first, then those of the model itself, then inherited ones."""
    own = kind.__annotations__
    fields = dict(sorted(kind.model_fields.items(), key=lambda each: (not each[1].is_required(), each[0] not in own)))
    annotations = {name: _annotate(field) for name, field in fields.items()}

    def collect(**_: Any) -> None:
        """Stand for a function with these parameters: Typer makes the options from its signature."""

    collect.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in annotations.items()
        ]
    )
    collect.__annotations__ = annotations
    application = typer.Typer(add_completion=False)
    application.command()(collect)
    command: Any = typer.main.get_command(application)
    options: list[Any] = command.params
    return options


def _annotate(field: "FieldInfo") -> Any:
    is_list = get_origin(field.annotation) is tuple
    types = [get_args(each)[0] if get_origin(each) is Annotated else each for each in get_args(field.annotation)]
    kind = next((each for each in _OPTION_TYPES if each in (types or [field.annotation])), str)
    if type(None) in types and field.default is not None:
        kind = str  # the text `none` switches the setting off
    given: Any = list[str] if is_list else kind
    return Annotated[given | None, typer.Option(help=_describe(field, is_list=is_list))]


def _describe(field: "FieldInfo", *, is_list: bool) -> str:
    text = field.description or ""
    if is_list:
        text += " May be repeated."
    if "Default:" not in text and not field.is_required() and field.default not in (None, ()):
        text += f" Default: {_format_default(field.default)}."
    return text


def _format_default(default: object) -> str:
    return {True: "on", False: "off"}[default] if isinstance(default, bool) else str(default)
