"""The open requests of a process: each is answered once, and no answer is made that no client gets."""

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload

from controller_core.controller.loop.clock import SystemClock
from controller_core.controller.serving.open_requests import OpenRequests
from controller_core.controller.serving.served_api import ServedApi
from controller_core.wire.codecs.versions import Versions, empty
from controller_core.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse


async def test_a_refusal_is_made_only_for_who_has_no_answer_yet() -> None:
    refused: list[ErrorCode] = []

    async def never(*_: object) -> ControlledShutdownResponse:
        raise AssertionError("nobody is asked")

    def refuse(_: RequestPayload, error_code: ErrorCode) -> ControlledShutdownResponse:
        refused.append(error_code)
        return ControlledShutdownResponse(error_code=error_code, remaining_partitions=())

    api = ServedApi(versions=Versions(ControlledShutdownRequest), answer=never, refuse=refuse)
    requests = OpenRequests([api], SystemClock(), lambda event: None)
    received = requests.receive(empty(ControlledShutdownRequest))
    for _ in range(3):
        requests.refuse(received)
    assert refused == [ErrorCode.not_controller]
    assert await received.answer == refuse(received.request, ErrorCode.not_controller)
