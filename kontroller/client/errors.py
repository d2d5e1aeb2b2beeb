"""Why a call did not do what was asked; the type says what may be done about it, the message what to change."""

from typing import Final

from kio.schema.errors import ErrorCode

_NAMES_OF_THE_SPECIFICATION: Final = {
    ErrorCode.unknown_server_error: ("AdminRequestFailed", 21),
    ErrorCode.not_controller: ("NotControllerForAdminRequest", 22),
}
"""KIP-4 gave these numbers, which Kafka has since given to other errors."""


class AdminError(Exception):
    """A call did not do what was asked."""


class InvalidArgument(AdminError):
    """What was asked for makes no sense. Nothing was sent."""


class NotAdmittedError(AdminError):
    """The servers are not those that were meant, or do not know this client. Fatal: change the properties."""


class Unreachable(AdminError):
    """Nobody answered in time who could have done it. Nothing was done, so it may be asked again."""


class OutcomeUnknown(AdminError):
    """The request was sent and no answer came: it may have been done. Describe first, then ask again."""


class NotAnsweredError(OutcomeUnknown):
    """The server ended the connection instead: it may be about to end, or it answers no such request."""


class Unsupported(AdminError):
    """The server is too old for it, or too new: it speaks no version that can say it. Nothing was done."""


class UpdateInProgress(AdminError):
    """Another update of features runs by this client. Await it, then ask again."""


class Refused(AdminError):
    """A server refused it, and says why. `code` is Kafka's."""

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
    """Of several items some were refused: `refused` has an error for each. What became of the others is in the message."""

    def __init__(self, refused: tuple[Refused | OutcomeUnknown, ...], others: str) -> None:
        self.refused = refused
        super().__init__(f"{'; '.join(map(str, refused[:5]))}{_more(len(refused) - 5)}; {others}")


def error_of(what: str, code: ErrorCode, message: str | None) -> Refused | OutcomeUnknown | None:
    """What a server's code says. One whose time was over does not know itself what comes of it."""
    if code is ErrorCode.none:
        return None
    refused = Refused(what, code, message)
    if code is ErrorCode.request_timed_out:
        return OutcomeUnknown(f"{refused}: it may have been done, or be done yet; describe it first")
    return refused


def require(what: str, code: ErrorCode, message: str | None) -> None:
    """Raises `Refused`, or `OutcomeUnknown`, where a server's code says so."""
    error = error_of(what, code, message)
    if error is not None:
        raise error


def _more(count: int) -> str:
    return f"; and {count} more" if count > 0 else ""
