"""Tokens of clients: one request for all connections, replaced before the end, and errors without secrets."""

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from controller_core.security.oauth.access_tokens import AccessTokens, NoToken
from controller_core.security.oauth.token_login import Endpoint, TokenLogin
from controller_core.security.tls_files import TlsFiles
from devcluster.clusters.certificates import make_certificate
from devcluster.stand_ins.identity_provider import IdentityProvider


@dataclass
class Clock:
    """A clock that tests set."""

    at_s: float = 1000.0

    def read_s(self) -> float:
        return self.at_s


def login_at(provider: IdentityProvider, *, secret: str = "a secret", tls: TlsFiles | None = None) -> TokenLogin:
    endpoint = Endpoint(url=provider.url, tls=tls, retry_backoff_ms=1, retry_backoff_max_ms=50)
    return TokenLogin(source=endpoint, client_id="admin", client_secret=secret, scope="kafka write")


async def refusal(tokens: AccessTokens, login: TokenLogin) -> NoToken:
    with capture_logs() as lines, pytest.raises(NoToken) as refused:
        await tokens.find_token(login)
    assert "secret" not in str(refused.value) + json.dumps(lines)
    return refused.value


async def test_connections_share_a_token(provider: IdentityProvider) -> None:
    tokens, login = AccessTokens(), login_at(provider)
    found = await asyncio.gather(*(tokens.find_token(login) for _ in range(20)))
    assert len({*found, await tokens.find_token(login)}) == 1
    assert provider.asked == ["/token"]
    assert provider.scopes == ["kafka write"]


async def test_a_cancelled_connection_leaves_the_request_to_the_others(provider: IdentityProvider) -> None:
    tokens, login = AccessTokens(), login_at(provider)
    provider.hold()
    first, second = (asyncio.ensure_future(tokens.find_token(login)) for _ in range(2))
    await asyncio.to_thread(provider.wait_asked)
    first.cancel()
    provider.resume()
    assert await second
    assert provider.asked == ["/token"]


async def test_a_token_is_replaced_before_its_end(provider: IdentityProvider) -> None:
    clock = Clock()
    tokens, login = AccessTokens(monotonic_s=clock.read_s), login_at(provider)
    first = await tokens.find_token(login)
    clock.at_s += 0.79 * 3600
    assert await tokens.find_token(login) == first
    provider.lifetime_s = 7200
    clock.at_s += 0.07 * 3600
    assert await tokens.find_token(login) != first
    assert len(provider.asked) == 2


async def test_the_former_token_is_used_while_there_is_no_new_one(provider: IdentityProvider) -> None:
    clock = Clock()
    tokens, login = AccessTokens(monotonic_s=clock.read_s), login_at(provider)
    first = await tokens.find_token(login)
    provider.answer = lambda _: (503, b"a secret")
    clock.at_s += 0.9 * 3600
    with capture_logs() as lines:
        assert await tokens.find_token(login) == first
    assert [(line["event"], line["client"]) for line in lines] == [("no new token for logins", "admin")]
    asked = len(provider.asked)
    assert await tokens.find_token(login) == first
    assert len(provider.asked) == asked, "a provider that has just failed is left alone"
    clock.at_s += 0.2 * 3600
    assert "HTTP status 503" in str(await refusal(tokens, login))
    provider.answer = None
    clock.at_s += 11
    assert await tokens.find_token(login)


async def test_a_token_that_a_server_refused_is_replaced_but_not_at_once(provider: IdentityProvider) -> None:
    clock = Clock()
    tokens, login = AccessTokens(monotonic_s=clock.read_s), login_at(provider)
    await tokens.find_token(login)
    tokens.forget_refused(login)
    await tokens.find_token(login)
    assert len(provider.asked) == 1
    clock.at_s += 11
    tokens.forget_refused(login)
    await tokens.find_token(login)
    assert len(provider.asked) == 2


async def test_wrong_credentials_are_not_tried_again_and_again(provider: IdentityProvider) -> None:
    tokens, login = AccessTokens(), login_at(provider, secret="a wrong secret")
    error = await refusal(tokens, login)
    assert "answers with HTTP status 401 and the error invalid_client: check clientId and clientSecret" in str(error)
    assert not error.is_transient
    await refusal(tokens, login)
    assert provider.asked == ["/token"]


async def test_a_provider_that_failed_is_left_alone_for_ten_seconds(provider: IdentityProvider) -> None:
    clock = Clock()
    tokens, login = AccessTokens(monotonic_s=clock.read_s), login_at(provider)
    provider.answer = lambda _: (404, b"")
    await refusal(tokens, login)
    clock.at_s += 9.5
    await refusal(tokens, login)
    assert len(provider.asked) == 1
    clock.at_s += 0.5
    await refusal(tokens, login)
    assert len(provider.asked) == 2


async def test_the_id_and_the_secret_are_url_encoded_if_that_is_wanted(provider: IdentityProvider) -> None:
    login = replace(login_at(provider), client_id="a/b", client_secret="c: d&e", encodes_header=True)
    provider.clients = {"a%2Fb": "c%3A+d%26e"}
    assert await AccessTokens().find_token(login)
    provider.clients = {"a/b": "c: d&e"}
    assert await AccessTokens().find_token(replace(login, encodes_header=False))


async def test_a_server_that_fails_for_a_moment_is_asked_again(provider: IdentityProvider) -> None:
    failures = iter([(503, b""), (500, b"<html>")])

    def answer(_: str) -> tuple[int, bytes]:
        following = next(failures, None)
        if following is None:
            provider.answer = None
            return 429, b""
        return following

    provider.answer = answer
    login = login_at(provider)
    assert isinstance(login.source, Endpoint)
    patient = replace(login, source=replace(login.source, retry_backoff_max_ms=60_000))
    assert await AccessTokens().find_token(patient)
    assert len(provider.asked) == 4


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (200, b"secret", "is not a JSON object: check its URL"),
        (200, b"[" * 10_000, "is not a JSON object"),
        (200, b"{}", "has no access_token: check the URL and the grant type"),
        (200, b'{"access_token": 7}', "has no access_token"),
        (200, b'{"access_token": "secret"}', "the token is not a JWT with the claim exp"),
        (200, b'{"access_token": "secret", "expires_in": true}', "the token is not a JWT with the claim exp"),
        (200, b'{"access_token": "secret", "expires_in": 1e999}', "is not a JSON object"),
        (200, b'{"access_token": "secret", "expires_in": -5}', "the token expired 5 s ago"),
        (200, b"s" * 100_000, "answers with more than 65536 bytes"),
        (404, b"secret", "answers with HTTP status 404: check the path of the URL"),
        (400, b'{"error": "secret of \\n many lines"}', "answers with HTTP status 400: the identity provider does not"),
        (302, b"", "answers with HTTP status 302"),
    ],
)
async def test_an_unusable_answer_is_named(provider: IdentityProvider, status: int, content: bytes, said: str) -> None:
    provider.answer = lambda _: (status, content)
    assert said in str(await refusal(AccessTokens(), login_at(provider)))


async def test_an_opaque_token_lasts_as_long_as_its_answer_says(provider: IdentityProvider) -> None:
    clock = Clock()
    tokens, login = AccessTokens(monotonic_s=clock.read_s), login_at(provider)
    provider.answer = lambda _: (200, b'{"access_token": "opaque", "expires_in": 3600}')
    assert await tokens.find_token(login) == "opaque"
    clock.at_s += 2800
    assert await tokens.find_token(login) == "opaque"
    assert len(provider.asked) == 1
    clock.at_s += 801
    await tokens.find_token(login)
    assert len(provider.asked) == 2


async def test_an_expired_token_is_refused_with_a_word_about_the_clock(provider: IdentityProvider) -> None:
    provider.lifetime_s = -600
    error = await refusal(AccessTokens(), login_at(provider))
    assert "s ago by this machine's clock: check the clock, or renew the token" in str(error)
    assert error.is_transient


async def test_a_slow_server_is_given_up(provider: IdentityProvider) -> None:
    provider.hold()
    login = login_at(provider)
    assert isinstance(login.source, Endpoint)
    slow = replace(login, source=replace(login.source, read_timeout_ms=20, connect_timeout_ms=20))
    error = await refusal(AccessTokens(), slow)
    assert "did not answer in time: see sasl.login.connect.timeout.ms" in str(error)
    assert error.is_transient


async def test_an_unreachable_server_is_named() -> None:
    login = TokenLogin(
        source=Endpoint(url="http://127.0.0.1:1/token", retry_backoff_max_ms=1), client_id="admin", client_secret="s"
    )
    error = await refusal(AccessTokens(), login)
    assert "127.0.0.1:1 cannot be asked" in str(error)
    assert error.is_transient


async def test_a_server_proves_itself_by_a_certificate(tmp_path: Path) -> None:
    made = make_certificate(tmp_path, "localhost")
    with IdentityProvider(certificate=(str(made.certificate), str(made.key))) as provider:
        trusting = TlsFiles(truststore_location=made.certificate)
        assert await AccessTokens().find_token(login_at(provider, tls=trusting))
        error = await refusal(AccessTokens(), login_at(provider))
        assert "is not trusted: set ssl.truststore.location among the options of sasl.jaas.config" in str(error)
        absent = TlsFiles(truststore_location=tmp_path / "absent.pem")
        assert "there is no file" in str(await refusal(AccessTokens(), login_at(provider, tls=absent)))


async def test_a_token_in_a_file_is_read_each_time(provider: IdentityProvider, tmp_path: Path) -> None:
    tokens, file = AccessTokens(), tmp_path / "token"
    login = TokenLogin(source=file)
    assert f"the token in {file} cannot be read" in str(await refusal(tokens, login))
    for token in (provider.issue("one"), provider.issue("two")):
        file.write_text(f" {token}\n")
        assert await tokens.find_token(login) == token
    file.write_bytes(b"\xffsecret")
    assert "is not ASCII text" in str(await refusal(tokens, login))
    file.write_text("s" * 40_000)
    assert "is larger than" in str(await refusal(tokens, login))
    file.write_text(provider.issue("one", exp=1))
    assert "the token expired" in str(await refusal(tokens, login))


async def test_only_some_logins_are_remembered(provider: IdentityProvider) -> None:
    tokens = AccessTokens()
    provider.answer = lambda _: (200, b'{"access_token": "opaque", "expires_in": 3600}')
    logins = [replace(login_at(provider), scope=str(number)) for number in range(70)]
    for login in logins:
        await tokens.find_token(login)
    await tokens.find_token(logins[-1])
    assert len(provider.asked) == 70
    await tokens.find_token(logins[0])
    assert len(provider.asked) == 71
