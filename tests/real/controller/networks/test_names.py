"""Brokers with unknown names, a hanging name server, or a new address: only they suffer, and only as long as that
lasts.

Under load, every acknowledged message is read back.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, Endpoint
from controller_core.zk import codecs, paths
from devcluster.waiting.vocabulary import wait_until_logged
from tests.real.controller.networks.stage import FIRST, Stage, name_of, run_under_load

SILENT_NAME_SERVER = "10.91.0.254"
"""The router, which drops DNS queries."""
HANGING = range(50, 62)
"""More brokers than a pool of threads has threads, on a machine of a few processors."""


@contextmanager
def silence_name_server(stage: Stage) -> Iterator[None]:
    """Make the first controller's name server silent: it does not even say that names are unknown."""
    rule = ("INPUT", "-p", "udp", "--dport", "53", "-j", "DROP")
    stage.network.router.run("iptables", "-w", "-A", *rule)
    stage.first.ask(SILENT_NAME_SERVER)
    try:
        yield
    finally:
        stage.first.ask(None)
        stage.network.router.run("iptables", "-w", "-D", *rule)


@contextmanager
def brokers_of_hanging_names(stage: Stage) -> Iterator[None]:
    """Register brokers whose names do not resolve."""
    for number in HANGING:
        endpoints = tuple(
            Endpoint(listener=listener, security_protocol="PLAINTEXT", host=name_of(number), port=9092)
            for listener in ("INTERNAL", "CLIENT")
        )
        broker = Broker(id=BrokerId(number), epoch=BrokerEpoch(0), endpoints=endpoints)
        stage.znodes.client.create(paths.broker(broker.id), codecs.encode_broker(broker), ephemeral=True)
    try:
        yield
    finally:
        for number in HANGING:
            stage.znodes.client.delete(paths.broker(BrokerId(number)))


def test_a_broker_whose_name_is_not_known_gets_what_it_missed_when_it_is(stage: Stage) -> None:
    stage.give_role_to(FIRST)
    with run_under_load(stage, "unknown"):
        logged = len(stage.read_log())
        stage.first.know(stage.names(without=[3]))
        try:
            stage.kafka.broker(3).restart()
            stage.create("unknown-missed", [3])
            stage.serve("unknown-beside", [1, 2])
            wait_until_logged(stage.controllers[FIRST].process, "control request not delivered", since=logged)
        finally:
            stage.tell(stage.names())
        stage.wait_until_served("unknown-missed")
    assert stage.holder() == FIRST


def test_names_for_which_the_name_server_hangs_hold_up_no_broker_of_another_name(stage: Stage) -> None:
    stage.give_role_to(FIRST)
    with run_under_load(stage, "hanging"), silence_name_server(stage), brokers_of_hanging_names(stage):
        wait_until_logged(stage.controllers[FIRST].process, f"{name_of(HANGING[-1])}:9092 cannot be reached")
        for number in (1, 2):  # each gets a new connection
            stage.kafka.broker(number).restart()
            stage.serve(f"hanging-{number}", [number])
            stage.wait_until_served("hanging")
    assert stage.holder() == FIRST


def test_a_broker_is_found_at_the_address_that_its_name_has_now(stage: Stage) -> None:
    stage.give_role_to(FIRST)
    broker, machine = stage.kafka.broker(3), stage.broker(3)
    with run_under_load(stage, "moved"):
        broker.stop()
        before = machine.address
        stage.network.move(machine)
        assert machine.address != before
        stage.tell(stage.names())
        broker.relocate(machine.place(name_of(3)))
        broker.start()
        stage.serve("moved-there", [3])
    assert stage.holder() == FIRST
