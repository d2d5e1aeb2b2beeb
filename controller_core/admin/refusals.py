"""Refusals of one part of a request: Kafka's error code, and a message that says what to change."""

from collections.abc import Callable
from typing import TypeVar

from kio.schema.errors import ErrorCode

from controller_core.controller.term.term import Term
from controller_core.zk.compare_and_set import Contended
from controller_core.zk.session import OperationRefused

Checked = TypeVar("Checked")


class ItemRefused(Exception):
    """One topic, partition or user of a request is refused. The others are not affected."""

    def __init__(self, error_code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error_code.name)
        self.error_code = error_code
        self.message = message


def outcome_of(check: Callable[[], Checked]) -> Checked | ItemRefused:
    """Return the result of a check, or its refusal."""
    try:
        return check()
    except ItemRefused as refused:
        return refused


def explain_unknown(term: Term, setting: str) -> str:
    """Return why a setting of the brokers' files is unknown, and what to do about it."""
    silence = term.static_configs.explain_silence(list(term.state.brokers.values()))
    option = f"--{setting.replace('.', '-')}"
    return f"no broker has returned {setting} yet ({silence}), and the controller was started without {option}"


def make_unwritten_refusal(error: Contended | OperationRefused) -> ItemRefused:
    """Return the refusal of something that was not written.

    After repeated conflicts with another writer the code is retriable, so client libraries retry.
    """
    code = ErrorCode.request_timed_out if isinstance(error, Contended) else ErrorCode.unknown_server_error
    return ItemRefused(code, f"Nothing was changed: {error}.")


EXCEEDED = ItemRefused(ErrorCode.throttling_quota_exceeded)
"""The client has used up its quota, and nothing is begun. Like in Kafka, there is no message besides the error code."""
TIMED_OUT = ItemRefused(ErrorCode.request_timed_out)
"""The operation has begun, but was not complete within the client's timeout."""
