"""Puts these data frames in the place of PySpark's, before the modules that use them are imported."""

import sys
from typing import Final

import pyspark.sql

from kontroller.history.engine.columns import Column, Functions, Window
from kontroller.history.engine.frames import Frame

_FUNCTIONS: Final = "pyspark.sql.functions"


def is_possible() -> bool:
    """Return True if no module of the history has imported Spark's functions yet."""
    functions = sys.modules.get(_FUNCTIONS)
    if functions is None or isinstance(functions, Functions):
        return True
    loaded = [module for name, module in sys.modules.items() if name.startswith("kontroller.history.")]
    return not any(getattr(module, "f", None) is functions for module in loaded)


def activate() -> None:
    """Let the history's modules import data frames on DuckDB. Spark cannot be used in this process any more."""
    functions = Functions(_FUNCTIONS)
    vars(pyspark.sql).update(functions=functions, DataFrame=Frame, Column=Column, Window=Window, WindowSpec=Window)
    sys.modules[_FUNCTIONS] = functions
