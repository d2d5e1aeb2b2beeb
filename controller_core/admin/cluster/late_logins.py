"""Answers to login requests after the login. Clients that had to log in have done so before their requests arrive here.

Brokers give the same answers, also on listeners without logins.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.authentication.login import AUTHENTICATE, HANDSHAKE
from controller_core.wire.codecs.versions import Versions


def no_handshake(_: RequestPayload) -> ResponsePayload:
    return SaslHandshakeResponse(error_code=ErrorCode.illegal_sasl_state, mechanisms=())


def no_login(_: RequestPayload) -> ResponsePayload:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.illegal_sasl_state,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
    )


ANSWERS: Final[Mapping[Versions[Any], Callable[[RequestPayload], ResponsePayload]]] = {
    HANDSHAKE: no_handshake,
    AUTHENTICATE: no_login,
}
"""Each function takes a request of any version, and answers in the newest."""
