"""The gate of the listener: the addresses of brokers, and when it looks them up."""

import asyncio
import threading
from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from structlog.testing import capture_logs

from controller_core import names as resolving
from controller_core.model.access import AccessRules, Address, parse_address
from controller_core.model.authorization.principal import Caller
from controller_core.wire.limits.broker_addresses import MAX_AGE_S, MIN_INTERVAL_S, BrokerAddresses, is_of_this_machine
from controller_core.wire.limits.gate import AddressGate, report_identity_by_address

ALTER_PARTITION, CREATE_TOPICS, ALTER_SCRAM, METADATA = 56, 19, 51, 3


class Names:
    """A name server that can be slow or fail, and the brokers that have registered names in it."""

    def __init__(self, **addresses: list[str]) -> None:
        self.addresses = addresses
        self.hosts = list(addresses)
        self.now_s = 1000.0
        self.asked: list[str] = []
        self.was_asked = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.own: set[str] = set()
        self.brokers = BrokerAddresses(
            lambda: self.hosts,
            names=resolving.Names(self._resolve),
            is_own=self.is_own,
            now_s=lambda: self.now_s,
            min_interval_s=0.05,
        )

    def _resolve(self, name: str) -> Iterable[str]:
        self.asked.append(name)
        self.was_asked.set()
        self.may_answer.wait(10)
        if name not in self.addresses:
            raise OSError(f"{name} is not known")
        return self.addresses[name]

    def is_own(self, address: Address) -> bool:
        return str(address) in {"127.0.0.1", "::1", *self.own}

    def gate(self, *, is_controller: bool = True, is_local: bool = False, **rules: Any) -> AddressGate:
        async def is_in_charge() -> bool:
            return is_controller

        return AddressGate(AccessRules(**rules), self.brokers, is_in_charge, is_own=self.is_own, is_local=is_local)


def make_caller(text: str) -> Caller:
    address = parse_address(text)
    assert address is not None
    return Caller(address=address)


REFUSED = ErrorCode.cluster_authorization_failed


async def test_a_broker_is_known_by_what_its_host_resolves_to() -> None:
    names = Names(one=["10.1.0.1", "fd00::1"])
    gate = names.gate()
    assert not gate.is_broker(make_caller("10.1.0.1")), "nobody has been looked up before"
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is None
    assert await gate.why_not(ALTER_PARTITION, make_caller("fd00::1")) is None
    assert gate.is_broker(make_caller("10.1.0.1"))
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.2")) is REFUSED


async def test_a_broker_that_registers_while_others_are_looked_up_is_looked_up_before_it_is_refused() -> None:
    names = Names(one=["10.1.0.1"])
    names.may_answer.clear()
    asked = asyncio.create_task(names.gate().why_not(ALTER_PARTITION, make_caller("10.1.0.2")))
    await asyncio.to_thread(names.was_asked.wait)
    names.addresses["two"] = ["10.1.0.2"]
    names.hosts = ["one", "two"]
    names.may_answer.set()
    assert await asked is None


async def test_a_broker_that_only_connects_is_known_when_it_connects_again() -> None:
    names = Names(one=["10.1.0.1"])
    gate = names.gate()
    async with asyncio.timeout(5):
        while not gate.is_broker(make_caller("10.1.0.1")):  # noqa: ASYNC110 - it comes with the name server's answer
            await asyncio.sleep(0.001)
    assert names.asked == ["one"]


async def test_an_address_that_is_registered_needs_no_name_server() -> None:
    names = Names()
    names.hosts = ["10.1.0.1", "[fd00::1]"]
    gate = names.gate()
    assert gate.is_broker(make_caller("10.1.0.1"))
    assert gate.is_broker(make_caller("fd00::1"))
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is None
    assert names.asked == []


async def test_a_broker_that_moved_is_found_at_its_new_address_and_no_longer_at_the_old() -> None:
    names = Names(one=["10.1.0.1"])
    gate = names.gate()
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is None
    names.addresses["one"] = ["10.1.0.9"]
    names.now_s += MIN_INTERVAL_S
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.9")) is None
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is REFUSED


async def test_a_broker_that_left_is_no_broker() -> None:
    names = Names(one=["10.1.0.1"])
    gate = names.gate()
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is None
    names.hosts = []
    assert not gate.is_broker(make_caller("10.1.0.1"))
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is REFUSED


async def test_strangers_do_not_make_us_ask_the_name_server_again_and_again() -> None:
    names = Names(one=["10.1.0.1"])
    gate = names.gate()
    strangers = [gate.why_not(ALTER_PARTITION, make_caller(f"10.9.0.{number}")) for number in range(100)]
    assert set(await asyncio.gather(*strangers)) == {REFUSED}
    assert names.asked == ["one"]


async def test_a_broker_that_moved_just_after_the_names_were_resolved_waits_and_is_found() -> None:
    names = Names(one=["10.1.0.1"])
    gate = names.gate()
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.9.0.1")) is REFUSED
    names.addresses["one"] = ["10.1.0.9"]
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.9")) is None


async def test_a_broker_whose_name_is_new_is_found_although_names_have_just_been_resolved() -> None:
    names = Names(one=["10.1.0.1"])
    names.brokers = BrokerAddresses(lambda: names.hosts, names=resolving.Names(names._resolve), min_interval_s=3600)
    gate = names.gate()
    names.hosts = []
    assert not gate.is_broker(make_caller("10.1.0.1")), "there was no term yet, or no broker"
    names.hosts = ["one"]
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is None
    names.addresses["two"] = ["10.1.0.2"]
    names.hosts = ["one", "two"]
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.2")) is None


@pytest.mark.parametrize("registered", ["127.0.1.1", "127.0.0.1", "192.168.0.5", "::1"])
@pytest.mark.parametrize("source", ["127.0.0.1", "192.168.0.5", "::1"])
async def test_a_broker_on_the_controllers_own_machine_may_come_from_any_address_of_it(
    registered: str, source: str
) -> None:
    names = Names(here=[registered], elsewhere=["10.1.0.1"])
    names.own = {"192.168.0.5"}
    gate = names.gate()
    assert await gate.why_not(ALTER_PARTITION, make_caller(source)) is None
    assert await gate.why_not(ALTER_PARTITION, make_caller("192.168.0.6")) is REFUSED
    names.hosts = ["elsewhere"]
    assert await gate.why_not(ALTER_PARTITION, make_caller(source)) is REFUSED, "no broker is here"


def test_the_addresses_of_this_machine_are_known_without_a_word_to_anybody() -> None:
    assert is_of_this_machine(ip_address("127.0.0.1"))
    assert not is_of_this_machine(ip_address("127.0.0.77")), "somebody chose it, to be distinguished"
    assert is_of_this_machine(ip_address("::1"))
    assert not is_of_this_machine(ip_address("192.0.2.1"))
    assert not is_of_this_machine(ip_address("2001:db8::1"))


async def test_while_the_name_server_fails_what_was_known_holds() -> None:
    names = Names(one=["10.1.0.1"])
    gate = names.gate()
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is None
    names.addresses.clear()
    names.now_s += MIN_INTERVAL_S
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.9.0.1")) is REFUSED
    assert names.asked == ["one", "one"]
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is None


async def test_known_brokers_do_not_wait_for_a_slow_name_server_and_old_knowledge_is_renewed() -> None:
    names = Names(one=["10.1.0.1"])
    gate = names.gate()
    assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is None
    names.was_asked.clear()
    names.may_answer.clear()
    names.now_s += MAX_AGE_S + 1
    try:
        assert await gate.why_not(ALTER_PARTITION, make_caller("10.1.0.1")) is None
        assert await asyncio.to_thread(names.was_asked.wait, 5), "it is asked meanwhile"
    finally:
        names.may_answer.set()


async def test_a_process_that_is_not_the_controller_says_so_to_everybody() -> None:
    gate = Names().gate(is_controller=False)
    for key in (ALTER_PARTITION, CREATE_TOPICS, ALTER_SCRAM):
        assert await gate.why_not(key, make_caller("127.0.0.1")) is ErrorCode.not_controller
    assert await gate.why_not(METADATA, make_caller("127.0.0.1")) is None


@pytest.mark.parametrize("source", ["127.0.0.1", "10.0.0.9", "203.0.113.9"])
async def test_the_controllers_own_machine_is_that_at_all_of_its_addresses(source: str) -> None:
    names = Names()
    names.own = {"10.0.0.9", "203.0.113.9"}
    gate = names.gate()
    for key in (ALTER_SCRAM, CREATE_TOPICS):
        assert await gate.why_not(key, make_caller(source)) is None
        assert (
            await names.gate(administrators=(ip_network("10.5.0.0/16"),)).why_not(key, make_caller(source)) is REFUSED
        )
    assert await gate.why_not(ALTER_SCRAM, make_caller("10.0.0.8")) is REFUSED
    assert (
        await names.gate(administrators=(ip_network("10.0.0.9/32"),)).why_not(ALTER_SCRAM, make_caller("10.0.0.9"))
        is None
    )


async def test_administrators_need_no_name_server() -> None:
    names = Names(one=["10.1.0.1"])
    gate = names.gate(administrators=(ip_network("10.9.0.0/16"),))
    assert await gate.why_not(CREATE_TOPICS, make_caller("10.9.0.1")) is None
    assert await gate.why_not(ALTER_SCRAM, make_caller("10.9.0.1")) is None
    assert names.asked == []
    assert await gate.why_not(CREATE_TOPICS, make_caller("10.1.0.1")) is None, "a broker, for a client of its"
    assert await gate.why_not(CREATE_TOPICS, make_caller("10.1.0.2")) is REFUSED


async def test_a_refusal_is_logged_once_for_an_address_with_the_setting_that_would_allow_it() -> None:
    gate = Names().gate()
    with capture_logs() as lines:
        for _ in range(10):
            assert await gate.why_not(ALTER_PARTITION, make_caller("10.9.0.1")) is REFUSED
            assert await gate.why_not(ALTER_SCRAM, make_caller("10.9.0.1")) is REFUSED
    (broker, credentials) = lines
    assert broker["address"] == credentials["address"] == "10.9.0.1"
    assert "--broker-cidr" in broker["why"]
    assert "--admin-cidr" in credentials["why"]


async def test_a_proxy_that_hides_its_callers_is_reported_once_where_other_machines_reach_the_port() -> None:
    gate = Names().gate()
    with capture_logs() as lines:
        for _ in range(3):
            assert await gate.why_not(METADATA, make_caller("127.0.0.6")) is None
            assert await gate.why_not(CREATE_TOPICS, make_caller("10.9.0.1")) is None
            assert await gate.why_not(CREATE_TOPICS, make_caller("127.0.0.6")) is REFUSED
    (hidden, refused) = lines
    assert "a proxy hides the callers" in hidden["event"]
    assert (hidden["address"], refused["event"]) == ("127.0.0.6", "request refused")
    assert all("exclude the port from the mesh" in line["why"] for line in lines), "and not: add it to --admin-cidr"
    with capture_logs() as lines:
        assert await Names().gate(is_local=True).why_not(CREATE_TOPICS, make_caller("127.0.0.1")) is None
    assert lines == []


def test_what_addresses_cannot_tell_apart_is_said_at_the_start() -> None:
    with capture_logs() as lines:
        report_identity_by_address(AccessRules(), is_local=False)
    assert [line["event"] for line in lines] == [
        "every client in a private network may change the cluster: restrict it with --admin-cidr",
        "only their addresses decide what callers may do",
    ]
    with capture_logs() as lines:
        report_identity_by_address(AccessRules(administrators=(ip_network("127.0.0.0/8"),)), is_local=True)
    (shared,) = lines
    assert (shared["network"], shared["log_level"]) == ("127.0.0.0/8", "warning")


def test_networks_that_contain_the_node_or_loopback_are_named_if_others_reach_the_port() -> None:
    networks = (ip_network("10.0.0.0/8"), ip_network("10.244.0.0/16"), ip_network("127.0.0.1/32"))
    rules, node = AccessRules(administrators=networks, brokers=(ip_network("10.7.0.0/16"),)), ip_address("10.7.0.1")
    with capture_logs() as lines:
        report_identity_by_address(rules, is_local=False, node=node)
    assert [line["network"] for line in lines if "network" in line] == ["10.0.0.0/8", "127.0.0.1/32", "10.7.0.0/16"]
    with capture_logs() as lines:
        report_identity_by_address(rules, is_local=True, node=node)
    assert lines == []
