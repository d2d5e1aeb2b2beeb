"""The client's side of DIGEST-MD5, by the standard's own example and against malformed servers."""

from hashlib import md5

import pytest

from controller_core.security.jaas import NameAndPassword
from controller_core.zk.kazoo.digest_md5 import DigestMd5, InvalidChallenge

CHRIS = NameAndPassword(username="chris", password="secret")
URI = "imap/elwood.innosoft.com"
# RFC 2831, 4
CHALLENGE = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
RESPONSE = (
    b'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,'
    b'cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",response=d388dad90d4bbd760a152321f2143af7,qop=auth'
)
PROOF = b"rspauth=ea40f60335c427b5527b84dbabcdfffd"


def begin(user: NameAndPassword = CHRIS) -> DigestMd5:
    return DigestMd5(user, uri=URI, nonce="OA6MHXh6VqTrRk")


def test_the_example_of_the_standard_is_answered_as_there() -> None:
    exchange = begin()
    assert exchange.respond(CHALLENGE) == RESPONSE
    exchange.verify(PROOF)


def test_a_challenge_may_have_spaces_empty_parts_and_escapes() -> None:
    spaced = CHALLENGE.replace(b",", b" ,\r\n ,").replace(b"=", b" = ").replace(b'"OA6M', b'"\\O\\A6M')
    assert begin().respond(spaced) == RESPONSE


def test_names_with_quotes_are_escaped_and_hashed_as_they_are() -> None:
    said = begin(NameAndPassword(username='a"b\\c', password="x")).respond(CHALLENGE)
    assert b'username="a\\"b\\\\c",' in said


@pytest.mark.parametrize(("password", "hashed"), [("p\xe4ss", b"p\xe4ss"), ("p\u0142ss", "p\u0142ss".encode())])
def test_a_password_is_hashed_as_java_hashes_it(password: str, hashed: bytes) -> None:
    secret = md5(b"chris:elwood.innosoft.com:" + hashed).digest()
    a1 = md5(secret + b":OA6MG9tEQGm2hh:OA6MHXh6VqTrRk").hexdigest()
    a2 = md5(f"AUTHENTICATE:{URI}".encode()).hexdigest()
    expected = md5(f"{a1}:OA6MG9tEQGm2hh:00000001:OA6MHXh6VqTrRk:auth:{a2}".encode()).hexdigest()
    said = begin(NameAndPassword(username="chris", password=password)).respond(CHALLENGE)
    assert f"response={expected}," in said.decode()


def test_each_login_has_a_nonce_of_its_own() -> None:
    assert DigestMd5(CHRIS, uri=URI).respond(CHALLENGE) != DigestMd5(CHRIS, uri=URI).respond(CHALLENGE)


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (CHALLENGE.replace(b"md5-sess", b"md5"), "another algorithm"),
        (CHALLENGE.replace(b'"auth"', b'"auth-int,auth-conf"'), "not supported"),
        (b'realm="r",algorithm=md5-sess', "one nonce"),
        (CHALLENGE + b',nonce="other"', "one nonce"),
        (b'nonce="torn', "malformed from byte 0"),
        (b'nonce="n",\xff=1', "malformed from byte 9"),
        (b'nonce="n" realm="r"', "malformed"),
        (b"=" * 100, "malformed"),
        (b'nonce="' + b"n" * 3000 + b'"', "more than 2048"),
        (b"", "one nonce"),
    ],
)
def test_a_challenge_that_cannot_be_answered_is_refused(challenge: bytes, why: str) -> None:
    with pytest.raises(InvalidChallenge, match=why):
        begin().respond(challenge)


@pytest.mark.parametrize("answer", [PROOF.replace(b"ea", b"ae"), b"", b"rspauth=", CHALLENGE, PROOF + b"," + PROOF])
def test_a_server_that_does_not_know_the_password_is_refused(answer: bytes) -> None:
    exchange = begin()
    exchange.respond(CHALLENGE)
    with pytest.raises(InvalidChallenge):
        exchange.verify(answer)
    with pytest.raises(InvalidChallenge):
        begin().verify(PROOF)
