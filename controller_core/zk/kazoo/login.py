"""SASL DIGEST-MD5 with a ZooKeeper server, over a new connection of kazoo.

kazoo has it too, but repeats its request forever, without a pause, if a server does not support logins and answers with
nothing. The mechanism itself comes from `puresasl`, which kazoo uses as well.
"""

from typing import Any, Final

from kazoo.exceptions import EXCEPTIONS, AuthFailedError
from kazoo.protocol.connection import ConnectionDropped
from kazoo.protocol.serialization import SASL
from puresasl import SASLError
from puresasl.client import SASLClient

from controller_core.security.jaas import NameAndPassword

_MECHANISM: Final = "DIGEST-MD5"
_REALM: Final = "zk-sasl-md5"
"""ZooKeeper uses this in place of the host's name, on every host."""
_MOST_MESSAGES: Final = 5
"""Three are needed: an empty one, the proof, and one that accepts the server's own proof."""


def log_in(connection: Any, user: NameAndPassword, timeout_s: float) -> None:
    """Log in. Called in kazoo's thread. Raises kazoo's `AuthFailedError` with the reason, and the errors of a lost
    connection."""
    exchange = SASLClient(
        _REALM, service="zookeeper", mechanism=_MECHANISM, username=user.username, password=user.password
    )
    challenge: bytes | None = None
    for number in range(1, _MOST_MESSAGES + 1):
        try:
            message = exchange.process(challenge=challenge)
        except (SASLError, LookupError, ValueError) as error:
            raise AuthFailedError(f"the server did not prove that it knows the password: {error}") from error
        if exchange.complete and not message:
            return
        challenge = _exchange_message(connection, number, message or b"", timeout_s)
        if not challenge:
            raise AuthFailedError(
                "the server does not support SASL logins: configure them there, or remove zookeeper.sasl.jaas.config"
            )
    raise AuthFailedError("the server sends more messages than the mechanism has")


def _exchange_message(connection: Any, number: int, message: bytes, timeout_s: float) -> bytes | None:
    connection._submit(SASL(message), timeout_s, number)
    try:
        header, buffer, offset = connection._read_header(timeout_s)
    except ConnectionDropped as error:
        # ZooKeeper closes the connection of an unknown user without an answer.
        raise AuthFailedError("the server closed the connection") from error
    if header.err:
        raise AuthFailedError(f"the server answers {EXCEPTIONS[header.err].__name__}")
    challenge: bytes | None = SASL.deserialize(buffer, offset)[0]
    return challenge
