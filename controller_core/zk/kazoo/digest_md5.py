"""The client's side of SASL DIGEST-MD5 (RFC 2831), as ZooKeeper's servers use it: one login, without a security layer."""

import hmac
import re
import secrets
from hashlib import md5
from typing import Final

from controller_core.security.jaas import NameAndPassword

_DIRECTIVE: Final = re.compile(rb'[\s,]*([A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))\s*(?=,|\Z)', re.DOTALL)
_ESCAPED: Final = re.compile(rb"\\(.)", re.DOTALL)
_MOST_BYTES: Final = 2048
"""The longest challenge of the standard."""
_COUNT: Final = "00000001"
_ALGORITHM: Final = b"md5-sess"
_PROTECTION: Final = b"auth"


class InvalidChallenge(Exception):
    """The server's message is malformed, asks for what is not supported, or does not prove that it knows the
    password."""


class DigestMd5:
    """One login of a user. Call `respond`, then `verify`. Both raise `InvalidChallenge`."""

    def __init__(self, user: NameAndPassword, *, uri: str, nonce: str | None = None) -> None:
        """`uri`: the service and host, such as `zookeeper/zk-sasl-md5`. `nonce`: the client's; None: a random one."""
        self._user = user
        self._uri = uri.encode()
        self._client_nonce = (nonce or secrets.token_hex(16)).encode()
        self._proof: bytes | None = None

    def respond(self, challenge: bytes) -> bytes:
        """Return the client's answer to the server's challenge."""
        given = _parse(challenge)
        if given.get(b"algorithm", [_ALGORITHM]) != [_ALGORITHM]:
            raise InvalidChallenge("it asks for another algorithm than md5-sess")
        if _PROTECTION not in re.split(rb"[\s,]+", given.get(b"qop", [_PROTECTION])[0]):
            raise InvalidChallenge("it asks for protection of each message, which is not supported")
        if len(given.get(b"nonce", [])) != 1:
            raise InvalidChallenge("it does not have one nonce")
        nonce, realm = given[b"nonce"][0], given.get(b"realm", [b""])[0]
        is_utf8 = b"charset" in given
        name = self._user.username.encode() if is_utf8 else _encode(self._user.username)
        known = b":".join((_encode(self._user.username), realm, _encode(self._user.password)))
        a1 = _hash(_digest(known) + b":" + nonce + b":" + self._client_nonce)

        def prove(method: bytes) -> bytes:
            parts = (a1, nonce, _COUNT.encode(), self._client_nonce, _PROTECTION, _hash(method + b":" + self._uri))
            return _hash(b":".join(parts))

        self._proof = prove(b"")
        said = {
            **({b"charset": b"utf-8"} if is_utf8 else {}),
            b"username": _quote(name),
            **({b"realm": _quote(realm)} if b"realm" in given else {}),
            b"nonce": _quote(nonce),
            b"nc": _COUNT.encode(),
            b"cnonce": _quote(self._client_nonce),
            b"digest-uri": _quote(self._uri),
            b"response": prove(b"AUTHENTICATE"),
            b"qop": _PROTECTION,
        }
        return b",".join(key + b"=" + value for key, value in said.items())

    def verify(self, answer: bytes) -> None:
        """Check the server's proof that it knows the password."""
        proofs = _parse(answer).get(b"rspauth", [])
        if self._proof is None or len(proofs) != 1 or not hmac.compare_digest(proofs[0], self._proof):
            raise InvalidChallenge("its proof is wrong")


def _parse(message: bytes) -> dict[bytes, list[bytes]]:
    """Return the values of each directive, by its name in lower case."""
    if len(message) > _MOST_BYTES:
        raise InvalidChallenge(f"it has {len(message)} bytes, more than {_MOST_BYTES}")
    found: dict[bytes, list[bytes]] = {}
    position = 0
    while message[position:].strip(b" \t\r\n,"):
        match = _DIRECTIVE.match(message, position)
        if match is None:
            raise InvalidChallenge(f"it is malformed from byte {position} on")
        name, quoted, token = match.groups()
        found.setdefault(name.lower(), []).append(token if quoted is None else _ESCAPED.sub(rb"\1", quoted))
        position = match.end()
    return found


def _encode(text: str) -> bytes:
    """Return the bytes that are hashed. The standard, and Java, use Latin-1 for a text that has no other characters."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _digest(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).digest()  # the mechanism has no other; TLS protects the connection


def _hash(data: bytes) -> bytes:
    return _digest(data).hex().encode()


def _quote(value: bytes) -> bytes:
    return b'"' + re.sub(rb'(["\\])', rb"\\\1", value) + b'"'
