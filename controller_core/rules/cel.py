"""The seam to the library for CEL (Common Expression Language): expressions over the variables of topic rules.

An expression is type-checked when it is compiled, so a wrong name or type is found at the start of a process. The
library bounds the work of one evaluation: 10,000 steps of all comprehensions together, and regular expressions in linear
time. `map`, `filter` and comparisons of collections are quadratic, so the variables have few entries.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

BOOL: Final = "BOOL"
STRING: Final = "STRING"

_SHAPE: Final[Mapping[str, Any]] = {
    "name": cel.Type.STRING,
    "partitions": cel.Type.INT,
    "replicationFactor": cel.Type.INT,
    "configs": cel.Type.Map(cel.Type.STRING, cel.Type.STRING),
}
_TYPES: Final[Mapping[str, Any]] = {
    **{f"topic.{name}": type_ for name, type_ in _SHAPE.items()},
    "topic.replicas": cel.Type.List(cel.Type.List(cel.Type.INT)),
    **{f"old.{name}": type_ for name, type_ in _SHAPE.items()},
    "request.kind": cel.Type.STRING,
    "request.principal": cel.Type.STRING,
    "request.namespace": cel.Type.STRING,
}
VARIABLES: Final = (*_TYPES, "old")
"""The names that an expression may use. `old` itself can only be compared with null."""


def _make_environment(old: Any) -> Any:
    extensions = [ext_optional.ExtOptional(), ext_strings.ExtStrings()]
    return cel.NewEnv(variables={**_TYPES, "old": old}, extensions=extensions)


_CHECKED: Final = _make_environment(cel.Type("google.protobuf.BoolValue"))
"""For the type check: `old` may be null and has no fields, so a wrong field such as `old.partition` is found."""
_EVALUATED: Final = _make_environment(cel.Type.DYN)
"""For the evaluation: the library takes no Python value for the nullable type of the other environment."""
_ERROR: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_STATUS: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
"""The status code that the library puts before and after its messages."""


class InvalidExpression(Exception):
    """An expression that cannot be compiled."""

    def __init__(self, reason: str, line: int = 1, column: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        """The line within the expression, from 1."""
        self.column = column


class EvaluationFailed(Exception):
    """An expression that has no value for the given variables."""


class Values:
    """The values of the variables, for the evaluation of several expressions."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._activation = _EVALUATED.Activation(dict(values))

    def evaluate(self, program: Any) -> Any:
        """Return the value of a compiled expression. Raises `EvaluationFailed`."""
        try:
            result = program.eval(self._activation)
            value = result.value()
        except RuntimeError as error:
            raise EvaluationFailed(_STATUS.sub("", str(error))) from error
        if result.type() == cel.Type.ERROR:
            raise EvaluationFailed(_STATUS.sub("", str(value)))
        return value


def compile_expression(source: str, wanted: str) -> Any:
    """Return the compiled form of an expression of the wanted type: `BOOL` or `STRING`. Raises `InvalidExpression`."""
    try:
        found = _CHECKED.compile(source).return_type().name()
        program = _EVALUATED.compile(source)
    except (RuntimeError, TypeError) as error:  # it raises TypeError for text that is not Unicode
        raise _translate(error) from error
    if found != wanted:
        raise InvalidExpression(f"it gives {found}, and must give {wanted}")
    return program


def _translate(error: Exception) -> InvalidExpression:
    if isinstance(error, TypeError):
        return InvalidExpression("it has a character that is not Unicode")
    at = _ERROR.search(str(error))
    if at is None:
        return InvalidExpression(_STATUS.sub("", str(error).splitlines()[0]))
    reason = _STATUS.sub("", at[3]).removesuffix(" (in container '')").partition(" expecting {")[0]
    if "'wrapper(bool)'" in reason:
        reason = "old has no field of that name, and can itself only be compared with null"
    return InvalidExpression(reason, int(at[1]), int(at[2]))
