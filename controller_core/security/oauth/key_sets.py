"""The public keys of an identity provider (JWKS, RFC 7517), which a listener remembers.

Keys are fetched at the first login and again when they are old. A token that names an unknown key causes a fetch too,
but seldom: strangers choose these names. If a fetch fails, the former keys remain in force.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jwt
import orjson
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from controller_core.security.oauth.endpoints import EndpointFailed, ask
from controller_core.security.oauth.token_rules import NoKeys, TokenRules
from controller_core.security.properties_file import InvalidProperties
from controller_core.supervision import start_task

log = structlog.get_logger()

ALGORITHMS: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The algorithms of signatures that are accepted, with the kind of their keys. None of them uses a shared secret."""
AGAIN_AFTER_S: Final = 10.0
"""Seconds from the start of a fetch in which no other one starts, whatever tokens name."""
_MOST_BYTES: Final = 256 * 1024
_MOST_KEYS: Final = 100
_RSA_BITS: Final = range(2048, 8193)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key of the set."""

    kid: str | None
    kind: str
    algorithm: str | None
    """The only algorithm that it is for, if it names one."""
    key: Any = field(repr=False)

    def is_for(self, algorithm: str) -> bool:
        return ALGORITHMS.get(algorithm) == self.kind and self.algorithm in (None, algorithm)


class KeySet:
    """The keys at one place."""

    def __init__(self, rules: TokenRules, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._monotonic_s = monotonic_s
        self._keys: tuple[PublicKey, ...] | None = None
        self._fetched_at_s = 0.0
        self._began_at_s: float | None = None
        self._failure = ""
        self._fetching: asyncio.Task[None] | None = None

    def expire(self) -> None:
        """Fetch the keys again at the next login. If that fails, the former ones remain in force."""
        self._fetched_at_s, self._began_at_s = float("-inf"), None

    async def find_key(self, kid: str | None, algorithm: str) -> PublicKey | None:
        """Return the only key with this id that is for the algorithm, or None. Raises `NoKeys`.

        `kid` is None if a token names no key. Then the set must have a single key for the algorithm.
        """
        now_s = self._monotonic_s()
        if (self._keys is None or now_s >= self._fetched_at_s + self._rules.refresh_ms / 1000) and self._may_fetch():
            await asyncio.shield(self._fetch())
        if self._keys is None:
            raise NoKeys(f"the keys of tokens are not known: {self._failure or 'they are being fetched'}")
        found = [key for key in self._keys if key.is_for(algorithm) and kid in (None, key.kid)]
        if not found and kid is not None and self._may_fetch():
            self._fetch()  # for the next login, as in Kafka: this one's client is still a stranger
        return found[0] if len(found) == 1 else None

    def _may_fetch(self) -> bool:
        is_fetching = self._fetching is not None and not self._fetching.done()
        return is_fetching or self._began_at_s is None or self._monotonic_s() >= self._began_at_s + AGAIN_AFTER_S

    def _fetch(self) -> asyncio.Task[None]:
        if self._fetching is None or self._fetching.done():
            self._began_at_s = self._monotonic_s()
            self._fetching = start_task(self._renew(), name="fetch the keys of tokens")
        return self._fetching

    async def _renew(self) -> None:
        try:
            keys = await self._read()
        except (EndpointFailed, InvalidProperties, NoKeys) as error:
            self._failure = str(error)
            log.warning("the keys of tokens cannot be fetched", error=self._failure, keeps_former=bool(self._keys))
        else:
            self._keys, self._fetched_at_s = keys, self._monotonic_s()

    async def _read(self) -> tuple[PublicKey, ...]:
        place = self._rules.keys
        if isinstance(place, Path):
            return await asyncio.to_thread(lambda: parse_keys(_read_file(place), str(place)))
        content = await ask(place, headers={}, most_bytes=_MOST_BYTES)
        return await asyncio.to_thread(parse_keys, content, place.url)


def parse_keys(content: bytes, place: str) -> tuple[PublicKey, ...]:
    """Return the usable keys of a document. Others, such as keys for encryption, are left out. Raises `NoKeys`."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        document = None
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list) or len(listed) > _MOST_KEYS:
        raise NoKeys(f"{place} is not a JWKS document of at most {_MOST_KEYS} keys: check the URL")
    keys = tuple(filter(None, map(_parse_key, listed)))
    if not keys:
        raise NoKeys(
            f"{place} has no key for signatures by {', '.join(ALGORITHMS)}, with RSA keys of {_RSA_BITS.start} to "
            f"{_RSA_BITS.stop - 1} bits"
        )
    return keys


def _parse_key(said: object) -> PublicKey | None:
    if not isinstance(said, dict) or said.get("kty") not in ALGORITHMS.values() or said.get("use") == "enc":
        return None
    kid, algorithm = said.get("kid"), said.get("alg")
    if not isinstance(kid, str | None) or not (algorithm is None or algorithm in ALGORITHMS):
        return None
    try:
        key = jwt.PyJWK(said).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None  # other keys of the document may be usable
    if isinstance(key, RSAPublicKey) and key.key_size not in _RSA_BITS:
        return None
    return PublicKey(kid, said["kty"], algorithm, key)


def _read_file(file: Path) -> bytes:
    try:
        if os.path.getsize(file) > _MOST_BYTES:
            raise NoKeys(f"{file} is larger than {_MOST_BYTES} bytes: it is not a JWKS document")
        return file.read_bytes()
    except OSError as error:
        raise NoKeys(f"{file} cannot be read: {error.strerror}") from error
