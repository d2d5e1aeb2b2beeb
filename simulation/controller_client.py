"""The way to a cluster's controller without a network, and what can go wrong on it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.client.request_client import AnswerLost, ControllerUnreachable, error_codes
from controller_core.wire.codecs.frames import decode_request, decode_response, encode_request, encode_response

Response = TypeVar("Response", bound=ResponsePayload)
Answer = Callable[[RequestPayload], Awaitable[ResponsePayload]]


class SimulatedControllerClient:
    """`ControllerClient`: `find_controller` says who answers at present, None where nobody is the controller.

    Messages pass as bytes, so that what could not be sent or read in reality is not here either."""

    def __init__(self, find_controller: Callable[[], Answer | None]) -> None:
        self._find_controller = find_controller
        self.requests: list[RequestPayload] = []
        """Every request that reached a controller, in order."""
        self.answers_to_lose = 0
        """How many of the next answers get lost."""

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """See `ControllerClient.ask`; looks for the controller only once, as no time passes here."""
        answer = self._find_controller()
        if answer is None:
            raise ControllerUnreachable("nobody is the controller")
        self.requests.append(request)
        arrived = decode_request(type(request), encode_request(request, 1, "simulated")[4:])
        response = decode_response(response_type, encode_response(await answer(arrived), 1)[4:])
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise AnswerLost("the answer was lost")
        if ErrorCode.not_controller in error_codes(response):
            raise ControllerUnreachable("who was asked is not the controller any more")
        return response
