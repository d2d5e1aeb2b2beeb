"""A client of a cluster's controller without a network, with its faults."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import OutcomeUnknown, Unreachable
from controller_core.client.transport.request_client import error_codes
from controller_core.wire.codecs.frames import decode_request, decode_response, encode_request, encode_response

Response = TypeVar("Response", bound=ResponsePayload)
Answer = Callable[[RequestPayload], Awaitable[ResponsePayload]]


class SimulatedControllerClient:
    """A `ControllerClient`. `find_controller` returns the active controller's answer function, or None.

    Messages pass as bytes, so that values that cannot be encoded or decoded fail as they would in reality.
    """

    def __init__(self, find_controller: Callable[[], Answer | None]) -> None:
        self._find_controller = find_controller
        self.requests: list[RequestPayload] = []
        """All requests that reached a controller, in order."""
        self.answers_to_lose = 0
        """The number of next answers to lose."""

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """Send a request. See `ControllerClient.ask`. Looks for the controller only once: no time passes here."""
        answer = self._find_controller()
        if answer is None:
            raise Unreachable("there is no controller")
        self.requests.append(request)
        arrived = decode_request(type(request), encode_request(request, 1, "simulated")[4:])
        response = decode_response(response_type, encode_response(await answer(arrived), 1)[4:])
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise OutcomeUnknown("the answer was lost")
        if ErrorCode.not_controller in error_codes(response):
            raise Unreachable("the server that answered is not the controller")
        return response
