"""The readiness of a broker, and the reasons if it is not ready."""

import math
from dataclasses import replace

import pytest

from controller_core.model.draining.broker_readiness import explain_hidden, explain_not_ready
from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Controller, Snapshot
from tests.unit.model.draining.test_broker_stop import BROKER, brokers, place, snapshot_of


def replace_controller(seen: Snapshot, controller: int | None = 1000) -> Snapshot:
    return replace(seen, controller=None if controller is None else Controller(id=BrokerId(controller)))


@pytest.mark.parametrize(
    ("replicas", "isr", "why"),
    [
        ([1, 2], [2, 1], "in sync"),
        ([2, 3], [2], "no replica of it"),
        ([1, 4], [4], "the only replica in sync is on a broker that is not alive"),
        ([1, 4], [], "nobody is in sync"),
    ],
)
def test_a_broker_with_nothing_left_to_do_is_ready(replicas: list[int], isr: list[int], why: str) -> None:
    assert explain_not_ready(replace_controller(snapshot_of(place(replicas, isr))), BROKER) is None, why


def test_a_partition_that_nobody_leads_is_not_waited_for() -> None:
    """For example, its only replica in sync is in a failed log directory of a live broker."""
    seen = snapshot_of(place([1, 2], [2], leader=-1))
    assert explain_not_ready(replace_controller(seen), BROKER) is None


def test_replicas_that_a_reassignment_brings_do_not_count() -> None:
    arriving, late = place([1, 2], [2], 0), place([1, 2], [2], 1)
    assert explain_not_ready(replace_controller(snapshot_of(arriving)), BROKER, {arriving.partition}) is None
    why = explain_not_ready(replace_controller(snapshot_of(arriving, late)), BROKER, {arriving.partition})
    assert why == "1 of 2 replicas not in sync: t-1"


def test_a_broker_without_replicas_is_ready() -> None:
    assert explain_not_ready(replace_controller(snapshot_of()), BROKER) is None


def test_a_broker_with_replicas_that_are_not_in_sync_is_not_ready() -> None:
    seen = snapshot_of(*(place([1, 2], [2], number) for number in range(7)), place([1, 2], [1, 2], 7))
    why = explain_not_ready(replace_controller(seen), BROKER)
    assert why == "7 of 8 replicas not in sync: t-0, t-1, t-2, t-3, t-4 and 2 more"


def test_a_broker_that_knows_nothing_yet_is_not_ready() -> None:
    assert "waits for metadata from a controller" in str(explain_not_ready(snapshot_of(alive=()), BROKER))


def test_a_broker_that_is_not_registered_is_not_ready() -> None:
    said = explain_not_ready(replace_controller(snapshot_of(alive=(2, 3))), BROKER)
    assert said == "broker 1 is not registered, or shuts down: the live brokers are 2, 3"


def test_a_broker_that_knows_no_controller_is_not_ready() -> None:
    why = explain_not_ready(replace_controller(snapshot_of(), controller=None), brokers(2)[0])
    assert str(why).startswith("no controller is known, or it is not at the listener")


def test_a_broker_with_replicas_is_waited_for_while_clients_may_have_the_address_of_its_former_pod() -> None:
    why = explain_hidden(snapshot_of(place([1, 2], [2, 1])), BROKER, 7.2)
    assert why == "in sync, but clients may have the address of its former pod for another 8 s"


@pytest.mark.parametrize(
    ("replicas", "remaining_s"),
    [([1, 2], 0.0), ([1, 2], -math.inf), ([2, 3], 30.0)],
    ids=["over", "ages", "no replica"],
)
def test_nobody_looks_in_vain_for_a_broker_that_is_old_or_leads_nothing(
    replicas: list[int], remaining_s: float
) -> None:
    assert explain_hidden(snapshot_of(place(replicas, replicas)), BROKER, remaining_s) is None
