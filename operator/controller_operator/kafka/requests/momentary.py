"""Error codes that are no verdict: nobody judged the request, and its effect is unknown.

They count as no answer, and the request is repeated. The cause of a verdict may end too, for example when a missing
broker returns; plans handle that, and people read about it.
"""

from typing import Final

from kio.schema.errors import ErrorCode

_NO_VERDICTS: Final = frozenset(
    {
        ErrorCode.unknown_server_error,
        ErrorCode.request_timed_out,
        ErrorCode.not_controller,
        ErrorCode.network_exception,
        ErrorCode.broker_not_available,
        ErrorCode.leader_not_available,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.throttling_quota_exceeded,
        ErrorCode.kafka_storage_error,
    }
)


def is_momentary(code: ErrorCode) -> bool:
    """Return True if an answer with this error counts as no answer."""
    return code in _NO_VERDICTS
