"""The server's messages of a SCRAM login, one by one, against our own client and by the RFC's own example."""

import contextlib
import hashlib
import hmac
import re
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.wire.authentication.exchanges import InvalidLogin, PlainExchange, ScramExchange
from controller_core.wire.connections.security import PASSWORD_MECHANISMS, Login
from tests.unit.wire.authentication.secured_site import ALICE, PASSWORD, Users, make_stored

SCRAM = PASSWORD_MECHANISMS[1:]


def users(mechanism: str, name: str = ALICE, **said: bytes) -> Users:
    return Users(known={(mechanism, name): make_stored(mechanism, **said)})  # type: ignore[arg-type]


async def log_in(exchange: ScramExchange, login: Login) -> str | None:
    messages = login.messages()
    message = next(messages)
    try:
        while True:
            message = messages.send(await exchange.answer(message))
    except StopIteration:
        return exchange.user


def final(mechanism: str, first: str, challenge: bytes, *, binding: bytes = b"n,,", password: str = PASSWORD) -> bytes:
    """Return the final message of a client that may cheat."""
    digest = "sha256" if mechanism.endswith("256") else "sha512"
    said = dict(part.split("=", 1) for part in challenge.decode().split(","))
    unproved = f"c={b64encode(binding).decode()},r={said['r']}"
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), b64decode(said["s"]), int(said["i"]))
    client_key = hmac.digest(salted, b"Client Key", digest)
    signed = f"{first.split(',', 2)[2]},{challenge.decode()},{unproved}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    return f"{unproved},p={b64encode(proof).decode()}".encode()


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("name", [ALICE, "CN=a, O=b", "süß", "=2C"])
async def test_both_sides_prove_that_they_know_the_password(mechanism: str, name: str) -> None:
    login = Login(mechanism=mechanism, username=name, password=PASSWORD)
    assert await log_in(ScramExchange(mechanism, users(mechanism, name)), login) == name


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("first", ["n,,n=alice,r=nonce", "y,,n=alice,r=nonce", "n,a=alice,n=alice,r=nonce,x=y"])
@pytest.mark.parametrize("salt", [b"s", b"a salt of a usual length"])
async def test_whatever_kafkas_clients_say_first_is_taken_with_salts_of_any_length(
    mechanism: str, first: str, salt: bytes
) -> None:
    exchange = ScramExchange(mechanism, users(mechanism, salt=salt))
    challenge = await exchange.answer(first.encode())
    assert (await exchange.answer(final(mechanism, first, challenge))).startswith(b"v=")
    assert exchange.user == ALICE


@pytest.mark.parametrize("mechanism", SCRAM)
async def test_a_wrong_proof_nonce_or_binding_is_not_taken(mechanism: str) -> None:
    async def answer_challenge(**changed: object) -> None:
        exchange = ScramExchange(mechanism, users(mechanism))
        challenge = await exchange.answer(b"n,,n=alice,r=nonce")
        message = final(mechanism, "n,,n=alice,r=nonce", challenge, **changed)  # type: ignore[arg-type]
        if "replaced" in marks:
            message = re.sub(rb"r=nonce[^,]*", b"r=nonce", message)
        with pytest.raises(InvalidLogin, match="wrong name or password") as refused:
            await exchange.answer(message)
        assert refused.value.told is None
        assert exchange.user is None

    marks: set[str] = set()
    await answer_challenge(password="wrong")
    await answer_challenge(binding=b"p=tls-unique,,")
    marks.add("replaced")
    await answer_challenge()


async def test_who_is_not_known_is_asked_like_others_and_always_with_the_same_salt() -> None:
    async def challenge(name: str, known: Users) -> tuple[str, str]:
        said = (await ScramExchange("SCRAM-SHA-256", known).answer(f"n,,n={name},r=nonce".encode())).decode()
        return said.split(",")[1], said.split(",")[2]

    nobody = Users()
    assert await challenge("eve", nobody) == await challenge("eve", nobody)
    assert (await challenge("eve", nobody))[0] != (await challenge("mallory", nobody))[0]
    assert (await challenge("eve", nobody))[1] == (await challenge(ALICE, users("SCRAM-SHA-256")))[1] == "i=4096"


async def test_a_credential_with_too_few_iterations_is_nobodys() -> None:
    weak = Users(known={("SCRAM-SHA-256", ALICE): make_stored("SCRAM-SHA-256", iterations=1000)})
    exchange = ScramExchange("SCRAM-SHA-256", weak)
    challenge = await exchange.answer(b"n,,n=alice,r=nonce")
    with pytest.raises(InvalidLogin):
        await exchange.answer(final("SCRAM-SHA-256", "n,,n=alice,r=nonce", challenge))


@pytest.mark.parametrize(
    "first",
    ["", "n", "n,,n=alice", "n,,n=,r=nonce", "p=tls-unique,,n=alice,r=n", "n,,n=a=b,r=nonce", "n,,m=x,n=alice,r=nonce"],
)
async def test_what_is_no_message_of_scram_is_refused(first: str) -> None:
    with pytest.raises(InvalidLogin, match="the client's message is not a SCRAM message"):
        await ScramExchange("SCRAM-SHA-256", users("SCRAM-SHA-256")).answer(first.encode())


async def test_a_delegation_token_and_another_authorization_id_are_refused_in_words() -> None:
    exchange = ScramExchange("SCRAM-SHA-256", users("SCRAM-SHA-256"))
    with pytest.raises(InvalidLogin, match="delegation token"):
        await exchange.answer(b"n,,n=alice,r=nonce,tokenauth=true")
    with pytest.raises(InvalidLogin, match="another user"):
        await ScramExchange("SCRAM-SHA-256", users("SCRAM-SHA-256")).answer(b"n,a=bob,n=alice,r=nonce")


@given(message=st.binary(max_size=200))
async def test_whatever_is_sent_as_a_password_admits_nobody_else(message: bytes) -> None:
    exchange = PlainExchange({"alice": "a", "": "empty", "bob": ""})
    try:
        await exchange.answer(message)
    except InvalidLogin:
        assert exchange.user is None
    else:
        assert message in (b"\0alice\0a", b"alice\0alice\0a")


@given(first=st.binary(max_size=120), last=st.binary(max_size=120))
async def test_whatever_is_sent_to_scram_admits_nobody(first: bytes, last: bytes) -> None:
    exchange = ScramExchange("SCRAM-SHA-256", users("SCRAM-SHA-256"))
    for message in (first, last, b"n,,n=alice,r=x", last):
        with contextlib.suppress(InvalidLogin):
            await exchange.answer(message)
    assert exchange.user is None
