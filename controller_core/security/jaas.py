"""Logins in the syntax of Java's login modules: `MODULE required username="u" password="p";`."""

import re
import shlex
from dataclasses import dataclass, field
from typing import Final

from controller_core.security.properties_file import InvalidProperties

_PAIR: Final = re.compile(r"([^=\s]+)=(.*)", re.DOTALL)
_USER: Final = "user_"


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
    """Return the options of a JAAS property by name. Raises `InvalidProperties`."""
    try:
        words = shlex.split(text.strip().removesuffix(";"))
    except ValueError as error:
        raise InvalidProperties(f"{name} cannot be read: {error}") from None
    pairs = (_PAIR.fullmatch(word) for word in words)
    return {match[1]: match[2] for match in pairs if match}
