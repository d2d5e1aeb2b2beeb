"""The client's side of SCRAM (RFC 5802), as Kafka's clients have it: without channel binding.

Like those, it takes names and passwords as they are, without the normalization of the standard (SASLprep).
"""

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Generator
from typing import Final

from controller_core.model.scram import ScramMechanism

_BASE64: Final = r"[A-Za-z0-9+/]+={0,2}"
_FIRST: Final = re.compile(
    rf"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>{_BASE64}),i=(?P<iterations>[1-9][0-9]{{0,8}})(?:,.*)?"
)
_FINAL: Final = re.compile(rf"(?:e=(?P<error>[^,]*)|v=(?P<signature>{_BASE64}))(?:,.*)?")
_MOST_ITERATIONS: Final = 1 << 20
"""Limit of iterations. Kafka's is 16,384; a hostile server could otherwise make a client compute for minutes."""
_HEADER: Final = "n,,"
_OF_TOKENS: Final = ",tokenauth=true"
_LONGEST: Final = 200


class WrongAnswer(Exception):
    """The server's message is malformed, asks for a dangerous number of iterations, or does not prove that it knows the
    password."""


def exchange_messages(
    mechanism: ScramMechanism, name: str, password: str, *, is_token: bool = False, nonce: str | None = None
) -> Generator[bytes, bytes, None]:
    """Yield the client's messages. Answer each by `send` with the server's. Raises `WrongAnswer`.

    `is_token`: the name and the password are the id and the HMAC of a delegation token (KIP-48). `nonce`: the client's;
    None: a random one."""
    nonce = nonce or secrets.token_hex(16)
    bare = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={nonce}{_OF_TOKENS if is_token else ''}"
    challenge = _read((yield f"{_HEADER}{bare}".encode()))
    said = _match(_FIRST, challenge)
    if not said["nonce"].startswith(nonce) or said["nonce"] == nonce:
        raise WrongAnswer("the server does not repeat the nonce, followed by its own")
    iterations = int(said["iterations"])
    if iterations < mechanism.min_iterations:
        # An eavesdropper could guess the password.
        raise WrongAnswer(f"the server requires {iterations} iterations, fewer than {mechanism.min_iterations}")
    if iterations > _MOST_ITERATIONS:
        raise WrongAnswer(f"the server requires {iterations} iterations, more than {_MOST_ITERATIONS}")
    unproved = f"c={_encode(_HEADER.encode())},r={said['nonce']}"
    signed = f"{bare},{challenge},{unproved}".encode()
    salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), _decode(said["salt"]), iterations)
    client_key = hmac.digest(salted, b"Client Key", mechanism.digest)
    stored_key = hashlib.new(mechanism.digest, client_key).digest()
    signature = hmac.digest(stored_key, signed, mechanism.digest)
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    last = _match(_FINAL, _read((yield f"{unproved},p={_encode(proof)}".encode())))
    if last["error"] is not None:
        raise WrongAnswer(f"the server answers {last['error'][:_LONGEST]}")
    server_key = hmac.digest(salted, b"Server Key", mechanism.digest)
    if not hmac.compare_digest(_decode(last["signature"]), hmac.digest(server_key, signed, mechanism.digest)):
        raise WrongAnswer("the server does not prove that it knows the password")


def _read(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError as error:
        raise WrongAnswer("the server's message is not UTF-8") from error


def _match(pattern: re.Pattern[str], message: str) -> re.Match[str]:
    match = pattern.fullmatch(message)
    if match is None:
        raise WrongAnswer("the server's message is malformed")
    return match


def _encode(data: bytes) -> str:
    return b64encode(data).decode()


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except NoBase64 as error:
        raise WrongAnswer("the server's message has malformed Base64") from error
