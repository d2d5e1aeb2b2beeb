"""Names the right that is missing. Kafka only says that a request was not allowed, so the right follows from the
request."""

from typing import Final

from kio.schema.errors import ErrorCode

ALTER_CLUSTER: Final = "Alter the cluster"
_NOT_ALLOWED: Final = (ErrorCode.topic_authorization_failed, ErrorCode.cluster_authorization_failed)


def describe_error(code: ErrorCode, message: str | None, right: str) -> str:
    """Return an error in words; `right`: the right that the request needs."""
    said = message or code.name
    return f"{said} (the operator's user lacks the right to {right})" if code in _NOT_ALLOWED else said
