"""The queue of events: in their order, each that says only to look again once, and requests also out of their turn."""

import asyncio

from controller_core.controller.event_queue import EventQueue
from controller_core.controller.events import BrokersChanged, RequestReceived, TopicsChanged
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.wire.messages import ControlledShutdownRequest
from tests.unit.controller.virtual_time import VirtualClock


def request(broker: int) -> RequestReceived:
    asked = ControlledShutdownRequest(broker_id=BrokerId(broker), broker_epoch=BrokerEpoch(1))
    return RequestReceived(asked, asyncio.get_running_loop().create_future())


async def test_a_request_is_found_and_taken_out_of_its_turn_and_the_rest_keeps_its_order() -> None:
    queue = EventQueue(VirtualClock())
    first, second, third = request(1), request(2), request(3)
    for event in (BrokersChanged(), first, TopicsChanged(), BrokersChanged(), second, third):
        queue.put(event)
    assert queue.has_request(lambda received: received is second)
    taken = queue.take_request(lambda received: received is not first)
    assert taken is not None
    assert taken.event is second
    assert not queue.has_request(lambda received: received is second)
    assert queue.take_request(lambda _: False) is None
    assert [(await queue.next()).event for _ in range(len(queue))] == [BrokersChanged(), first, TopicsChanged(), third]


async def test_there_is_no_request_when_all_were_taken_or_withdrawn() -> None:
    queue = EventQueue(VirtualClock())
    taken, in_turn, withdrawn, later = (request(number) for number in range(4))
    queue.put(taken)
    assert queue.take_request(lambda _: True) is not None
    queue.put(in_turn)
    assert (await queue.next()).event is in_turn
    queue.put(BrokersChanged())
    queue.put(withdrawn)
    assert queue.withdraw_requests() == [withdrawn]
    assert not queue.has_request(lambda _: True)
    assert queue.take_request(lambda _: True) is None
    queue.put(later)
    assert queue.has_request(lambda received: received is later)
    assert [(await queue.next()).event for _ in range(2)] == [BrokersChanged(), later]
