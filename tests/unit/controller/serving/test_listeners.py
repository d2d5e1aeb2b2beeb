"""Brokers with several listeners: the controller's address that each of them gets, and the log if they find no
controller."""

from collections.abc import Mapping
from typing import Final

import pytest
from structlog.testing import capture_logs

from controller_core.controller.term.unserved_listeners import MOST_NAMES, report_at_start
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import Broker, Endpoint
from controller_core.zk import codecs, paths
from simulation.checks import assert_sound
from simulation.cluster import CONTROLLER, Cluster

CONTROL: Final = "CONTROL"
SAID: Final = "the controller is not found under a listener of the brokers"


def endpoint(listener: str, port: int, *, host: str = "controller", protocol: str = "PLAINTEXT") -> Endpoint:
    return Endpoint(listener=listener, security_protocol=protocol, host=host, port=port)


def have_listeners(cluster: Cluster, number: int, protocols: Mapping[str, str]) -> None:
    """A broker rewrites its registration with these listeners, each by its name and protocol."""
    endpoints = tuple(
        endpoint(name, 9000 + port, host=f"broker-{number}", protocol=protocol)
        for port, (name, protocol) in enumerate(protocols.items())
    )
    registered = Broker(id=BrokerId(number), epoch=BrokerEpoch(0), endpoints=endpoints)
    cluster.put(paths.broker(BrokerId(number)), codecs.encode_broker(registered))


def list_ports(cluster: Cluster, number: int = 1) -> dict[str, int]:
    """The names and ports under which a broker knows the controller."""
    return {
        known.listener: known.port
        for known in cluster.broker(number).metadata.live_brokers[BrokerId(CONTROLLER)].endpoints
    }


def list_said(cluster: Cluster) -> list[str]:
    return [line["listener"] for line in cluster.logs if line["event"] == SAID]


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    return cluster


async def test_one_address_is_listed_under_the_names_of_a_broker_that_comes_and_no_longer_when_it_left(
    served: Cluster,
) -> None:
    assert list_ports(served) == {"PLAINTEXT": 9000}
    have_listeners(served, 2, {"PLAINTEXT": "PLAINTEXT", "CLIENT": "PLAINTEXT", "SECURE": "SSL"})
    await served.settle()
    assert list_ports(served, 1) == list_ports(served, 2) == {"PLAINTEXT": 9000, "CLIENT": 9000}
    served.kill_broker(2)
    await served.settle()
    assert list_ports(served) == {"PLAINTEXT": 9000}
    assert_sound(served)


async def test_brokers_with_a_control_plane_find_the_controller_on_it(cluster: Cluster) -> None:
    cluster.listeners = ControllerListeners(
        endpoints=(endpoint("PLAINTEXT", 9090), endpoint(CONTROL, 9091)), control_plane=CONTROL
    )
    cluster.start_brokers(1, 2)
    for number in (1, 2):
        have_listeners(cluster, number, {"PLAINTEXT": "PLAINTEXT", CONTROL: "PLAINTEXT"})
    await cluster.serve()
    assert list_ports(cluster, 1) == list_ports(cluster, 2) == {"PLAINTEXT": 9090, CONTROL: 9091}
    assert cluster.active.metric("kontroller_unserved_listeners") == 0
    assert list_said(cluster) == []


async def test_a_listener_that_is_not_served_is_said_at_the_start_and_when_a_broker_comes_with_it(
    cluster: Cluster,
) -> None:
    cluster.start_brokers(1, 2)
    have_listeners(cluster, 1, {"PLAINTEXT": "PLAINTEXT", "SECURE": "SSL"})
    await cluster.serve()
    assert list_said(cluster) == ["SECURE"]
    assert cluster.active.metric("kontroller_unserved_listeners") == 1
    have_listeners(cluster, 2, {"PLAINTEXT": "PLAINTEXT", "SECURE": "SSL", "SAFE": "SASL_SSL"})
    await cluster.settle()
    assert list_said(cluster) == ["SECURE", "SAFE"], "each once"
    assert cluster.active.metric("kontroller_unserved_listeners") == 2


async def test_a_process_that_will_stand_by_says_it_at_its_start_whatever_else_is_registered(served: Cluster) -> None:
    have_listeners(served, 1, {"PLAINTEXT": "PLAINTEXT", "SECURE": "SSL"})
    served.put(paths.broker(BrokerId(2)), b"unreadable")
    one = ControllerListeners(endpoints=(endpoint("PLAINTEXT", 9090),))
    with capture_logs() as lines:
        await report_at_start(served.zk.session(), one)
    assert [line["listener"] for line in lines if line["event"] == SAID] == ["SECURE"]


async def test_a_mistaken_name_in_the_settings_is_said(cluster: Cluster) -> None:
    cluster.listeners = ControllerListeners(endpoints=(endpoint("PLAINTEXT", 9090),), clients="CLINT")
    cluster.start_brokers(1)
    await cluster.serve()
    told = "no broker has a listener that the controller is set up for"
    assert [line["listener"] for line in cluster.logs if line["event"] == told] == ["CLINT"]


async def test_a_broker_that_registers_ever_new_listeners_does_not_fill_the_log(served: Cluster) -> None:
    for number in range(MOST_NAMES + 5):
        have_listeners(served, 2, {"PLAINTEXT": "PLAINTEXT", f"SECURE-{number}": "SSL"})
        await served.settle()
    assert len(list_said(served)) == MOST_NAMES
    assert served.active.metric("kontroller_unserved_listeners") == 1
