"""The keys of an identity provider: fetched seldom, whatever strangers send, and kept if they cannot be fetched."""

import json
from base64 import urlsafe_b64encode
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from structlog.testing import capture_logs

from controller_core.security.oauth.key_sets import KeySet, parse_keys
from controller_core.security.oauth.token_login import Endpoint
from controller_core.security.oauth.token_rules import NoKeys, TokenRules
from devcluster.stand_ins.identity_provider import IdentityProvider, Key

FIRST, SECOND = Key("first"), Key("second")


@dataclass
class Clock:
    """A clock that tests set."""

    at_s: float = 1000.0

    def read_s(self) -> float:
        return self.at_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def keys_of(provider: IdentityProvider, clock: Clock) -> KeySet:
    place = Endpoint(url=provider.jwks_url, retry_backoff_ms=1, retry_backoff_max_ms=2)
    return KeySet(TokenRules(keys=place), monotonic_s=clock.read_s)


async def wait_fetched(keys: KeySet) -> None:
    """Wait for the fetch that is under way."""
    assert keys._fetching is not None
    await keys._fetching


async def test_keys_are_fetched_once_an_hour(provider: IdentityProvider, clock: Clock) -> None:
    keys = keys_of(provider, clock)
    for _ in range(3):
        found = await keys.find_key("first", "RS256")
        assert found is not None
        assert found.kid == "first"
    clock.at_s += 3599
    await keys.find_key("first", "RS256")
    assert provider.asked == ["/jwks"]
    clock.at_s += 1
    await keys.find_key("first", "RS256")
    assert len(provider.asked) == 2


async def test_a_key_that_is_withdrawn_is_gone_after_the_next_fetch(provider: IdentityProvider, clock: Clock) -> None:
    keys = keys_of(provider, clock)
    provider.keys = [FIRST, SECOND]
    assert await keys.find_key("first", "RS256")
    provider.keys = [SECOND]
    clock.at_s += 3600
    assert await keys.find_key("first", "RS256") is None


async def test_a_flood_of_unknown_ids_causes_a_fetch_in_ten_seconds_at_most(
    provider: IdentityProvider, clock: Clock
) -> None:
    keys = keys_of(provider, clock)
    for number in range(500):
        assert await keys.find_key(f"made up {number}", "RS256") is None
    clock.at_s += 9.5
    assert await keys.find_key("made up", "RS256") is None
    await wait_fetched(keys)
    assert provider.asked == ["/jwks"]
    clock.at_s += 0.5
    for number in range(500):
        assert await keys.find_key(f"made up {number}", "RS256") is None
    await wait_fetched(keys)
    assert len(provider.asked) == 2


async def test_a_new_key_is_known_soon_after_its_first_token(provider: IdentityProvider, clock: Clock) -> None:
    keys = keys_of(provider, clock)
    assert await keys.find_key("first", "RS256")
    provider.keys = [FIRST, SECOND]
    clock.at_s += 10
    assert await keys.find_key("second", "RS256") is None, "its client tries again"
    await wait_fetched(keys)
    assert await keys.find_key("second", "RS256")


async def test_former_keys_stay_while_there_are_no_others(provider: IdentityProvider, clock: Clock) -> None:
    keys = keys_of(provider, clock)
    assert await keys.find_key("first", "RS256")
    clock.at_s += 3600
    provider.answer = lambda _: (503, b"")
    with capture_logs() as lines:
        assert await keys.find_key("first", "RS256")
    assert [(line["event"], line["keeps_former"]) for line in lines] == [("the keys of tokens cannot be fetched", True)]
    asked = len(provider.asked)
    assert await keys.find_key("first", "RS256")
    assert len(provider.asked) == asked
    provider.answer = None
    clock.at_s += 10
    assert await keys.find_key("first", "RS256")
    assert len(provider.asked) == asked + 1


async def test_without_keys_the_reason_is_said(provider: IdentityProvider, clock: Clock) -> None:
    provider.answer = lambda _: (404, b"")
    keys = keys_of(provider, clock)
    for _ in range(3):
        with pytest.raises(NoKeys, match=r"the keys of tokens are not known: .* HTTP status 404: check the path"):
            await keys.find_key("first", "RS256")
    assert provider.asked == ["/jwks"]


async def test_keys_of_a_file_are_read_again_when_it_has_changed(
    provider: IdentityProvider, clock: Clock, tmp_path: Path
) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(provider.jwks())
    keys = KeySet(TokenRules(keys=file), monotonic_s=clock.read_s)
    assert await keys.find_key("first", "RS256")
    file.write_text("{")
    keys.expire()
    assert await keys.find_key("first", "RS256"), "the former keys"
    provider.keys = [SECOND]
    file.write_bytes(provider.jwks())
    keys.expire()
    assert await keys.find_key("first", "RS256") is None
    assert await keys.find_key("second", "RS256")


async def test_a_token_without_an_id_needs_a_single_key(provider: IdentityProvider, clock: Clock) -> None:
    keys = keys_of(provider, clock)
    assert await keys.find_key(None, "RS256")
    assert await keys.find_key(None, "ES256") is None
    provider.keys = [FIRST, SECOND]
    clock.at_s += 3600
    assert await keys.find_key(None, "RS256") is None


def document(*keys: object) -> bytes:
    return json.dumps({"keys": keys}).encode()


def test_only_keys_for_signatures_are_used() -> None:
    of_rsa, curve = FIRST.public(), Key.make_curve("curve").public()
    shared = {"kty": "oct", "k": "c2VjcmV0", "kid": "shared", "alg": "HS256"}
    short = Key("short", private=rsa.generate_private_key(public_exponent=65537, key_size=1024)).public()
    unusable: tuple[Any, ...] = (
        {**of_rsa, "use": "enc", "kid": "encrypts"},
        {**of_rsa, "alg": "RSA-OAEP", "kid": "encrypts too"},
        {**of_rsa, "n": "!", "kid": "broken"},
        {**of_rsa, "kid": ["no id"]},
        {**curve, "crv": "P-999", "kid": "unknown curve"},
        shared,
        short,
        7,
    )
    found = parse_keys(document(of_rsa, curve, *unusable), "here")
    assert [(key.kid, key.kind) for key in found] == [("first", "RSA"), ("curve", "EC")]
    for each in (shared, short):
        with pytest.raises(NoKeys, match="here has no key for signatures by RS256"):
            parse_keys(document(each), "here")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"keys": {}}', b"[" * 10_000, document(*[{}] * 101)])
def test_another_document_is_refused(content: bytes) -> None:
    with pytest.raises(NoKeys, match="here is not a JWKS document"):
        parse_keys(content, "here")


@pytest.mark.parametrize(("bits", "is_used"), [(2047, False), (2048, True), (8192, True), (8193, False)])
def test_an_rsa_key_has_2048_to_8192_bits(bits: int, is_used: bool) -> None:
    modulus = ((1 << (bits - 1)) + 1).to_bytes((bits + 7) // 8)
    sized = {"kty": "RSA", "e": "AQAB", "n": urlsafe_b64encode(modulus).decode().rstrip("="), "kid": "sized"}
    found = parse_keys(document(FIRST.public(), sized), "here")
    assert [key.kid for key in found] == ["first", *(["sized"] if is_used else [])]


async def test_a_document_has_256_kib_at_most(provider: IdentityProvider, clock: Clock, tmp_path: Path) -> None:
    file, largest = tmp_path / "jwks.json", provider.jwks().ljust(256 * 1024)
    for content, is_read in ((largest, True), (largest + b" ", False)):
        provider.answer = partial(lambda said, _: (200, said), content)
        file.write_bytes(content)
        for keys in (keys_of(provider, clock), KeySet(TokenRules(keys=file), monotonic_s=clock.read_s)):
            if is_read:
                assert await keys.find_key("first", "RS256")
            else:
                with pytest.raises(NoKeys, match="than 262144 bytes"):
                    await keys.find_key("first", "RS256")


def test_a_key_is_used_for_its_own_algorithm_alone() -> None:
    (key,) = parse_keys(document(FIRST.public()), "here")
    assert [key.is_for(algorithm) for algorithm in ("RS256", "RS512", "ES256", "HS256", "none")] == [
        True,
        False,
        False,
        False,
        False,
    ]
    assert replace(key, algorithm=None).is_for("PS512")
