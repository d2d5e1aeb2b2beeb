"""The client's side of SCRAM, by the standard's own example and against hostile servers."""

from collections.abc import Generator

import pytest

from controller_core.model.scram import SCRAM_MECHANISMS
from controller_core.wire.connections.scram_client import WrongAnswer, exchange_messages

# RFC 7677, 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
PROOF_OF_TOKEN = PROOF.partition(b"p=")[0] + b"p=xrt7QLC27If+yCZ8tl7Arjdh2LzbxDoYIVOtWUkqn3w="
SIGNATURE_OF_TOKEN = b"v=wd2QaUOhFVV12I4FjBHC9GczfNvvSFFqpFU23bW5PvE="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def begin(name: str = "user", password: str = "pencil") -> Generator[bytes, bytes, None]:
    return exchange_messages(SCRAM_MECHANISMS[1], name, password, nonce=NONCE)


def test_the_example_of_the_standard_is_answered_as_there() -> None:
    messages = begin()
    assert next(messages) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert messages.send(CHALLENGE) == PROOF
    with pytest.raises(StopIteration):
        messages.send(SIGNATURE)


def test_names_are_escaped_and_otherwise_taken_as_they_are() -> None:
    assert next(begin("a=b,c \u2168\xad")).decode() == f"n,,n=a=3Db=2Cc \u2168\xad,r={NONCE}"


def test_a_delegation_token_is_announced_and_its_announcement_is_signed() -> None:
    """The proof and the signature are those of Kafka 3.9's `ScramFormatter`."""
    messages = exchange_messages(SCRAM_MECHANISMS[1], "user", "pencil", is_token=True, nonce=NONCE)
    assert next(messages) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO,tokenauth=true"
    assert messages.send(CHALLENGE) == PROOF_OF_TOKEN
    with pytest.raises(StopIteration):
        messages.send(SIGNATURE_OF_TOKEN)


def test_each_login_has_a_nonce_of_its_own() -> None:
    first, second = (next(exchange_messages(SCRAM_MECHANISMS[2], "user", "pencil")) for _ in range(2))
    assert first != second


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (CHALLENGE.replace(b"r=rOp", b"r=xOp"), "does not repeat the nonce"),
        (CHALLENGE.replace(b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b""), "does not repeat the nonce"),
        (CHALLENGE.replace(b"4096", b"4095"), "4095 iterations, fewer than 4096"),
        (CHALLENGE.replace(b"4096", b"1048577"), "1048577 iterations, more than 1048576"),
        (CHALLENGE.replace(b"4096", b"9" * 5000), "malformed"),
        (CHALLENGE.replace(b"4096", b"-1"), "malformed"),
        (CHALLENGE.replace(b"gQ==", b"gQ="), "malformed Base64"),
        (b"m=extension," + CHALLENGE, "malformed"),
        (b"\xff", "not UTF-8"),
        (b"", "malformed"),
    ],
)
def test_a_challenge_that_cannot_be_answered_is_refused(challenge: bytes, why: str) -> None:
    messages = begin()
    next(messages)
    with pytest.raises(WrongAnswer, match=why):
        messages.send(challenge)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (SIGNATURE.replace(b"6rri", b"7rri"), "does not prove"),
        (b"v=AAAA", "does not prove"),
        (b"v=A", "malformed Base64"),
        (b"e=invalid-proof", "the server answers invalid-proof"),
        (b"", "malformed"),
    ],
)
def test_a_server_that_does_not_know_the_password_is_refused(answer: bytes, why: str) -> None:
    messages = begin()
    next(messages)
    messages.send(CHALLENGE)
    with pytest.raises(WrongAnswer, match=why):
        messages.send(answer)
