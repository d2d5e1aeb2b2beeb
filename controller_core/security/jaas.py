"""Logins in the syntax of Java's login modules: `MODULE required username="u" password="p";`.

Kafka reads them with Java's `StreamTokenizer`, so this module has its rules for words, quotes, escapes and comments.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from controller_core.security.properties_file import InvalidProperties

_USER: Final = "user_"
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""[\0-\x20]+ | /\*.*?(?:\*/|\Z) | /.?[^\r\n]*  # blanks and comments; one slash begins a comment, too
    | (?P<word>[A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9_$.\-\xa0-\U0010ffff]*)
    | (?P<quote>["'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\r\n])*)(?P=quote)?  # a line end also ends a quotation
    | (?P<symbol>.)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(?:(?P<octal>[0-3][0-7]{0,2}|[4-7][0-7]?)|(?P<character>.))", re.DOTALL)
_CONTROLS: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_WORD: Final = "w"
_SHAPE: Final = re.compile(f"{_WORD}{_WORD}(?:{_WORD}={_WORD})*;")
"""The kinds of the tokens of a login module. A token that is no word is its own kind."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NameAndPassword:
    """A login: the user's name and the password that proves it."""

    username: str
    password: str = field(repr=False)


def read_jaas(text: str, *, name: str, module: str) -> NameAndPassword:
    """Return the login in a JAAS property. Raises `InvalidProperties`, which never shows the password.

    `name` is the property's name. `module` is the login module that an error suggests.
    """
    options = read_options(text, name)
    try:
        return NameAndPassword(username=options["username"], password=options["password"])
    except KeyError as error:
        example = f'{module} required username="u" password="p";'
        raise InvalidProperties(f"{name} has no {error}: write it as {example}") from None


def read_users(text: str, *, name: str) -> dict[str, str]:
    """Return the passwords of a server's users by name, from its `user_NAME="password"` options. Raises
    `InvalidProperties`."""
    options = read_options(text, name).items()
    return {option.removeprefix(_USER): password for option, password in options if option.startswith(_USER)}


def read_options(text: str, name: str) -> dict[str, str]:
    """Return the options of a JAAS property by name, none for an empty text. Raises `InvalidProperties`, which shows no
    part of the text, because each may be a secret."""
    if not text.strip():
        return {}
    tokens = list(_read_tokens(text))
    kinds, words = "".join(kind for kind, _ in tokens), [text for kind, text in tokens if kind == _WORD]
    if error := _find_error(kinds, words):
        raise InvalidProperties(f"{name} cannot be read: {error}")
    return dict(zip(words[2::2], words[3::2], strict=True))


def write_jaas(module: str, options: Mapping[str, str]) -> str:
    """Return a JAAS property with a login module and its options."""
    written = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in options.items())
    return " ".join((module, "required", *written)) + ";"


def _read_tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each token."""
    for match in _TOKEN.finditer(text):
        if match["word"] is not None:
            yield _WORD, match["word"]
        elif match["quoted"] is not None:
            yield _WORD, _ESCAPE.sub(_read_escape, match["quoted"])
        elif match["symbol"] is not None:
            yield match["symbol"], ""


def _read_escape(match: re.Match[str]) -> str:
    if match["octal"] is not None:
        return chr(int(match["octal"], 8))
    return _CONTROLS.get(match["character"], match["character"])


def _find_error(kinds: str, words: list[str]) -> str | None:
    end = kinds.find(";")
    if end < 0:
        return "no ; outside quotes ends it"
    if end < len(kinds) - 1:
        return "after its first ; there is more than a comment"
    if not kinds.startswith(_WORD * 2) or words[1].lower() not in _FLAGS:
        return f"the second word is none of {', '.join(_FLAGS)}"
    if not _SHAPE.fullmatch(kinds):
        return 'write each option as NAME="VALUE", and a quote or a backslash in a value after a backslash'
    return None
