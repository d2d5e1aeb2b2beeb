"""How one part of a request is refused: the error code that Kafka has for it, and words that say what to change."""

from collections.abc import Callable
from typing import TypeVar

from kio.schema.errors import ErrorCode

from controller_core.zk.compare_and_set import Contended

Checked = TypeVar("Checked")


class Refused(Exception):
    """One topic, partition or user of a request is refused; the others are not affected."""

    def __init__(self, error_code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error_code.name)
        self.error_code = error_code
        self.message = message


def outcome_of(check: Callable[[], Checked]) -> Checked | Refused:
    """What a check returns, or why it refused."""
    try:
        return check()
    except Refused as refused:
        return refused


def contended(error: Contended) -> Refused:
    """Somebody else wrote the same again and again: the client may try again, and its library does."""
    return Refused(ErrorCode.request_timed_out, f"Nothing was changed: {error}.")


EXCEEDED = Refused(ErrorCode.throttling_quota_exceeded)
"""Whoever asks has used up his quota; nothing is begun. Kafka has no words for it but the error's own."""
TIMED_OUT = Refused(ErrorCode.request_timed_out)
"""What was asked for is begun, and was not done within the client's time."""
