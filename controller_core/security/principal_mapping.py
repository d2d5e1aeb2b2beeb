"""`ssl.principal.mapping.rules`: maps a certificate's subject to a principal's name (KIP-371), for example with
`RULE:^CN=(.*?),OU=.*$/$1/L, DEFAULT`.

The first rule that matches the whole subject decides the name. A name is the one that Kafka gives. Rules that Kafka
refuses, or reads in another way depending on its release or Java's, are refused when they are read.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controller_core.security.java_patterns import LINE_ENDS, JavaPattern

_RULE: Final = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_BETWEEN: Final = re.compile(r" *(?:, *|$)")
_PIECE: Final = re.compile(r"\\(?P<literal>.)|\$(?:\{(?P<name>\w+)\}|(?P<number>[0-9]+))|(?P<text>[^\\$]+)")
_ESCAPED_NUMBER: Final = re.compile(r"\\\$([0-9]+)")
_MAX_DIGITS: Final = 9
_MAX_SUBJECT: Final = 4096
"""The longest subject, in characters. X.520 allows 64 for most attributes."""


class NoRuleApplies(Exception):
    """No rule maps the subject to a name, so its owner is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    pattern: JavaPattern | None = None
    """None if the subject itself is the name."""
    replacement: tuple[str | int, ...] = ()
    """Texts, and the numbers of groups."""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        if self.pattern is None:
            return subject
        name = self.pattern.replace_all(subject, self._replace)
        return name if name is None or not self.case else _change_case(name, self.case)

    def _replace(self, groups: Sequence[str]) -> str:
        return "".join(piece if isinstance(piece, str) else groups[piece] for piece in self.replacement)


class PrincipalMapping:
    """The mapping rules, in the order in which they are tried."""

    def __init__(self, text: str = "DEFAULT") -> None:
        """Parse the rules. Raises `ValueError`, which says what to change, if they have another meaning in Kafka or
        none."""
        self._rules: Final = tuple(_read_rules(text.strip(" ")))
        if not self._rules:
            raise ValueError(
                "there is no rule, so no certificate would have a name: remove the property or write DEFAULT"
            )

    def find_name(self, subject: str) -> str:
        """Return the name of a subject. Raises `NoRuleApplies`, and `ValueError` if Kafka's name depends on its
        release or Java's."""
        if len(subject) > _MAX_SUBJECT:
            raise ValueError(f"it has more than {_MAX_SUBJECT} characters")
        if not set(LINE_ENDS).isdisjoint(subject):
            raise ValueError("it has the end of a line in it")
        for rule in self._rules:
            name = rule.apply(subject)
            if name is not None:
                return name
        raise NoRuleApplies(f"no rule applies to the certificate of {subject[:200]}")


def _read_rules(text: str) -> Iterator[_Rule]:
    position = 0
    if not text.isascii() or not text.isprintable():
        raise ValueError("there is a character that is not printable ASCII: write . or [^,] for it")
    while position < len(text):
        found = _RULE.match(text, position)
        end = _BETWEEN.match(text, found.end()) if found else None
        if found is None or end is None:
            raise ValueError(
                f"{text[position : position + 80]!r} is not a rule: write RULE:pattern/replacement/[LU] or DEFAULT"
            )
        yield _read_rule(found)
        position = end.end()


def _read_rule(found: re.Match[str]) -> _Rule:
    if found[1]:
        return _Rule()
    try:
        pattern = JavaPattern(found[2])
    except ValueError as error:
        raise ValueError(f"the pattern {found[2][:80]!r} cannot be used: {error}") from error
    try:
        return _Rule(pattern=pattern, replacement=tuple(_read_replacement(found[3], pattern)), case=found[4])
    except ValueError as error:
        raise ValueError(f"the replacement {found[3][:80]!r} cannot be used: {error}") from error


def _read_replacement(text: str, pattern: JavaPattern) -> Iterator[str | int]:
    for digits in _ESCAPED_NUMBER.findall(text):
        # Kafka escapes such a number a second time, and then fails for each certificate.
        if pattern.groups and (len(digits) > _MAX_DIGITS or int(digits[0]) > pattern.groups):
            raise ValueError(f"Kafka cannot write \\${digits} with {pattern.groups} groups: leave out the $")
    position = 0
    while position < len(text):
        found = _PIECE.match(text, position)
        if found is None:
            raise ValueError(r"after $ write the number of a group or {name}, or \$ for the character")
        if found["number"]:
            yield from _read_number(found["number"], pattern.groups)
        elif found["name"]:
            if found["name"] not in pattern.names:
                raise ValueError(f"the pattern has no group {found['name']}: write (?<{found['name']}>...)")
            yield pattern.names[found["name"]]
        else:
            yield found["literal"] or found["text"]
        position = found.end()


def _read_number(digits: str, groups: int) -> Iterator[str | int]:
    """Read `$` and digits as Java does: `$12` means group 1 and a "2" if there is no group 12."""
    number = int(digits[0])
    if number > groups or len(digits) > _MAX_DIGITS:
        raise ValueError(f"the pattern has no group {digits}: its groups are 0 to {groups}")
    length = 1
    while length < len(digits) and number * 10 + int(digits[length]) <= groups:
        number = number * 10 + int(digits[length])
        length += 1
    yield number
    yield digits[length:]


def _change_case(name: str, case: str) -> str:
    for character in name:
        cases = {character, *character.lower(), *character.upper()}
        if len(cases) > 1 and any(unicodedata.ucd_3_2_0.category(each) == "Cn" for each in cases):
            raise ValueError(f"releases of Java differ in the case of its letter {character!r}: leave out /{case}")
    return name.lower() if case == "L" else name.upper()
