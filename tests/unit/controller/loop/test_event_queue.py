"""The queue of events: in order but for the role, each that says only to look again once, and requests out of turn."""

import asyncio

from controller_core.controller.loop.event_queue import EventQueue
from controller_core.controller.loop.events import (
    BrokersChanged,
    ControllerChanged,
    RequestReceived,
    SessionEnded,
    TopicsChanged,
)
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.wire.messages import ControlledShutdownRequest
from simulation.virtual_time import VirtualClock


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


async def test_what_decides_about_the_role_goes_before_all_that_waits() -> None:
    queue = EventQueue(VirtualClock())
    asked = request(1)
    for event in (BrokersChanged(), asked, ControllerChanged(), TopicsChanged(), SessionEnded(), ControllerChanged()):
        queue.put(event)
    assert len(queue) == 5
    taken = [(await queue.next()).event for _ in range(5)]
    assert taken == [ControllerChanged(), SessionEnded(), BrokersChanged(), asked, TopicsChanged()]
    queue.put(ControllerChanged())
    assert (await queue.next()).event == ControllerChanged(), "one that was taken may come again"
