"""A broker answers if it is ready. The controller is asked only if that depends on a reassignment."""

import asyncio
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.transport.request_client import Address
from controller_core.model.ids import BrokerId
from kontroller.brokers.readiness import look_at_broker, measure_age_s
from simulation.controller_client import Answer, SimulatedControllerClient
from tests.unit.admin_commands.answering_cluster import AnsweringCluster, SimulatedTopic

Response = TypeVar("Response", bound=ResponsePayload)

BROKER = BrokerId(1)
LONG_S = 60.0


@dataclass
class AskedBroker:
    """A broker that answers for itself, and a controller that may not answer."""

    broker: SimulatedControllerClient
    controller: SimulatedControllerClient

    async def ask_any(self, request: RequestPayload, response_type: type[Response]) -> Response:
        return await self.broker.ask(request, response_type)

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        return await self.controller.ask(request, response_type)

    def restrict_to(self, address: Address) -> "AskedBroker":
        return self


def make_asked_broker(
    cluster: AnsweringCluster, find_controller: Callable[[], Answer | None] | None = None
) -> AskedBroker:
    return AskedBroker(
        SimulatedControllerClient(lambda: cluster.answer),
        SimulatedControllerClient(find_controller or (lambda: cluster.answer)),
    )


def make_receiving_cluster() -> AnsweringCluster:
    """Return a cluster in which broker 1 gets a replica of `moved`. Its other replicas are in sync."""
    return AnsweringCluster(
        {"orders": SimulatedTopic([1, 2, 3], [2, 1, 3]), "moved": SimulatedTopic([1, 2, 3], [2, 3], adding=[1])}
    )


async def test_a_broker_that_a_reassignment_brings_replicas_to_is_ready() -> None:
    assert await look_at_broker(make_asked_broker(make_receiving_cluster()), BROKER, LONG_S) is None


async def test_a_broker_is_not_ready_while_another_one_s_reassignment_runs_and_its_own_replica_is_late() -> None:
    cluster = AnsweringCluster({"orders": SimulatedTopic([1, 2, 3], [2], adding=[3])})
    assert await look_at_broker(make_asked_broker(cluster), BROKER, LONG_S) == "1 of 1 replica not in sync: orders-0"


async def test_the_controller_is_asked_only_about_replicas_that_are_not_in_sync() -> None:
    probe = make_asked_broker(AnsweringCluster({"orders": SimulatedTopic([1, 2], [1, 2])}))
    assert await look_at_broker(probe, BROKER, LONG_S) is None
    assert probe.controller.requests == []


async def test_what_no_controller_excuses_is_late() -> None:
    why = await look_at_broker(make_asked_broker(make_receiving_cluster(), lambda: None), BROKER, LONG_S)
    assert why == (
        "1 of 2 replicas not in sync: moved-0; whether a reassignment adds them is not known: there is no controller"
    )


async def test_a_controller_that_falls_silent_holds_the_answer_up_no_longer_than_it_may_take() -> None:
    async def silence(_: RequestPayload) -> ResponsePayload:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    why = await look_at_broker(make_asked_broker(make_receiving_cluster(), lambda: silence), BROKER, 0.05)
    assert str(why).endswith("is not known: the controller did not answer in 0.05 s")


async def test_a_controller_that_refuses_is_reported() -> None:
    cluster = make_receiving_cluster()
    cluster.reassignments_refusal = ErrorCode.cluster_authorization_failed
    why = await look_at_broker(make_asked_broker(cluster), BROKER, LONG_S)
    assert str(why).endswith(
        "the list of reassignments: cluster authorization failed (CLUSTER_AUTHORIZATION_FAILED 31)"
    )


async def test_a_broker_in_sync_is_not_ready_while_clients_may_have_its_former_address() -> None:
    probe = make_asked_broker(make_receiving_cluster())
    assert "another 12 s" in str(await look_at_broker(probe, BROKER, LONG_S, hidden_s=12.0))
    late = make_asked_broker(AnsweringCluster({"orders": SimulatedTopic([1, 2, 3], [2])}))
    assert "not in sync" in str(await look_at_broker(late, BROKER, LONG_S, hidden_s=12.0))


def test_the_age_is_that_of_the_first_process(tmp_path: Path) -> None:
    ticks = time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")
    process = tmp_path / "stat"
    process.write_text(f"1 (a) name) S {'0 ' * 18}{int(ticks / 2)} 0 0\n")
    assert measure_age_s(process) == pytest.approx(ticks / 2 / os.sysconf("SC_CLK_TCK"), rel=0.01)


@pytest.mark.parametrize("text", ["", "1 (sh) S 0", "1 (sh) S " + "x " * 30])
def test_a_process_that_the_system_does_not_describe_is_old(tmp_path: Path, text: str) -> None:
    process = tmp_path / "stat"
    process.write_text(text)
    assert measure_age_s(process) == math.inf
    assert measure_age_s(tmp_path / "none") == math.inf
