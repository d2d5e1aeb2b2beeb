"""What is answered about logins where nobody logs in any more: who had to has done so before he gets here.

Brokers answer the same, also at listeners that have no logins.
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
"""Each takes a request of any version, and answers in the newest."""
