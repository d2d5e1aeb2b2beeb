"""What a server says to who logs in, by PLAIN (RFC 4616) and SCRAM (RFC 5802), as Kafka's brokers do.

Users' credentials are looked up while the exchange waits, which scramp's server cannot; and it refuses short salts, and
changes names of other alphabets, which Kafka takes as they are. A user that nobody knows is asked for his proof like any
other, with a salt that is always the same for him: who does not know the password learns nothing of who is there.
"""

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from controller_core.model.scram import SCRAM_MECHANISMS, ScramMechanism, StoredCredential

_SCRAM: Final = {mechanism.name: mechanism for mechanism in SCRAM_MECHANISMS.values()}
_NAME: Final = r"(?:[^\0=,]|=2C|=3D)+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = r"(?:,[A-Za-z]+=[^\0,]+)*"
_FIRST: Final = re.compile(
    rf"(?P<header>[ny],(?:a=(?P<authorized>{_NAME}))?,)(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
)
_FINAL: Final = re.compile(
    rf"(?P<unproved>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_NO_BINDING: Final = b"n,,"
"""What Java's clients bind to, whatever their first message said."""
_TOKENS: Final = "tokenauth=true"
_SECRET: Final = secrets.token_bytes(32)
"""What salts of unknown users are made from."""


class InvalidLogin(Exception):
    """A client is not whom it says, or says what is no login. The message is for the log, and quotes nothing."""

    def __init__(self, why: str, *, told: str | None = None) -> None:
        """`told`: what the client may know of that; None: nothing more than that it failed."""
        super().__init__(why)
        self.told = told


class Exchange(Protocol):
    """One login, message by message."""

    @property
    def user(self) -> str | None:
        """Who has logged in; None before."""
        ...

    async def answer(self, message: bytes) -> bytes:
        """What the server says to the client's next message. Raises `InvalidLogin`, `CredentialsOutOfReach`."""
        ...


class ScramCredentials(Protocol):
    """The seam for where credentials are."""

    async def of(self, mechanism: str, user: str) -> StoredCredential | None:
        """None where the user has none by that mechanism. Raises `CredentialsOutOfReach`."""
        ...


class PlainExchange:
    """A name and a password, in one message."""

    def __init__(self, users: Mapping[str, str]) -> None:
        """`users`: their passwords."""
        self._users = users
        self.user: str | None = None

    async def answer(self, message: bytes) -> bytes:
        """See `Exchange`."""
        authorized, user, password = _plain(message)
        known = self._users.get(user)
        is_right = hmac.compare_digest(_digest(password), _digest(secrets.token_hex() if known is None else known))
        if known is None or not is_right:
            raise InvalidLogin("wrong name or password", told="Authentication failed: Invalid username or password")
        _require_same(authorized, user)
        self.user = user
        return b""


class ScramExchange:
    """A proof that the client knows the password, and one that the server knows of it."""

    def __init__(self, mechanism: str, credentials: ScramCredentials) -> None:
        self._mechanism: ScramMechanism = _SCRAM[mechanism]
        self._credentials = credentials
        self._challenge: _Challenge | None = None
        self.user: str | None = None

    async def answer(self, message: bytes) -> bytes:
        """See `Exchange`."""
        text = _text(message)
        if self._challenge is None:
            self._challenge = await self._challenged(_matched(_FIRST, text))
            return self._challenge.said.encode()
        said = self._verified(self._challenge, _matched(_FINAL, text))
        self.user = self._challenge.name
        return said

    async def _challenged(self, first: re.Match[str]) -> "_Challenge":
        if _TOKENS in first["bare"].split(","):
            raise InvalidLogin("it logs in by a delegation token, which is not served here")
        name = _unescaped(first["name"])
        _require_same(_unescaped(first["authorized"] or ""), name)
        known = await self._credentials.of(self._mechanism.name, name)
        is_known = known is not None and known.iterations >= self._mechanism.min_iterations
        return _Challenge(
            name=name,
            header=first["header"],
            bare=first["bare"],
            nonce=first["nonce"] + secrets.token_hex(16),
            credential=known if known is not None and is_known else self._made_up(name),
            is_known=is_known,
        )

    def _made_up(self, name: str) -> StoredCredential:
        salt = hmac.digest(_SECRET, f"{self._mechanism.name} {name}".encode(), "sha256")
        keys = hmac.digest(_SECRET, salt, self._mechanism.digest)
        iterations = self._mechanism.min_iterations
        return StoredCredential(salt=salt, stored_key=keys, server_key=keys, iterations=iterations)

    def _verified(self, challenge: "_Challenge", final: re.Match[str]) -> bytes:
        credential = challenge.credential
        said = f"{challenge.bare},{challenge.said},{final['unproved']}".encode()
        is_bound = _decoded(final["binding"]) in (challenge.header.encode(), _NO_BINDING)
        proof, signature = _decoded(final["proof"]), self._hmac(credential.stored_key, said)
        if len(proof) != len(signature):
            raise InvalidLogin("its proof has a wrong length")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(self._hash(client_key), credential.stored_key)
        if not (is_right and challenge.is_known and is_bound and final["nonce"] == challenge.nonce):
            raise InvalidLogin("wrong name or password")
        return b"v=" + b64encode(self._hmac(credential.server_key, said))

    def _hash(self, data: bytes) -> bytes:
        return hashlib.new(self._mechanism.digest, data).digest()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._mechanism.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Challenge:
    """What a client said first, and is to prove."""

    name: str
    header: str
    bare: str
    nonce: str
    credential: StoredCredential
    is_known: bool

    @property
    def said(self) -> str:
        """The server's first message."""
        return f"r={self.nonce},s={b64encode(self.credential.salt).decode()},i={self.credential.iterations}"


def _plain(message: bytes) -> tuple[str, str, str]:
    parts = _text(message).split("\0")
    if len(parts) != 3 or not parts[1] or not parts[2]:
        raise InvalidLogin("it says no name or no password")
    authorized, user, password = parts
    return authorized, user, password


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _require_same(authorized: str, user: str) -> None:
    if authorized not in ("", user):
        told = "Authentication failed: Client requested an authorization id that is different from username"
        raise InvalidLogin("it wants to be taken for somebody else", told=told)


def _digest(text: str) -> bytes:
    """Of the same length for all: how long a comparison takes tells nothing of a password's length."""
    return hashlib.sha256(text.encode()).digest()


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise InvalidLogin("it says what is no text") from None


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise InvalidLogin("it says what is no message of SCRAM")
    return found


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except NoBase64:
        raise InvalidLogin("it says what is no base64") from None
