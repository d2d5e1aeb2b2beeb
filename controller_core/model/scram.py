"""SCRAM credentials as Kafka stores them (RFC 5802). A client sends the salted password, never the password."""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Final

MAX_ITERATIONS: Final = 16_384
MAX_USER_NAME_LENGTH: Final = 10_000
"""In the encoding of znode paths."""
_CREDENTIAL: Final = re.compile(
    r"salt=(?P<salt>[^,]+),stored_key=(?P<stored_key>[^,]+),server_key=(?P<server_key>[^,]+),iterations=(?P<iterations>\d{1,9})"
)


class CredentialsOutOfReach(Exception):
    """The credentials cannot be read now, so a login cannot be judged. Retriable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramMechanism:
    """One of the two mechanisms, and its minimum of iterations."""

    name: str
    digest: str
    min_iterations: int = 4096


SCRAM_MECHANISMS: Final = {
    1: ScramMechanism(name="SCRAM-SHA-256", digest="sha256"),
    2: ScramMechanism(name="SCRAM-SHA-512", digest="sha512"),
}
"""By the number that requests use (KIP-554)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaltedPassword:
    """The salted password that a client sends instead of the password."""

    salt: bytes = field(repr=False)
    salted: bytes = field(repr=False)
    iterations: int


def make_credential(mechanism: ScramMechanism, password: SaltedPassword) -> str:
    """Return the credential for the user's configuration.

    A server can check a client with it, but not impersonate one.
    """
    client_key = hmac.digest(password.salted, b"Client Key", mechanism.digest)
    stored_key = hashlib.new(mechanism.digest, client_key).digest()
    server_key = hmac.digest(password.salted, b"Server Key", mechanism.digest)
    parts = {"salt": password.salt, "stored_key": stored_key, "server_key": server_key}
    encoded = ",".join(f"{name}={b64encode(value).decode()}" for name, value in parts.items())
    return f"{encoded},iterations={password.iterations}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCredential:
    """A stored credential, with which a server checks a client."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def read_credential(text: str) -> StoredCredential:
    """Parse a credential that `make_credential` or Kafka wrote. The message of a `ValueError` does not show the text."""
    found = _CREDENTIAL.fullmatch(text)
    if found is None:
        raise ValueError("this is not a SCRAM credential: write it again, for example with kafka-configs")
    return StoredCredential(
        salt=b64decode(found["salt"]),
        stored_key=b64decode(found["stored_key"]),
        server_key=b64decode(found["server_key"]),
        iterations=int(found["iterations"]),
    )
