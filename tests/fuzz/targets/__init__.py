"""All fuzz targets, each a module with its `TARGET`."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from tests.fuzz.target import Target

NAMES: Final = tuple(sorted(module.name for module in iter_modules(__path__)))


def target(name: str) -> Target:
    """Return one of `NAMES`."""
    found: Target = import_module(f"{__name__}.{name}").TARGET
    return found
