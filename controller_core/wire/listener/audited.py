"""The seam of the audit: an `Auditor` sees each request that changes something, its caller, and its answer.

`controller_core.audit` has the controller's. The answer of a broker is read as a whole to be seen, unless it is larger
than the answers to changes usually are: a broker must not choose how much is decoded here.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final, Protocol

from kio.schema.errors import ErrorCode

from controller_core.model.authorization.principal import Caller
from controller_core.wire.codecs.frames import LENGTH_BYTES, RequestHead
from controller_core.wire.listener.owned_api import Throttled
from controller_core.wire.listener.relay import Answer

MOST_ANSWER_BYTES: Final = 4 << 20
"""The largest answer of a broker that is read to be seen. About 40,000 deleted ACLs fit."""


class AuditedRequest(Protocol):
    """A request whose end will be recorded. No method raises."""

    async def end(self, content: bytes) -> None:
        """Record the end by the content of the response."""
        ...

    def end_without_answer(self, why: str) -> None:
        """Record that nobody answered the request, or nobody heard the answer."""
        ...


class Auditor(Protocol):
    """Sees requests. No method raises."""

    def begin(
        self, head: RequestHead, content: bytes | bytearray, caller: Caller, *, is_refused: bool = False
    ) -> AuditedRequest | None:
        """Begin to record a request, before it is answered. Return None if it is of no interest."""
        ...

    def note_refusal(self, head: RequestHead, caller: Caller, error_code: ErrorCode) -> None:
        """Record a request that was refused before it was read."""
        ...


class NoAudit:
    """Sees nothing."""

    def begin(
        self, head: RequestHead, content: bytes | bytearray, caller: Caller, *, is_refused: bool = False
    ) -> AuditedRequest | None:
        """See `Auditor`."""
        return None

    def note_refusal(self, head: RequestHead, caller: Caller, error_code: ErrorCode) -> None:
        """See `Auditor`."""


async def show(
    asked: AuditedRequest | None, answering: Awaitable[bytes | Throttled | Answer | None]
) -> bytes | Throttled | Answer | None:
    """Return the answer to a request after the auditor saw it, if it has been read."""
    if asked is None:
        return await answering
    try:
        response = await answering
    except (Exception, asyncio.CancelledError) as error:
        asked.end_without_answer(f"{error}" or type(error).__name__)
        raise
    if isinstance(response, Answer):
        asked.end_without_answer(
            f"the broker's answer has {response.length} bytes, and at most {MOST_ANSWER_BYTES} are read"
        )
        return response
    frame = response.frame if isinstance(response, Throttled) else response
    if frame:
        await asked.end(frame[LENGTH_BYTES:])
    return response
