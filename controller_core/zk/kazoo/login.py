"""SASL DIGEST-MD5 with a ZooKeeper server, over a new connection of kazoo.

kazoo has it too, with a library that has no releases any more. It also repeats its request forever, without a pause, if
a server does not support logins and answers with nothing.
"""

from typing import Any, Final

from kazoo.exceptions import EXCEPTIONS, AuthFailedError
from kazoo.protocol.connection import ConnectionDropped
from kazoo.protocol.serialization import SASL

from controller_core.security.jaas import NameAndPassword
from controller_core.zk.kazoo.digest_md5 import DigestMd5, InvalidChallenge

_URI: Final = "zookeeper/zk-sasl-md5"
"""ZooKeeper uses this in place of the host's name, on every host."""


def log_in(connection: Any, user: NameAndPassword, timeout_s: float) -> None:
    """Log in. Called in kazoo's thread. Raises kazoo's `AuthFailedError` with the reason, and the errors of a lost
    connection."""
    exchange = DigestMd5(user, uri=_URI)
    try:
        challenge = _exchange_message(connection, 1, b"", timeout_s)
        answer = _exchange_message(connection, 2, exchange.respond(challenge), timeout_s)
        exchange.verify(answer)
    except InvalidChallenge as error:
        raise AuthFailedError(f"the server did not prove that it knows the password: {error}") from error


def _exchange_message(connection: Any, number: int, message: bytes, timeout_s: float) -> bytes:
    connection._submit(SASL(message), timeout_s, number)
    try:
        header, buffer, offset = connection._read_header(timeout_s)
    except ConnectionDropped as error:
        # ZooKeeper closes the connection of an unknown user without an answer.
        raise AuthFailedError("the server closed the connection") from error
    if header.err:
        raise AuthFailedError(f"the server answers {EXCEPTIONS[header.err].__name__}")
    answer: bytes | None = SASL.deserialize(buffer, offset)[0]
    if not answer:
        raise AuthFailedError(
            "the server does not support SASL logins: configure them there, or remove zookeeper.sasl.jaas.config"
        )
    return answer
