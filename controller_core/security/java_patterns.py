"""Java's regular expressions, as far as they mean the same here, matched by RE2 in linear time.

RE2 and Python read many patterns in another way than Java: `\\w` may match all of Unicode, `$` other line ends. So this
module reads the pattern itself, translates what every release of Java reads in one way, and refuses the rest with a
sentence that says what to write. RE2 never backtracks, so a subject cannot make a match take long.
"""

import re
import string
from collections.abc import Callable, Sequence
from typing import Final

import re2

LINE_ENDS: Final = "\n\r\x85\u2028\u2029"
"""The characters that `.` does not match, and before which `$` may match."""
_CLASSES: Final = {
    "d": "0-9",
    "D": r"\x00-/:-\x{10FFFF}",
    "w": "0-9A-Z_a-z",
    "W": r"\x00-/:-@\[-\^`{-\x{10FFFF}",
    "s": r"\t-\r ",
    "S": r"\x00-\x08\x0E-\x1F!-\x{10FFFF}",
}
"""Java's classes as ranges of RE2. Java's `\\s` has the vertical tab, unlike RE2's."""
_REPEAT: Final = re.compile(r"([*+?]|\{(\d{1,4})(?:,(\d{0,4}))?\})([?+]?)", re.ASCII)
_GROUP_NAME: Final = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_LITERALS: Final = frozenset(map(chr, range(0x20, 0x7F)))
_ESCAPABLE: Final = frozenset(string.punctuation + " ")
_MAX_DEPTH: Final = 50


class UnsupportedPattern(ValueError):
    """A pattern that Java refuses or may read in another way. The message says what to write."""


class JavaPattern:
    """A pattern as `java.util.regex.Pattern` reads it without flags, for texts without `LINE_ENDS`."""

    def __init__(self, pattern: str) -> None:
        """Translate the pattern. Raises `UnsupportedPattern`."""
        translation = _Translation(pattern)
        options = re2.Options()
        options.log_errors = False
        try:
            self._matcher = re2.compile(translation.translate(), options)
        except re2.error as error:
            raise UnsupportedPattern(f"RE2 cannot match it ({error}): write a shorter one") from error
        self.groups: Final = translation.groups
        """The number of capturing groups."""
        self.names: Final = translation.names
        """The numbers of the named groups."""

    def replace_all(self, text: str, write: Callable[[Sequence[str]], str]) -> str | None:
        """Return the text with all matches replaced as by `String.replaceAll`, or None unless it matches as a whole.

        `write` returns the text for the groups of a match. Groups that matched nothing are empty. Raises `ValueError`
        if Java would cut a character in two.
        """
        content, start, pieces = text.encode(), 0, []
        if self._matcher.fullmatch(content) is None:
            return None
        position = 0
        while position <= len(content) and (found := self._matcher.search(content, position)) is not None:
            first, end = found.span()
            pieces += [
                content[start:first].decode(),
                write([(found[number] or b"").decode() for number in range(self.groups + 1)]),
            ]
            start = end
            position = end if end > first else end + _size_at(content, end)
        return "".join([*pieces, content[start:].decode()])


def _size_at(content: bytes, position: int) -> int:
    """Return the size in UTF-8 of the character after an empty match."""
    first = content[position] if position < len(content) else 0
    if first >= 0xF0:
        raise ValueError("its pattern matches nothing before a character above U+FFFF, which Java would cut in two")
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3


class _Translation:
    """A pass over a pattern that writes RE2's for it."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._position = 0
        self.groups = 0
        self.names: dict[str, int] = {}

    def translate(self) -> str:
        for character in self._pattern:
            if character not in _LITERALS:
                raise UnsupportedPattern(f"it has the character {character!r}: write ASCII, and . or [^,] for others")
        translated, _ = self._translate_alternatives(0)
        if self._position < len(self._pattern):
            raise UnsupportedPattern(r"it has a ) without a (: write \)")
        return translated

    def _peek(self, ahead: int = 0) -> str:
        place = self._position + ahead
        return self._pattern[place : place + 1]

    def _take(self) -> str:
        character = self._peek()
        self._position += 1
        return character

    def _translate_alternatives(self, depth: int) -> tuple[str, bool]:
        """Return the translation up to the end of the group, and True if it can match nothing."""
        if depth > _MAX_DEPTH:
            raise UnsupportedPattern(f"its groups are nested more than {_MAX_DEPTH} deep")
        translated, can_be_empty = self._translate_sequence(depth)
        while self._peek() == "|":
            self._take()
            other, other_can_be_empty = self._translate_sequence(depth)
            translated, can_be_empty = f"{translated}|{other}", can_be_empty or other_can_be_empty
        return translated, can_be_empty

    def _translate_sequence(self, depth: int) -> tuple[str, bool]:
        pieces, can_be_empty = [], True
        while self._peek() not in ("", "|", ")"):
            start, groups = self._position, self.groups
            piece, piece_can_be_empty = self._translate_atom(depth)
            repeated = self._pattern[start : self._position]
            repeat, may_be_left_out = self._read_repeat(repeated, piece_can_be_empty)
            is_group_inside = self.groups > groups + (not repeated.startswith("(?:"))
            if is_group_inside and repeat and not repeat.startswith("?"):
                # Java keeps the text of such a group when it gives back a repetition to match the rest.
                raise UnsupportedPattern(
                    f"{repeated}{repeat} repeats a group inside of it: write (?:...) for the inner one, or leave out "
                    f"{repeat}"
                )
            pieces.append(piece + repeat)
            can_be_empty = can_be_empty and (piece_can_be_empty or may_be_left_out)
        return "".join(pieces), can_be_empty

    def _read_repeat(self, repeated: str, can_be_empty: bool) -> tuple[str, bool]:
        """Return what follows an atom, and True if it allows no repetition."""
        found = _REPEAT.match(self._pattern, self._position)
        if found is None:
            return "", False
        text, least, most, kind = found.groups()
        self._position = found.end()
        if kind == "+":
            raise UnsupportedPattern(f"{repeated}{text}+ is possessive, which is not supported: write {repeated}{text}")
        if can_be_empty:
            raise UnsupportedPattern(
                f"{repeated} can match nothing, so {repeated}{text} is ambiguous: leave out {text}"
            )
        if most and int(most) < int(least):
            raise UnsupportedPattern(f"{text} has its bounds in the wrong order")
        if self._peek() and self._peek() in "*+?{":
            raise UnsupportedPattern(f"{repeated}{found[0]}{self._peek()} repeats twice: leave one out")
        return found[0], text in ("*", "?") or (least is not None and int(least) == 0)

    def _translate_atom(self, depth: int) -> tuple[str, bool]:
        character = self._take()
        match character:
            case "^":
                return r"\A", True
            case "$":
                return r"\z", True
            case ".":
                return rf"[^{''.join(map(_quote, LINE_ENDS))}]", False
            case "(":
                return self._translate_group(depth)
            case "[":
                return self._translate_class(), False
            case "\\":
                escaped = self._take()
                if escaped in _CLASSES:
                    return f"[{_CLASSES[escaped]}]", False
                return _quote(_check_escape(escaped)), False
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise UnsupportedPattern(
                    f"it has a {character} where nothing is to repeat or close: write \\{character}"
                )
        return _quote(character), False

    def _translate_group(self, depth: int) -> tuple[str, bool]:
        opening = "("
        if self._pattern.startswith("?:", self._position):
            self._position += 2
            opening = "(?:"
        elif self._peek() == "?":
            named = _GROUP_NAME.match(self._pattern, self._position)
            if named is None or named[1] in self.names:
                raise UnsupportedPattern(
                    f"it has ({self._pattern[self._position : self._position + 3]}: only (...), (?:...) and "
                    "(?<name>...) with another name each are supported; write [Aa] for a letter in either case"
                )
            self._position = named.end()
            self.names[named[1]] = self.groups + 1
        self.groups += opening == "("
        translated, can_be_empty = self._translate_alternatives(depth + 1)
        if self._take() != ")":
            raise UnsupportedPattern(r"it has a ( without a ): write \(")
        return f"{opening}{translated})", can_be_empty

    def _translate_class(self) -> str:
        start = self._position
        opening = "["
        if self._peek() == "^":
            self._take()
            opening = "[^"
        pieces: list[str] = []
        while self._peek() != "]" or not pieces:
            pieces.append(self._translate_class_item(is_first=not pieces, start=start))
        self._take()
        return f"{opening}{''.join(pieces)}]"

    def _translate_class_item(self, *, is_first: bool, start: int) -> str:
        if self._peek() == "-" and not is_first and self._peek(1) != "]":
            raise UnsupportedPattern(
                rf"it has a - in [{self._pattern[start : self._position]} that is no range: write \-"
            )
        first = self._read_class_character()
        is_range = self._peek() == "-" and self._peek(1) not in ("]", "")
        if len(first) > 1:
            if is_range:
                raise UnsupportedPattern(r"it has a class before a - in [...]: write \-")
            return first
        if not is_range:
            return _quote(first)
        self._take()
        last = self._read_class_character()
        if len(last) > 1 or last < first:
            raise UnsupportedPattern(rf"{first}-{last[:1]} in [...] is no range: write \-")
        return f"{_quote(first)}-{_quote(last)}"

    def _read_class_character(self) -> str:
        """Return the next character in a class, or the ranges of a class in it."""
        character = self._take()
        if character == "\\":
            escaped = self._take()
            return _CLASSES.get(escaped) or _check_escape(escaped)
        if not character:
            raise UnsupportedPattern(r"it has a [ without a ]: write \[")
        if character in "[]^&":
            raise UnsupportedPattern(f"it has a {character} in [...]: write \\{character}")
        return character


def _quote(character: str) -> str:
    return character if character.isascii() and character.isalnum() else f"\\x{{{ord(character):X}}}"


def _check_escape(character: str) -> str:
    if character not in _ESCAPABLE:
        raise UnsupportedPattern(
            f"it has \\{character}: only \\d \\D \\w \\W \\s \\S and escaped punctuation are supported; "
            "write a class such as [A-Za-z]"
        )
    return character
