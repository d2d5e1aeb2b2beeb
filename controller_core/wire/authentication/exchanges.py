"""The server side of logins by PLAIN (RFC 4616), SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628), as in Kafka's brokers.

Names of other alphabets are not normalized, because Kafka takes them as they are. An unknown user gets a challenge like
any other, always with the same salt, so an attacker cannot find out which users exist.
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

from controller_core.model.scram import SCRAM_MECHANISMS, CredentialsOutOfReach, ScramMechanism, StoredCredential
from controller_core.security.oauth.messages import read_first_message
from controller_core.security.oauth.token_rules import InvalidToken, NoKeys, VerifiedToken

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
"""The channel binding that Java clients send, whatever their first message said."""
_TOKENS: Final = "tokenauth=true"
_REFUSAL: Final = '{"status":"invalid_token"}'
_SECRET: Final = secrets.token_bytes(32)
"""The secret from which the salts of unknown users are derived."""


class InvalidLogin(Exception):
    """A failed or malformed login. The message is for the log, and quotes nothing of the client's."""

    def __init__(self, why: str, *, told: str | None = None) -> None:
        """`told` is the message for the client. None if it may learn only that the login failed."""
        super().__init__(why)
        self.told = told


class Exchange(Protocol):
    """One login, message by message."""

    @property
    def user(self) -> str | None:
        """The user after a successful login; None before."""
        ...

    @property
    def lifetime_s(self) -> float | None:
        """The rest of the credential's lifetime after a successful login; None if it does not end."""
        ...

    async def answer(self, message: bytes) -> bytes:
        """Return the answer to the client's next message. Raises `InvalidLogin` and `CredentialsOutOfReach`."""
        ...


class ScramCredentials(Protocol):
    """The interface to the stored credentials."""

    async def find_credential(self, mechanism: str, user: str) -> StoredCredential | None:
        """Return a user's credential for a mechanism, or None if there is none. Raises `CredentialsOutOfReach`."""
        ...


class TokenVerification(Protocol):
    """The interface to the verification of tokens."""

    async def verify(self, token: str) -> VerifiedToken:
        """Return the content of a token. Raises `InvalidToken`, and `NoKeys` if there are no keys to verify it."""
        ...


class PlainExchange:
    """A login by name and password, in one message."""

    lifetime_s: Final = None

    def __init__(self, users: Mapping[str, str]) -> None:
        """`users` has the passwords by user."""
        self._users = users
        self.user: str | None = None

    async def answer(self, message: bytes) -> bytes:
        """See `Exchange`."""
        authorized, user, password = _plain(message)
        known = self._users.get(user)
        # Compare with a random password for an unknown user, so that the time does not reveal whether the user exists.
        is_right = hmac.compare_digest(_digest(password), _digest(secrets.token_hex() if known is None else known))
        if known is None or not is_right:
            raise InvalidLogin("wrong name or password", told="Authentication failed: Invalid username or password")
        _require_same(authorized, user)
        self.user = user
        return b""


class TokenExchange:
    """A login by a token, in one message. The client answers a refusal, and then the login ends."""

    def __init__(self, tokens: TokenVerification) -> None:
        self._tokens = tokens
        self._refused: str | None = None
        self.user: str | None = None
        self.lifetime_s: float | None = None

    async def answer(self, message: bytes) -> bytes:
        """See `Exchange`."""
        if self._refused is not None:
            raise InvalidLogin(self._refused, told=_REFUSAL)
        first = read_first_message(message)
        if first is None:
            raise InvalidLogin("the client's message is not an OAUTHBEARER message, or its token is too large")
        try:
            verified = await self._tokens.verify(first.token)
        except InvalidToken as error:
            self._refused = str(error)
            return _REFUSAL.encode()
        except NoKeys as error:
            raise CredentialsOutOfReach(str(error)) from error
        _require_same(first.authorized, verified.name)
        self.user, self.lifetime_s = verified.name, verified.expires_in_s
        return b""


class ScramExchange:
    """A login by proofs: the client proves that it knows the password, and the server that it knows its hash."""

    lifetime_s: Final = None

    def __init__(self, mechanism: str, credentials: ScramCredentials) -> None:
        self._mechanism: ScramMechanism = _SCRAM[mechanism]
        self._credentials = credentials
        self._challenge: _Challenge | None = None
        self.user: str | None = None

    async def answer(self, message: bytes) -> bytes:
        """See `Exchange`."""
        text = _text(message)
        if self._challenge is None:
            self._challenge = await self._make_challenge(_match(_FIRST, text))
            return self._challenge.said.encode()
        said = self._verify(self._challenge, _match(_FINAL, text))
        self.user = self._challenge.name
        return said

    async def _make_challenge(self, first: re.Match[str]) -> "_Challenge":
        if _TOKENS in first["bare"].split(","):
            raise InvalidLogin("the client uses a delegation token, which is not supported")
        name = _unescape(first["name"])
        _require_same(_unescape(first["authorized"] or ""), name)
        known = await self._credentials.find_credential(self._mechanism.name, name)
        is_known = known is not None and known.iterations >= self._mechanism.min_iterations
        return _Challenge(
            name=name,
            header=first["header"],
            bare=first["bare"],
            nonce=first["nonce"] + secrets.token_hex(16),
            credential=known if known is not None and is_known else self._make_up_credential(name),
            is_known=is_known,
        )

    def _make_up_credential(self, name: str) -> StoredCredential:
        salt = hmac.digest(_SECRET, f"{self._mechanism.name} {name}".encode(), "sha256")
        keys = hmac.digest(_SECRET, salt, self._mechanism.digest)
        iterations = self._mechanism.min_iterations
        return StoredCredential(salt=salt, stored_key=keys, server_key=keys, iterations=iterations)

    def _verify(self, challenge: "_Challenge", final: re.Match[str]) -> bytes:
        credential = challenge.credential
        said = f"{challenge.bare},{challenge.said},{final['unproved']}".encode()
        is_bound = _decode_base64(final["binding"]) in (challenge.header.encode(), _NO_BINDING)
        proof, signature = _decode_base64(final["proof"]), self._hmac(credential.stored_key, said)
        if len(proof) != len(signature):
            raise InvalidLogin("the client's proof has a wrong length")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(self._hash(client_key), credential.stored_key)
        # All conditions count only now, so that the answer is the same for an unknown user and a wrong password.
        if not (is_right and challenge.is_known and is_bound and final["nonce"] == challenge.nonce):
            raise InvalidLogin("wrong name or password")
        return b"v=" + b64encode(self._hmac(credential.server_key, said))

    def _hash(self, data: bytes) -> bytes:
        return hashlib.new(self._mechanism.digest, data).digest()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._mechanism.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Challenge:
    """The client's first message, and the challenge that it has to answer."""

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
        raise InvalidLogin("the client sent no name or no password")
    authorized, user, password = parts
    return authorized, user, password


def _unescape(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _require_same(authorized: str, user: str) -> None:
    if authorized not in ("", user):
        told = "Authentication failed: Client requested an authorization id that is different from username"
        raise InvalidLogin("the client asks to act as another user", told=told)


def _digest(text: str) -> bytes:
    """Return a digest of a fixed length, so that the time of a comparison does not reveal the password's length."""
    return hashlib.sha256(text.encode()).digest()


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise InvalidLogin("the client's message is not UTF-8") from None


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise InvalidLogin("the client's message is not a SCRAM message")
    return found


def _decode_base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except NoBase64:
        raise InvalidLogin("the client's message is not base64") from None
