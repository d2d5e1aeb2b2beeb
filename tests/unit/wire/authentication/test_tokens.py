"""Logins with tokens at a listener: the ones that are accepted, the reasons in the log, and the end of sessions."""

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateResponse

from controller_core.model.authorization.principal import Principal
from controller_core.security.oauth.messages import write_first_message
from controller_core.security.oauth.token_login import TokenLogin
from controller_core.wire.connections.connecting import CannotConnect, NotAdmitted
from controller_core.wire.connections.security import Login
from controller_core.wire.listener.listener import Listener
from devcluster.stand_ins.identity_provider import AUDIENCE, ISSUER, IdentityProvider, Key
from tests.unit.wire.authentication.secured_site import Site
from tests.unit.wire.authentication.test_logins import Talk, open_talk

FIRST, OTHER, CURVE = Key("first"), Key("first"), Key.make_curve("curve")
NOW_S: Final = int(time.time())


@pytest.fixture
def provider() -> IdentityProvider:
    """Return a provider that serves nothing: its keys are in a file."""
    return IdentityProvider(keys=[CURVE, FIRST])


@pytest.fixture
def token_site(site: Site, provider: IdentityProvider) -> Site:
    (site.folder / "jwks.json").write_bytes(provider.jwks())
    write_properties(site)
    return site


def write_properties(site: Site, **changed: str) -> None:
    site.write({
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.secure.plain.sasl.jaas.config": 'a.PlainLoginModule required user_alice="a secret";',
        "sasl.oauthbearer.jwks.endpoint.url": (site.folder / "jwks.json").as_uri(),
        "sasl.oauthbearer.expected.audience": f"another,{AUDIENCE}",
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "connection.failed.authentication.delay.ms": "0",
        **{name.replace("_", "."): value for name, value in changed.items()},
    })  # fmt: skip


async def ask(site: Site, listener: Listener, token: str) -> Principal:
    """Log in with a token, as our own client does."""
    file = site.folder / "token"
    file.write_text(token)
    return await site.ask(listener, login=TokenLogin(source=file, extensions=(("trace", "a b"),)))


async def present(talk: Talk, message: bytes) -> SaslAuthenticateResponse:
    """Send a message of a login, and return the response."""
    assert (await talk.handshake("OAUTHBEARER")).error_code is ErrorCode.none
    return await talk.authenticate(message)


@pytest.mark.parametrize("key", [FIRST, CURVE], ids=["RSA", "a curve"])
async def test_a_token_names_its_client(token_site: Site, provider: IdentityProvider, key: Key) -> None:
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        token = provider.issue("alice", key=key, aud=["x", AUDIENCE], scope=["kafka"])
        assert await ask(token_site, listener, token) == Principal.user("alice")
        assert token_site.judge.seen[-1].is_authenticated
        plain = Login(mechanism="PLAIN", username="alice", password="a secret")
        assert await token_site.ask(listener, login=plain) == Principal.user("alice")


async def test_each_algorithm_of_public_keys_is_accepted(token_site: Site, provider: IdentityProvider) -> None:
    curves = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
    private_keys: dict[str, Any] = {
        **{f"{family}{bits}": FIRST.private for family in ("RS", "PS") for bits in (256, 384, 512)},
        **{algorithm: ec.generate_private_key(curve) for algorithm, curve in curves.items()},
        "EdDSA": Ed25519PrivateKey.generate(),
    }
    provider.keys = [Key(algorithm, algorithm, private) for algorithm, private in private_keys.items()]
    (token_site.folder / "jwks.json").write_bytes(provider.jwks())
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        for key in provider.keys:
            assert await ask(token_site, listener, provider.issue("alice", key=key)) == Principal.user("alice")


async def test_a_scope_may_be_a_name_or_a_list_of_names(token_site: Site, provider: IdentityProvider) -> None:
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        for scope in ("kafka write", ["kafka", "write"], []):
            assert await ask(token_site, listener, provider.issue("alice", scope=scope)) == Principal.user("alice")


async def test_the_name_may_be_in_another_claim(token_site: Site, provider: IdentityProvider) -> None:
    write_properties(token_site, sasl_oauthbearer_sub_claim_name="client_id")
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        token = provider.issue("some uuid", client_id="alice")
        assert await ask(token_site, listener, token) == Principal.user("alice")


def forge(header: dict[str, Any], provider: IdentityProvider, secret: bytes) -> str:
    """Return a token signed with HMAC."""
    claims = provider.issue("alice").split(".")[1]
    said = f"{urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip('=')}.{claims}"
    return f"{said}.{urlsafe_b64encode(hmac.digest(secret, said.encode(), 'sha256')).decode().rstrip('=')}"


def sign_with_the_public_key(provider: IdentityProvider) -> str:
    public = FIRST.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return forge({"alg": "HS256", "kid": "first"}, provider, public)


def leave_unsigned(provider: IdentityProvider) -> str:
    claims = jwt.decode(provider.issue("alice"), options={"verify_signature": False})
    return jwt.encode(claims, "", algorithm="none", headers={"kid": "first"})


def nest(_: IdentityProvider) -> str:
    return f"{urlsafe_b64encode(b'[' * 3_000).decode().rstrip('=')}.e30.c2ln"


REFUSED: Final[dict[str, tuple[Callable[[IdentityProvider], str], str]]] = {
    "expired": (lambda by: by.issue("alice", exp=NOW_S - 60), "the token has expired"),
    "no expiry": (lambda by: by.issue("alice", exp=None), "the token has no claim exp"),
    "an expiry that is none": (lambda by: by.issue("alice", exp="soon"), "the token is malformed"),
    "an endless expiry": (lambda by: by.issue("alice", exp=float("inf")), "the token is malformed"),
    "no time of issue": (lambda by: by.issue("alice", iat=None), "the token has no claim iat"),
    "of the future": (lambda by: by.issue("alice", nbf=NOW_S + 3600), "the token is not valid yet"),
    "another audience": (lambda by: by.issue("alice", aud="mail"), "see sasl.oauthbearer.expected.audience"),
    "no audience": (lambda by: by.issue("alice", aud=None), "the token has no claim aud"),
    "another issuer": (lambda by: by.issue("alice", iss="https://x"), "see sasl.oauthbearer.expected.issuer"),
    "no issuer": (lambda by: by.issue("alice", iss=None), "the token has no claim iss"),
    "no name": (lambda by: by.issue(" "), "claim sub is not a name: see sasl.oauthbearer.sub.claim.name"),
    "a name that is a number": (lambda by: by.issue("alice", sub=7), "claim sub is not a name"),
    "a scope that is none": (lambda by: by.issue("alice", scope=[1]), "claim scope is not a list of names"),
    "an unknown key": (lambda by: by.issue("alice", key=Key("other")), "the token's key is not among those of"),
    "a key of the same name": (lambda by: by.issue("alice", key=OTHER), "the token's signature is wrong"),
    "no signature": (leave_unsigned, "the token's algorithm is none of RS256"),
    "a signature by the public key": (sign_with_the_public_key, "the token's algorithm is none of RS256"),
    "another algorithm than the key's": (
        lambda by: by.issue("alice", key=Key("curve", "RS256", FIRST.private)),
        "the token's key is not among those of",
    ),
    "a key that is no id": (lambda by: forge({"alg": "RS256", "kid": ["x"]}, by, b""), "the token is not a usable JWT"),
    "a long id": (lambda by: forge({"alg": "RS256", "kid": "x" * 1001}, by, b""), "something that is not an id"),
    "unknown conditions": (
        lambda by: forge({"alg": "RS256", "kid": "first", "crit": ["x"], "x": 1}, by, b""),
        "the token is not a usable JWT",
    ),
    "deep nesting": (nest, "the token is not a usable JWT"),
    "a long header": (
        lambda by: forge({"alg": "RS256", "kid": "first", "x": "y" * 4096}, by, b""),
        "header has more than 4096 characters",
    ),
    "a cut signature": (lambda by: by.issue("alice")[:-7], "the token's signature is wrong"),
    "no JWT": (lambda _: "opaque", "the token is not a usable JWT"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_another_token_is_refused_and_only_the_log_has_the_reason(
    token_site: Site, provider: IdentityProvider, logged: list[Any], case: str
) -> None:
    make, why = REFUSED[case]
    token = make(provider)
    async with token_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        answer = await present(talk, write_first_message(token))
        assert (answer.error_code, answer.auth_bytes) == (ErrorCode.none, b'{"status":"invalid_token"}')
        ended = await talk.authenticate(b"\x01")
        assert ended.error_code is ErrorCode.sasl_authentication_failed
        assert ended.error_message == '{"status":"invalid_token"}'
        assert not await talk.is_served()
    lines = [line for line in logged if line["event"] == "connection closed: login failed"]
    assert len(lines) == 1
    assert why in lines[0]["error"]
    assert token not in str(logged)
    assert not token_site.judge.seen


async def test_the_claims_of_a_stranger_are_not_decoded(
    token_site: Site, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[object] = []
    monkeypatch.setattr(jwt, "decode", lambda *said, **_: decoded.append(said))
    async with token_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        forged = provider.issue("alice", key=OTHER, padding="x" * 20_000)
        answer = await present(talk, write_first_message(forged))
        assert answer.auth_bytes == b'{"status":"invalid_token"}'
    assert not decoded


async def test_our_own_client_says_that_its_token_was_refused(token_site: Site, provider: IdentityProvider) -> None:
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        with pytest.raises(NotAdmitted, match=r'does not admit the token in \S+: \{"status":"invalid_token"\}'):
            await ask(token_site, listener, provider.issue("alice", aud="mail"))


@pytest.mark.parametrize("message", [b"", b"\x01", b"\0alice\0a secret", write_first_message("a" * 40_000)])
async def test_a_malformed_or_huge_message_ends_the_login(token_site: Site, logged: list[Any], message: bytes) -> None:
    async with token_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        answer = await present(talk, message)
        assert answer.error_code is ErrorCode.sasl_authentication_failed
        assert answer.error_message is not None
        assert answer.error_message.startswith("Authentication failed during authentication due to invalid credentials")
    assert "not an OAUTHBEARER message" in str(logged)


async def test_a_client_acts_as_its_own_user_alone(token_site: Site, provider: IdentityProvider) -> None:
    token = provider.issue("alice")
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        for asked, is_right in (("alice", True), ("bob", False)):
            async with open_talk(listener) as talk:
                answer = await present(talk, f"n,a={asked},\x01auth=Bearer {token}\x01\x01".encode())
                assert (answer.error_code is ErrorCode.none) is is_right


async def test_without_an_expected_audience_a_token_for_one_is_refused_as_in_kafka(
    token_site: Site, provider: IdentityProvider
) -> None:
    write_properties(token_site, sasl_oauthbearer_expected_audience="", sasl_oauthbearer_expected_issuer="")
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        assert await ask(token_site, listener, provider.issue("alice", aud=None, iss="any")) == Principal.user("alice")
        with pytest.raises(NotAdmitted):
            await ask(token_site, listener, provider.issue("alice"))


@pytest.mark.parametrize(("limit_ms", "longest_s"), [("0", 600), ("60000", 60)])
async def test_a_session_ends_with_its_token_or_before(
    token_site: Site, provider: IdentityProvider, limit_ms: str, longest_s: float
) -> None:
    write_properties(token_site, connections_max_reauth_ms=limit_ms)
    token = provider.issue("alice", exp=int(time.time()) + 600)
    async with token_site.listen("SASL_PLAINTEXT") as listener, open_talk(listener) as talk:
        answer = await present(talk, write_first_message(token))
        assert longest_s - 60 < answer.session_lifetime.total_seconds() <= longest_s
        assert await talk.is_served()


async def test_a_client_whose_token_has_expired_logs_in_again_or_is_closed(
    token_site: Site, provider: IdentityProvider
) -> None:
    within_skew = provider.issue("alice", exp=int(time.time()) - 1)
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        async with open_talk(listener) as talk:
            answer = await present(talk, write_first_message(within_skew))
            assert answer.session_lifetime.total_seconds() == pytest.approx(0.001)
            await present(talk, write_first_message(provider.issue("alice")))
            assert await talk.is_served()
        async with open_talk(listener) as talk:
            await present(talk, write_first_message(within_skew))
            assert not await talk.is_served()
        async with open_talk(listener) as talk:
            await present(talk, write_first_message(within_skew))
            answer = await present(talk, write_first_message(provider.issue("bob")))
            assert answer.error_message is not None
            assert answer.error_message.startswith("Cannot change principals during re-authentication")


async def test_keys_out_of_reach_refuse_nobody(token_site: Site, provider: IdentityProvider, logged: list[Any]) -> None:
    write_properties(
        token_site,
        sasl_oauthbearer_jwks_endpoint_url="http://127.0.0.1:1/jwks",
        sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms="1",
    )
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        with pytest.raises(CannotConnect, match="closed the connection"):
            await ask(token_site, listener, provider.issue("alice"))
    (line,) = [line for line in logged if line["event"] == "connection closed: credentials cannot be read now"]
    assert "the keys of tokens are not known: 127.0.0.1:1 cannot be asked" in line["error"]


async def test_a_changed_file_of_keys_holds_at_the_next_login(token_site: Site, provider: IdentityProvider) -> None:
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        token = provider.issue("alice")
        await ask(token_site, listener, token)
        replace_file(token_site.folder / "jwks.json", b"{}")
        await ask(token_site, listener, token)
        provider.keys = [OTHER, CURVE]
        replace_file(token_site.folder / "jwks.json", provider.jwks())
        with pytest.raises(NotAdmitted):
            await ask(token_site, listener, token)
        assert await ask(token_site, listener, provider.issue("alice", key=OTHER)) == Principal.user("alice")


async def test_keys_from_another_place_hold_at_the_next_login(token_site: Site, provider: IdentityProvider) -> None:
    async with token_site.listen("SASL_PLAINTEXT") as listener:
        token = provider.issue("alice")
        await ask(token_site, listener, token)
        with IdentityProvider(keys=[OTHER]) as other:
            write_properties(token_site, sasl_oauthbearer_jwks_endpoint_url=other.jwks_url)
            with pytest.raises(NotAdmitted):
                await ask(token_site, listener, token)
            assert await ask(token_site, listener, other.issue("alice")) == Principal.user("alice")


def replace_file(file: Path, content: bytes) -> None:
    new = file.with_suffix(".new")
    new.write_bytes(content)
    new.replace(file)
