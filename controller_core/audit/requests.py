"""The audit of the controller's listener: describes requests and their ends, and records them in the trail.

The state before a request is looked up when it arrives, unless it is so large that it is decoded in another thread.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, cast

import structlog
from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from controller_core.audit.described import CHANGES, Ended, State, describe_end, describe_request
from controller_core.audit.record import AuditRecord, Outcome, Resource, limit_resources
from controller_core.audit.trail import AuditTrail
from controller_core.model.access import Need
from controller_core.model.authorization.principal import Caller
from controller_core.wire.api_table import API_TABLE, need_of
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import RequestHead, decode_request, decode_response, read_client_id
from controller_core.wire.listener.workers import LARGE_BYTES, Lane, run_in_thread

log = structlog.get_logger()

_MOST_ITEMS: Final = 500_000
"""The largest limit of items of an API that changes something. Larger requests are refused, and not described."""
_NAMES: Final = {row.key: row.name for row in API_TABLE}


class RequestAudit:
    """An `Auditor` of the requests that change something, and of refused ones that need a right."""

    def __init__(self, trail: AuditTrail, find_state: Callable[[], State] = lambda: None) -> None:
        """`find_state` returns the cluster's state; None while this process is not the controller."""
        self._trail = trail
        self._find_state = find_state

    def begin(
        self, head: RequestHead, content: bytes | bytearray, caller: Caller, *, is_refused: bool = False
    ) -> "_Request | None":
        is_of_interest = head.api_key in CHANGES or (is_refused and need_of(head.api_key) is not Need.NOBODY)
        return _Request(self._trail, head, bytes(content), caller, self._find_state) if is_of_interest else None

    def note_refusal(self, head: RequestHead, caller: Caller, error_code: ErrorCode) -> None:
        if need_of(head.api_key) is not Need.NOBODY and error_code is not ErrorCode.not_controller:
            record = make_record(self._trail, head, caller)
            self._trail.record(replace(record, outcome=Outcome.REFUSED, error=error_code.name.upper()))


def make_record(trail: AuditTrail, head: RequestHead, caller: Caller) -> AuditRecord:
    """Return the record of a request whose end is not known."""
    return AuditRecord(
        time_ms=trail.now_ms(),
        source=trail.source,
        api=_NAMES.get(head.api_key, str(head.api_key)),
        outcome=Outcome.UNKNOWN,
        principal=str(caller.principal),
        address=str(caller.address or ""),
    )


class _Request:
    """See `AuditedRequest`."""

    def __init__(
        self, trail: AuditTrail, head: RequestHead, content: bytes, caller: Caller, find_state: Callable[[], State]
    ) -> None:
        self._trail = trail
        self._head = head
        self._content = content
        self._caller = caller
        self._is_trial = False
        self._resources: tuple[Resource, ...] | None = None
        if len(content) <= LARGE_BYTES:
            self._resources = self._describe(find_state())

    async def end(self, content: bytes) -> None:
        if len(content) > LARGE_BYTES or self._resources is None:
            ended = await run_in_thread(Lane.CLIENTS, self._describe_end, content)
        else:
            ended = self._describe_end(content)
        is_trial = self._is_trial and ended.outcome in (Outcome.DONE, Outcome.PARTLY_DONE)  # nothing was changed
        if is_trial or ended.code is ErrorCode.not_controller:
            return
        is_open = ended.code is ErrorCode.request_timed_out
        self._record(replace(ended, outcome=Outcome.UNKNOWN) if is_open else ended)

    def end_without_answer(self, why: str) -> None:
        if not self._is_trial:
            self._record(Ended(outcome=Outcome.UNKNOWN, resources=self._resources or (), message=why))

    def _record(self, ended: Ended) -> None:
        record = replace(
            make_record(self._trail, self._head, self._caller),
            client_id=read_client_id(self._content) or "",
            outcome=ended.outcome,
            error=ended.error,
            message=ended.message,
        )
        self._trail.record(limit_resources(record, ended.resources))

    def _describe(self, state: State) -> tuple[Resource, ...]:
        head = self._head
        if head.api_key not in CHANGES:
            return ()
        try:
            kind = load_request_schema(head.api_key, head.api_version)
            request: Any = decode_request(kind, self._content, most_items=_MOST_ITEMS)
            self._is_trial = bool(getattr(request, "validate_only", False))
            return describe_request(request, state)
        except (Undecodable, KioIndexError):
            return ()  # its connection is closed, or it is refused, and the log or the answer says why
        except Exception:
            log.exception("a request could not be described for the audit", api_key=head.api_key)
            return ()

    def _describe_end(self, content: bytes) -> Ended:
        resources = self._describe(None) if self._resources is None else self._resources
        head = self._head
        try:
            kind = cast(Any, load_response_schema(head.api_key, head.api_version))
            return describe_end(resources, decode_response(kind, content))
        except (Undecodable, KioIndexError) as error:
            return Ended(outcome=Outcome.UNKNOWN, resources=resources, message=f"the answer cannot be read: {error}")
        except Exception as error:
            log.exception("an answer could not be described for the audit", api_key=head.api_key)
            return Ended(outcome=Outcome.UNKNOWN, resources=resources, message=str(error))
