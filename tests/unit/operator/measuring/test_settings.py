"""A KafkaCluster names settings that differ between brokers' files, and between them and a controller beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from controller_core.client.transport.request_client import Address
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.model.metadata import Endpoint
from controller_core.model.settings.differences import Difference, find_differences
from controller_core.model.snapshot import Controller, Snapshot
from controller_operator.kafka.broker_listeners import BrokerListener
from controller_operator.plans.cluster.planner import show_cluster
from controller_operator.plans.outcome import Context
from controller_operator.reconciling.measuring.settings import ask_for_differences
from controller_operator.resources import KafkaCluster
from controller_operator.resources.conditions import ConditionType
from tests.unit.admin_commands.test_checks import SimulatedMembers
from tests.unit.operator.clusters import NOW, healthy, raw, view

PLAINTEXT = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="kafka", port=0)
FACTOR = "default.replication.factor"
DIFFERENT = find_differences({BrokerId(1): {FACTOR: "3"}, BrokerId(2): {FACTOR: "1"}})


@dataclass
class Servers:
    """Brokers at the ports that are their ids, and a controller at port 9 that only their metadata name."""

    files: dict[int, dict[str, str]]

    def open(self, bootstrap: Sequence[Address], *, security: object = None) -> Any:
        ports = [address.port for address in bootstrap if address.port in self.files]
        members: dict[int, tuple[int, tuple[int, ...]]] = dict.fromkeys(self.files, (9, (1, 2, 9)))
        return SimulatedMembers(members, asked=ports[0] if ports else 0, files=self.files)


def make_view(controller: int | None) -> Snapshot:
    seen = view(healthy([1, 2]), brokers=(1, 2))
    brokers = {
        broker.id: replace(broker, endpoints=(replace(PLAINTEXT, port=int(broker.id)),))
        for broker in seen.brokers.values()
    }
    led_by = Controller(id=BrokerId(controller), epoch=ControllerEpoch(1)) if controller is not None else None
    return replace(seen, brokers=brokers, controller=led_by)


async def find(files: dict[int, dict[str, str]], controller: int | None) -> list[str] | None:
    seen = make_view(controller)
    found = await ask_for_differences(seen, BrokerListener(), Servers(files).open, 5)
    return None if found is None else [str(each) for each in found]


@pytest.mark.parametrize(
    ("files", "controller", "told"),
    [
        ({1: {FACTOR: "3"}, 2: {FACTOR: "3"}}, None, []),
        ({1: {FACTOR: "3"}, 2: {FACTOR: "1"}}, 1, [f"{FACTOR} is 1 at 2; 3 at 1"]),
        ({1: {FACTOR: "3"}, 2: {FACTOR: "3"}, 9: {FACTOR: "2"}}, 9, [f"{FACTOR} is 3 at 1, 2; 2 at 9"]),
        ({1: {FACTOR: "3"}}, None, []),
        ({}, None, None),
    ],
    ids=["same", "brokers differ", "controller differs", "one is away", "nobody answers"],
)
async def test_the_brokers_and_a_controller_beside_them_are_asked(
    files: dict[int, dict[str, str]], controller: int | None, told: list[str] | None
) -> None:
    assert await find(files, controller) == told


def show(differences: Sequence[Difference] | None, status: Any = None) -> list[tuple[str, str]]:
    stored = {**raw("KafkaCluster", {}, status=status or {}), "spec": {"zookeeper": {"connect": "zk:2181"}}}
    resource = KafkaCluster.model_validate(stored)
    plan = show_cluster(resource, make_view(None), Context(now=NOW), differences=differences)
    found = plan.status.condition(ConditionType.SETTINGS_DIFFER)
    return [] if found is None else [(found.status.value, found.message)]


def test_the_condition_names_what_differs_and_is_absent_until_a_broker_has_answered() -> None:
    assert show(None) == []
    assert show(()) == [("False", "Brokers have the same settings in their files, and so has the controller.")]
    assert show(DIFFERENT) == [("True", f"{FACTOR} is 1 at 2; 3 at 1")]
