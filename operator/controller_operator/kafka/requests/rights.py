"""Kafka says that something was not allowed, and not which right is missing: that follows from what was asked."""

from typing import Final

from kio.schema.errors import ErrorCode

ALTER_CLUSTER: Final = "Alter the cluster"
_NOT_ALLOWED: Final = (ErrorCode.topic_authorization_failed, ErrorCode.cluster_authorization_failed)


def in_words(code: ErrorCode, message: str | None, right: str) -> str:
    """What is said of an error; `right`: what whoever asked must be allowed to."""
    said = message or code.name
    return f"{said} (the operator's user lacks the right to {right})" if code in _NOT_ALLOWED else said
