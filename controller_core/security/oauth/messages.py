"""The messages of SASL/OAUTHBEARER (RFC 7628), as Kafka's clients and brokers write them."""

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Extensions: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values that a client adds to its message."""

MOST_TOKEN_BYTES: Final = 32 * 1024
"""Limit of a token's size. Tokens have some hundred bytes, or some thousand if they list groups."""
GIVE_UP: Final = b"\x01"
"""The client's answer to a refusal, after which the server ends the login."""

_SEPARATOR: Final = "\x01"
_NAME: Final = r"(?:[\x02-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]{1,64}")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]{1,4096}")
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authorized>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)+)\x01"
)
_AUTH: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[-_.a-zA-Z0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMessage:
    """A client's message."""

    token: str = field(repr=False)
    authorized: str = ""
    """The user as whom the client asks to act; empty for the token's own."""


def check_extensions(extensions: Extensions) -> str | None:
    """Return an error that begins with the name of the wrong extension, or None."""
    for name, value in extensions:
        if not _EXTENSION_NAME.fullmatch(name) or name == "auth":
            return f"{name[:64]}: a name has letters only, and is not auth"
        if not _EXTENSION_VALUE.fullmatch(value):
            return f"{name}: a value has printable ASCII characters only, at most 4096"
    return None


def write_first_message(token: str, extensions: Extensions = ()) -> bytes:
    """Return the client's message."""
    pairs = "".join(f"{name}={value}{_SEPARATOR}" for name, value in (("auth", f"Bearer {token}"), *extensions))
    return f"n,,{_SEPARATOR}{pairs}{_SEPARATOR}".encode()


def read_first_message(message: bytes) -> FirstMessage | None:
    """Return a client's message, or None if it is malformed."""
    try:
        found = _FIRST.fullmatch(message.decode("ascii"))
    except UnicodeDecodeError:
        return None
    if found is None:
        return None
    pairs = [pair.split("=", 1) for pair in found["pairs"].removesuffix(_SEPARATOR).split(_SEPARATOR)]
    tokens = [_AUTH.fullmatch(value) for name, value in pairs if name == "auth"]
    if len(tokens) != 1 or tokens[0] is None or len(tokens[0]["token"]) > MOST_TOKEN_BYTES:
        return None
    authorized = (found["authorized"] or "").replace("=2C", ",").replace("=3D", "=")
    return FirstMessage(token=tokens[0]["token"], authorized=authorized)
