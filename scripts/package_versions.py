"""Compares versions of packages as PyPI, Maven and Debian order them."""

import re
from collections.abc import Callable
from functools import cmp_to_key
from itertools import zip_longest
from typing import Any, Final

from packaging.version import InvalidVersion, Version

_DIGITS: Final = re.compile(r"(\D*)(\d*)")
_MAVEN_TOKEN: Final = re.compile(r"([.-]?)(\d+|[^\d.-]+)")
_QUALIFIERS: Final = {"alpha": 0, "beta": 1, "milestone": 2, "rc": 3, "cr": 3, "snapshot": 4, "": 5, "sp": 6}
_OTHER_QUALIFIER: Final = 7
_SHORT: Final = {"a": "alpha", "b": "beta", "m": "milestone", "final": "", "ga": "", "release": ""}
_QUALIFIER, _AFTER_HYPHEN, _AFTER_DOT = range(3)
_NOTHING: Final = {
    _QUALIFIER: (_QUALIFIER, 5, ""),
    _AFTER_HYPHEN: (_AFTER_HYPHEN, 0, ""),
    _AFTER_DOT: (_AFTER_DOT, 0, ""),
}

Key = Callable[[str], Any]


def order_pypi(version: str) -> Any:
    """Return the sort key of a version (PEP 440). An invalid one is older than all valid ones."""
    try:
        return (1, Version(version))
    except InvalidVersion:
        return (0, version)


def compare_debian(one: str, other: str) -> int:
    """Return a number below, at or above zero (Debian Policy, 5.6.12)."""
    epochs, rests = zip(*(_parse_epoch(each) for each in (one, other)), strict=True)
    if epochs[0] != epochs[1]:
        return int(epochs[0]) - int(epochs[1])
    parts = zip(*(each.rpartition("-")[::2] if "-" in each else (each, "0") for each in rests), strict=True)
    return next((found for pair in parts if (found := _compare_debian_parts(*pair))), 0)


def _parse_epoch(version: str) -> tuple[int, str]:
    epoch, colon, rest = version.partition(":")
    return (int(epoch), rest) if colon and epoch.isdecimal() else (0, version)


def _compare_debian_parts(one: str, other: str) -> int:
    pairs = zip_longest(_DIGITS.findall(one), _DIGITS.findall(other), fillvalue=("", ""))
    for (text, number), (other_text, other_number) in pairs:
        for left, right in zip_longest(text, other_text, fillvalue=""):
            if left != right:
                return _weigh(left) - _weigh(right)
        if int(number or 0) != int(other_number or 0):
            return int(number or 0) - int(other_number or 0)
    return 0


def _weigh(character: str) -> int:
    if character in ("", "~"):
        return -len(character)
    return ord(character) + (0 if character.isalpha() else 256)


def compare_maven(one: str, other: str) -> int:
    """Return a number below, at or above zero (Maven's version order specification)."""
    for left, right in zip_longest(_parse_maven(one), _parse_maven(other)):
        left = left or _NOTHING[right[0]]
        right = right or _NOTHING[left[0]]
        if left != right:
            return -1 if left < right else 1
    return 0


def _parse_maven(version: str) -> list[tuple[int, int, str]]:
    tokens: list[tuple[int, int, str]] = []
    for separator, text in _MAVEN_TOKEN.findall(version.lower()):
        if text.isdecimal():
            tokens.append((_AFTER_DOT if separator == "." or not tokens else _AFTER_HYPHEN, int(text), ""))
        else:
            name = _SHORT.get(text, text)
            tokens.append(
                (_QUALIFIER, _QUALIFIERS.get(name, _OTHER_QUALIFIER), name if name not in _QUALIFIERS else "")
            )
    # Zeros and releases at the end, or before a part that follows a hyphen, mean nothing.
    kept: list[tuple[int, int, str]] = []
    for token in tokens:
        while token[0] != _AFTER_DOT and len(kept) > 1 and kept[-1] == _NOTHING[kept[-1][0]]:
            kept.pop()
        kept.append(token)
    while len(kept) > 1 and kept[-1] == _NOTHING[kept[-1][0]]:
        kept.pop()
    return kept


ORDERS: Final[dict[str, Key]] = {
    "PyPI": order_pypi,
    "Maven": cmp_to_key(compare_maven),
    "Debian": cmp_to_key(compare_debian),
}
"""The sort key of a version, by OSV's name of the ecosystem."""
