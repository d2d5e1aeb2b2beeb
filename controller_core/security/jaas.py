"""Who logs in, in the words of Java's login modules: `MODULE required username="u" password="p";`."""

import re
import shlex
from dataclasses import dataclass, field
from typing import Final

from controller_core.security.properties_file import InvalidProperties

_PAIR: Final = re.compile(r"([^=\s]+)=(.*)", re.DOTALL)
_USER: Final = "user_"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameAndPassword:
    """Who logs in, and what proves it."""

    username: str
    password: str = field(repr=False)


def read_jaas(text: str, *, name: str, module: str) -> NameAndPassword:
    """`name`: that of the property; `module`: the login module that an error proposes. Raises `InvalidProperties`, which
    does not tell the password."""
    options = _options(text, name)
    try:
        return NameAndPassword(username=options["username"], password=options["password"])
    except KeyError as error:
        example = f'{module} required username="u" password="p";'
        raise InvalidProperties(f"{name} has no {error}: write it as {example}") from None


def read_users(text: str, *, name: str) -> dict[str, str]:
    """The passwords of those whom a server knows, by their names: of `user_NAME="password"`. Raises `InvalidProperties`."""
    options = _options(text, name).items()
    return {option.removeprefix(_USER): password for option, password in options if option.startswith(_USER)}


def _options(text: str, name: str) -> dict[str, str]:
    try:
        words = shlex.split(text.strip().removesuffix(";"))
    except ValueError as error:
        raise InvalidProperties(f"{name} cannot be read: {error}") from None
    pairs = (_PAIR.fullmatch(word) for word in words)
    return {match[1]: match[2] for match in pairs if match}
