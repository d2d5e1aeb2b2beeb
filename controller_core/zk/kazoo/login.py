"""SASL's DIGEST-MD5 with a ZooKeeper server, over a connection of kazoo's that has just been made.

kazoo has it, but asks for ever, without a pause, where a server knows no logins: that answers with nothing. The mechanism
itself is that of `puresasl`, which kazoo uses, too.
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
"""ZooKeeper has it in the place of the host's name, on whichever host."""
_MOST_MESSAGES: Final = 5
"""It takes three: an empty one, the proof, and one that takes the server's own proof."""


def log_in(connection: Any, user: NameAndPassword, timeout_s: float) -> None:
    """Called in kazoo's thread. Raises kazoo's `AuthFailedError`, which says why, and what a lost connection raises."""
    exchange = SASLClient(
        _REALM, service="zookeeper", mechanism=_MECHANISM, username=user.username, password=user.password
    )
    challenge: bytes | None = None
    for number in range(1, _MOST_MESSAGES + 1):
        try:
            message = exchange.process(challenge=challenge)
        except (SASLError, LookupError, ValueError) as error:
            raise AuthFailedError(f"what it says does not prove that it knows the password: {error}") from error
        if exchange.complete and not message:
            return
        challenge = _said(connection, number, message or b"", timeout_s)
        if not challenge:
            raise AuthFailedError(
                "it knows no logins by SASL: set them up there, or take zookeeper.sasl.jaas.config away"
            )
    raise AuthFailedError("it asks for more than the mechanism has")


def _said(connection: Any, number: int, message: bytes, timeout_s: float) -> bytes | None:
    connection._submit(SASL(message), timeout_s, number)
    try:
        header, buffer, offset = connection._read_header(timeout_s)
    except ConnectionDropped as error:
        raise AuthFailedError("it ended the connection") from error  # which is what it does to who is not known
    if header.err:
        raise AuthFailedError(f"it answers {EXCEPTIONS[header.err].__name__}")
    challenge: bytes | None = SASL.deserialize(buffer, offset)[0]
    return challenge
