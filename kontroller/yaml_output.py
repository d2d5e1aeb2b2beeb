"""YAML that all readers understand in the same way.

A plain `yes` or `0777` is no string in YAML 1.1, `0o17` is none in YAML 1.2, and `1e3`, `089` and `y` are none for Go's
library, which kubectl and Helm use. PyYAML quotes strings that YAML 1.1 takes for something else; this module makes it
quote the others, too.
"""

import re
from typing import Any, Final

import yaml

_WIDTH: Final = 110
_NUMBER: Final = re.compile(
    r"""[-+]?_*  # Go's library ignores underscores
    (?: 0_*[xX][0-9a-fA-F_]+ | 0_*[oO]_*[-+]?[0-7_]+ | 0_*[bB]_*[-+]?[01_]+
      | (?: \.[0-9_]+ | [0-9][0-9_]*(?:\.[0-9_]*)? ) (?: [eE]_*[-+]?[0-9_]+ )? )$""",
    re.VERBOSE,
)
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?$")
_TRUTH: Final = re.compile(r"[yYnN]$")


class InOneLine(list[Any]):
    """A list that is written on one line."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # the C implementation if there is one
    """Writes a repeated list in full instead of as an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    InOneLine, lambda dumper, each: dumper.represent_sequence("tag:yaml.org,2002:seq", each, flow_style=True)
)
# A string is quoted if one of these would take it for another type when it is read.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:timestamp", _TIME, list("0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", _TRUTH, list("yYnN"))


def dump_yaml(value: Any) -> str:
    """Return a value as a YAML document, in the order of its keys."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True))
