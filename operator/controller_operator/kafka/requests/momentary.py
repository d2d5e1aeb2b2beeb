"""Which answers are no verdict: nobody has judged what was asked for, and whether it was done is not known.

So they count as no answer at all, and what was asked for is asked for again. What a verdict says may end as well, as a
broker that is missing comes back; that is for plans to know, and for people to read.
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
    """Whether an answer with this error is to be taken for none."""
    return code in _NO_VERDICTS
