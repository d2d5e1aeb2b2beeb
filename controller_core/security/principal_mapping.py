"""`ssl.principal.mapping.rules`: maps a certificate's subject to a principal's name (KIP-371), for example with
`RULE:^CN=(.*?),OU=.*$/$1/L, DEFAULT`.

The first rule that matches the whole subject decides the name. Patterns use Python's syntax. It equals Java's except
for classes such as `\\p{Alpha}` and `&&` inside a class: those are refused or never match.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_RULE: Final = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_BETWEEN: Final = re.compile(r"\s*(?:,\s*|$)")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)


class NoRuleApplies(Exception):
    """No rule maps the subject to a name, so its owner is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    pattern: re.Pattern[str] | None = None
    """None if the subject itself is the name."""
    replacement: str = ""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        name = self.pattern.sub(self._replace, subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _replace(self, found: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda reference: _expand_reference(reference, found), self.replacement)


class PrincipalMapping:
    """The mapping rules, in the order in which they are tried."""

    def __init__(self, text: str = "DEFAULT") -> None:
        """Parse the rules. Raises `ValueError` if the text is not a list of rules."""
        self._rules: Sequence[_Rule] = _rules(text.strip() or "DEFAULT")

    def find_name(self, subject: str) -> str:
        """Return the name of a subject. Raises `NoRuleApplies`."""
        for rule in self._rules:
            name = rule.apply(subject)
            if name is not None:
                return name
        raise NoRuleApplies(f"no rule applies to the certificate of {subject[:200]}")


def _rules(text: str) -> list[_Rule]:
    rules, position = [], 0
    while position < len(text):
        found = _RULE.match(text, position)
        end = _BETWEEN.match(text, found.end()) if found else None
        if found is None or end is None:
            raise ValueError(
                f"{text[position : position + 80]!r} is not a rule: write RULE:pattern/replacement/[LU] or DEFAULT"
            )
        rules.append(_rule(found))
        position = end.end()
    return rules


def _rule(found: re.Match[str]) -> _Rule:
    if found[1]:
        return _Rule()
    try:
        return _Rule(pattern=re.compile(found[2]), replacement=found[3], case=found[4])
    except re.error as error:
        raise ValueError(f"the pattern {found[2][:80]!r} cannot be read: {error}") from error


def _expand_reference(reference: re.Match[str], found: re.Match[str]) -> str:
    """Return the text that replaces a reference. As in Java, `$12` means group 1 and a "2" if there is no group 12."""
    if reference[1] is not None:
        return reference[1]
    digits, groups = reference[2], found.re.groups
    for length in range(len(digits), 0, -1):
        if int(digits[:length]) <= groups:
            return (found[int(digits[:length])] or "") + digits[length:]
    return reference[0]
