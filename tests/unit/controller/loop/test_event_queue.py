"""The queue of events: in order but for the role, each that says only to look again once, and requests out of turn."""

import asyncio

import pytest
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest

from controller_core.controller.loop.event_queue import EventQueue
from controller_core.controller.loop.events import (
    BrokersChanged,
    ControllerChanged,
    Event,
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


async def put(queue: EventQueue, event: Event) -> None:
    if isinstance(event, RequestReceived):
        await queue.put_request(event)
    else:
        queue.put(event)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def make_client_request() -> RequestReceived:
    return RequestReceived(ListPartitionReassignmentsRequest(topics=None), asyncio.get_running_loop().create_future())


async def test_a_request_is_found_and_taken_out_of_its_turn_and_the_rest_keeps_its_order() -> None:
    queue = EventQueue(VirtualClock())
    first, second, third = request(1), request(2), request(3)
    for event in (BrokersChanged(), first, TopicsChanged(), BrokersChanged(), second, third):
        await put(queue, event)
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
    await queue.put_request(taken)
    assert queue.take_request(lambda _: True) is not None
    await queue.put_request(in_turn)
    assert (await queue.next()).event is in_turn
    queue.put(BrokersChanged())
    await queue.put_request(withdrawn)
    assert queue.withdraw_requests() == [withdrawn]
    assert not queue.has_request(lambda _: True)
    assert queue.take_request(lambda _: True) is None
    await queue.put_request(later)
    assert queue.has_request(lambda received: received is later)
    assert [(await queue.next()).event for _ in range(2)] == [BrokersChanged(), later]


async def test_what_decides_about_the_role_goes_before_all_that_waits() -> None:
    queue = EventQueue(VirtualClock())
    asked = request(1)
    for event in (BrokersChanged(), asked, ControllerChanged(), TopicsChanged(), SessionEnded(), ControllerChanged()):
        await put(queue, event)
    assert len(queue) == 5
    taken = [(await queue.next()).event for _ in range(5)]
    assert taken == [ControllerChanged(), SessionEnded(), BrokersChanged(), asked, TopicsChanged()]
    queue.put(ControllerChanged())
    assert (await queue.next()).event == ControllerChanged(), "one that was taken may come again"


@pytest.mark.parametrize("leave", ["next", "take_request", "withdraw_requests"])
async def test_who_finds_the_queue_full_waits_until_one_of_his_kind_has_left_it(leave: str) -> None:
    queue = EventQueue(VirtualClock(), most_requests=2)
    waiting = [make_client_request() for _ in range(4)]
    puts = [asyncio.create_task(queue.put_request(each)) for each in waiting]
    await turns()
    assert [each.done() for each in puts] == [True, True, False, False]
    await queue.put_request(request(1))
    assert len(queue) == 3, "brokers find room where clients find none"
    queue.put(BrokersChanged())
    puts[2].cancel()
    await turns()
    if leave == "next":
        assert (await queue.next()).event is waiting[0]
    elif leave == "take_request":
        assert queue.take_request(lambda received: received is waiting[1]) is not None
    else:
        assert len(queue.withdraw_requests()) == 3
    await asyncio.wait_for(puts[3], 10)
    assert queue.has_request(lambda received: received is waiting[3])
    assert not queue.has_request(lambda received: received is waiting[2]), "who gave up is not in the queue"
