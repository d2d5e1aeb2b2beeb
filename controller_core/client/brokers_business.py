"""Requests that any broker answers, sent to the controller first, because it knows a topic as soon as it is created.

A controller that is not a broker, and does not relay, closes the connection instead of answering: on a listener with
authentication, or with `--no-relay`. Then each broker is asked once, and after a pause the controller again. Use this
only for idempotent requests."""

from typing import TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.cluster import GROWTH_OF_PATIENCE, PATIENCE_MS, Call
from controller_core.client.errors import NotAnsweredError, OutcomeUnknown, Unreachable
from controller_core.client.transport.request_client import is_refused_by_another

Response = TypeVar("Response", bound=ResponsePayload)


async def ask_controller_or_broker(
    call: Call, request: RequestPayload, response_type: type[Response], *, changes_nothing: bool = False
) -> Response:
    """Return the answer of the controller or of a broker.

    If a server takes too long to answer a request that changes something, raise `OutcomeUnknown`: it may still be done.
    A request that changes nothing goes to the next server instead."""
    patience_ms = PATIENCE_MS if changes_nothing else call.allowed_ms
    while True:
        try:
            return await call.ask_controller(request, response_type, patience_ms=patience_ms)
        except OutcomeUnknown as error:
            _note_or_raise(call, error, changes_nothing=changes_nothing)
        await call.metadata()
        for broker, address in call.cluster.brokers_beside_the_controller:
            allowed_ms = min(call.left_ms, patience_ms)
            try:
                response = await call.ask_at(address, request, response_type, allowed_ms)
            except Unreachable as error:
                call.note(str(error))
            except OutcomeUnknown as error:
                _note_or_raise(call, error, changes_nothing=changes_nothing)
            else:
                if not is_refused_by_another(response):
                    return response
                call.note(f"broker {broker} finds no controller")
        patience_ms *= GROWTH_OF_PATIENCE
        await call.pause()


def _note_or_raise(call: Call, error: OutcomeUnknown, *, changes_nothing: bool) -> None:
    if not changes_nothing and not isinstance(error, NotAnsweredError):
        raise error
    call.note(str(error))
