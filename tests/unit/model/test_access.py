"""The requests that are allowed by address: for brokers, administrators, keepers of credentials, and all others."""

from ipaddress import ip_network

import pytest

from controller_core.model.access import AccessRules, Address, Need, parse_address
from controller_core.wire.api_table import REFUSED_API_KEYS, need_of
from controller_core.wire.listener.owned_api import INTER_BROKER_API_KEYS

STRANGER = "127.0.0.77"
BROKER = "10.1.1.1"


def address(text: str) -> Address:
    parsed = parse_address(text)
    assert parsed is not None
    return parsed


def is_allowed(rules: AccessRules, need: Need, text: str) -> bool:
    return rules.allows(need, address(text), {address(BROKER)})


def test_what_only_brokers_send_needs_a_broker() -> None:
    accepted = {key for key in range(88) if key not in REFUSED_API_KEYS}
    assert {key for key in accepted if need_of(key) is Need.BROKER} == INTER_BROKER_API_KEYS


def test_questions_need_nobody() -> None:
    describing = {"metadata": 3, "api versions": 18, "configs": 32, "reassignments": 46, "cluster": 60}
    assert {need_of(key) for key in describing.values()} == {Need.NOBODY}


def test_only_registered_brokers_and_named_networks_are_brokers() -> None:
    rules = AccessRules(brokers=(ip_network("192.0.2.0/24"),))
    assert is_allowed(rules, Need.BROKER, BROKER)
    assert is_allowed(rules, Need.BROKER, "192.0.2.9")
    assert not is_allowed(rules, Need.BROKER, STRANGER), "this machine is no broker by itself"
    assert not is_allowed(rules, Need.BROKER, "10.1.1.2")


@pytest.mark.parametrize("text", ["127.0.0.1", "10.9.9.9", "172.31.0.1", "192.168.1.1", "100.64.0.1", "fd00::1", "::1"])
def test_whoever_is_in_a_private_network_administers_unless_it_was_said_who_does(text: str) -> None:
    assert is_allowed(AccessRules(), Need.ADMINISTRATOR, text)
    said = AccessRules(administrators=(ip_network("203.0.113.0/24"),))
    assert not is_allowed(said, Need.ADMINISTRATOR, text)
    assert is_allowed(said, Need.ADMINISTRATOR, "203.0.113.5")


@pytest.mark.parametrize("text", ["203.0.113.5", "8.8.8.8", "172.32.0.1", "2001:db8::1"])
def test_nobody_administers_from_the_internet_by_default(text: str) -> None:
    assert not is_allowed(AccessRules(), Need.ADMINISTRATOR, text)


def test_brokers_create_topics_for_their_clients_wherever_they_are() -> None:
    assert is_allowed(AccessRules(administrators=(ip_network("203.0.113.0/24"),)), Need.ADMINISTRATOR, BROKER)


def test_credentials_are_altered_from_this_machine_alone_unless_it_was_said_who_administers() -> None:
    assert is_allowed(AccessRules(), Need.KEEPER_OF_CREDENTIALS, "127.0.0.1")
    assert not is_allowed(AccessRules(), Need.KEEPER_OF_CREDENTIALS, "10.9.9.9")
    assert not is_allowed(AccessRules(), Need.KEEPER_OF_CREDENTIALS, BROKER)
    said = AccessRules(administrators=(ip_network("10.9.0.0/16"),))
    assert is_allowed(said, Need.KEEPER_OF_CREDENTIALS, "10.9.9.9")
    assert not is_allowed(said, Need.KEEPER_OF_CREDENTIALS, "127.0.0.1")
    assert not is_allowed(said, Need.KEEPER_OF_CREDENTIALS, BROKER)


@pytest.mark.parametrize("text", ["127.0.0.6", "::6"])
@pytest.mark.parametrize("need", [Need.ADMINISTRATOR, Need.KEEPER_OF_CREDENTIALS])
def test_the_address_of_all_who_come_through_a_sidecar_has_no_rights_unless_it_is_named(need: Need, text: str) -> None:
    assert AccessRules().find_shared() == ()
    assert not is_allowed(AccessRules(), need, text)
    named = AccessRules(administrators=(ip_network("127.0.0.0/8"), ip_network("::/96"), ip_network("10.0.0.0/8")))
    assert is_allowed(named, need, text)
    assert named.find_shared() == (ip_network("127.0.0.0/8"), ip_network("::/96"))
    assert AccessRules(brokers=(ip_network("127.0.0.6/32"),)).find_shared() == (ip_network("127.0.0.6/32"),)


def test_an_address_of_ipv4_is_the_same_on_a_socket_of_ipv6() -> None:
    assert parse_address("::ffff:10.1.1.1") == address("10.1.1.1")
    assert parse_address("[fe80::1%eth0]") == address("fe80::1")
    assert parse_address("broker-1.brokers") is None
