"""SCRAM credentials as Kafka keeps them: from the salted password that a client sends, never the password (RFC 5802)."""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Final

MAX_ITERATIONS: Final = 16_384
MAX_USER_NAME_LENGTH: Final = 10_000
"""As it stands in paths."""
_CREDENTIAL: Final = re.compile(
    r"salt=(?P<salt>[^,]+),stored_key=(?P<stored_key>[^,]+),server_key=(?P<server_key>[^,]+),iterations=(?P<iterations>\d{1,9})"
)


class CredentialsOutOfReach(Exception):
    """Whether a login is right cannot be told now. Retriable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramMechanism:
    """One of the two mechanisms, and the fewest iterations that it allows."""

    name: str
    digest: str
    min_iterations: int = 4096


SCRAM_MECHANISMS: Final = {
    1: ScramMechanism(name="SCRAM-SHA-256", digest="sha256"),
    2: ScramMechanism(name="SCRAM-SHA-512", digest="sha512"),
}
"""By the number that requests know them by (KIP-554)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaltedPassword:
    """What a client sends in the place of a password."""

    salt: bytes = field(repr=False)
    salted: bytes = field(repr=False)
    iterations: int


def credential(mechanism: ScramMechanism, password: SaltedPassword) -> str:
    """The credential as it stands in the user's configuration; a server can check a client by it and not pose as one."""
    client_key = hmac.digest(password.salted, b"Client Key", mechanism.digest)
    stored_key = hashlib.new(mechanism.digest, client_key).digest()
    server_key = hmac.digest(password.salted, b"Server Key", mechanism.digest)
    parts = {"salt": password.salt, "stored_key": stored_key, "server_key": server_key}
    encoded = ",".join(f"{name}={b64encode(value).decode()}" for name, value in parts.items())
    return f"{encoded},iterations={password.iterations}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCredential:
    """What a server checks a client by."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def read_credential(text: str) -> StoredCredential:
    """What `credential` wrote, or Kafka. Raises `ValueError`, which does not tell what was read."""
    found = _CREDENTIAL.fullmatch(text)
    if found is None:
        raise ValueError("it is no credential of SCRAM: write it anew, as with kafka-configs")
    return StoredCredential(
        salt=b64decode(found["salt"]),
        stored_key=b64decode(found["stored_key"]),
        server_key=b64decode(found["server_key"]),
        iterations=int(found["iterations"]),
    )
