"""What any broker answers, asked of the controller first: who has just created a topic is known there at once.

A controller that is no broker, and passes nothing on, ends the connection instead of an answer: at a listener where clients
are somebody, or where it is told to. Then another server of the cluster is asked. Only for what may be done twice.
"""

from typing import TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from controller_admin.client.cluster import Call
from controller_admin.client.errors import NotAnsweredError, OutcomeUnknown, Unreachable
from controller_core.model.ids import BrokerId

Response = TypeVar("Response", bound=ResponsePayload)


async def ask_controller_or_broker(
    call: Call, request: RequestPayload, response_type: type[Response], *, changes_nothing: bool = False
) -> Response:
    """The controller's answer, or a broker's. Raises `OutcomeUnknown` where one took too long to answer what changes
    something: it may do it yet."""
    while True:
        try:
            return await call.ask_controller(request, response_type)
        except NotAnsweredError as error:
            call.note(str(error))
        except OutcomeUnknown as error:
            if not changes_nothing:
                raise
            call.note(str(error))
        response = await _of_another(call, request, response_type, changes_nothing=changes_nothing)
        if response is not None:
            return response
        await call.pause()


async def _of_another(
    call: Call, request: RequestPayload, response_type: type[Response], *, changes_nothing: bool
) -> Response | None:
    """None where none answers."""
    metadata = await call.metadata()
    others = [BrokerId(node.node_id) for node in metadata.brokers if node.node_id != metadata.controller_id]
    for broker in others:
        try:
            return await call.ask_broker(broker, request, response_type)
        except (Unreachable, NotAnsweredError) as error:
            call.note(str(error))
        except OutcomeUnknown as error:
            if not changes_nothing:
                raise
            call.note(str(error))
    return None
