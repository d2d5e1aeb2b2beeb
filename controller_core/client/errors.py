"""The errors of the client. The type says what may be done about an error, the message what to change."""

from typing import ClassVar, Final

from kio.schema.errors import ErrorCode

_NAMES_OF_THE_SPECIFICATION: Final = {
    ErrorCode.unknown_server_error: ("AdminRequestFailed", 21),
    ErrorCode.not_controller: ("NotControllerForAdminRequest", 22),
}
"""Numbers of KIP-4, which Kafka has since given to other errors."""


class AdminError(Exception):
    """A call has failed."""


class InvalidArgument(AdminError):
    """The arguments make no sense. Nothing was sent."""


class NotAdmittedError(AdminError):
    """The servers are not the expected ones, or do not know this client. Fatal: change the properties."""


class AnswerUnreadable(NotAdmittedError):
    """The bytes are not an answer to the request: the server does not speak this version of Kafka's protocol."""

    remedy: ClassVar[str] = "check that it is a Kafka server, and security.protocol"


class Unreachable(AdminError):
    """No server that could do it answered in time. Nothing was done, so the call may be repeated."""


class OutcomeUnknown(AdminError):
    """The request was sent and no answer came, so it may have been done. Describe first, then repeat it."""

    remedy: ClassVar[str] = "it may have been done; describe it first"


class NotAnsweredError(OutcomeUnknown):
    """The server closed the connection instead: it may be shutting down, or it does not answer this request."""


class Unsupported(AdminError):
    """The server is too old or too new: it has no version of the request that can express this. Nothing was done."""


class UpdateInProgress(AdminError):
    """Another update of features by this client is running. Await it, then try again."""


class Refused(AdminError):
    """A server refused the request, with a reason. `code` is Kafka's."""

    def __init__(self, what: str, code: ErrorCode, message: str | None) -> None:
        self.code = code
        specified = _NAMES_OF_THE_SPECIFICATION.get(code)
        self.name_of_the_specification = specified[0] if specified else None
        self.code_of_the_specification = specified[1] if specified else None
        called = f"{code.name.upper()} {int(code.value)}"
        if specified:
            called += f", {specified[0]} {specified[1]} in KIP-4"
        super().__init__(f"{what}: {message or code.name.replace('_', ' ')} ({called})")


class PartlyRefused(AdminError):
    """Some of several items were refused: `refused` has an error for each. The message says what happened to the
    others."""

    begun: int | None
    """The number of moves that have begun; None if that is unknown."""

    def __init__(self, refused: tuple[Refused | OutcomeUnknown, ...], others: str, *, begun: int | None = 0) -> None:
        self.refused = refused
        self.begun = begun
        super().__init__(f"{'; '.join(map(str, refused[:5]))}{_count_more(len(refused) - 5)}; {others}")


def make_error(what: str, code: ErrorCode, message: str | None) -> Refused | OutcomeUnknown | None:
    """Return the error for a server's code. If the server timed out, it does not know the outcome itself."""
    if code is ErrorCode.none:
        return None
    refused = Refused(what, code, message)
    if code is ErrorCode.request_timed_out:
        return OutcomeUnknown(f"{refused}: it may have been done, or be done later; describe it first")
    return refused


def require(what: str, code: ErrorCode, message: str | None) -> None:
    """Raise `Refused` or `OutcomeUnknown` if a server's code is an error."""
    error = make_error(what, code, message)
    if error is not None:
        raise error


def _count_more(count: int) -> str:
    return f"; and {count} more" if count > 0 else ""
