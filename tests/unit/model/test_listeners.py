"""Under which names the controller is listed, and which of the brokers' names it is missing under."""

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import Broker, Endpoint


def endpoint(listener: str, protocol: str = "PLAINTEXT", host: str = "controller", port: int = 9090) -> Endpoint:
    return Endpoint(listener=listener, security_protocol=protocol, host=host, port=port)


def broker(*endpoints: Endpoint) -> Broker:
    return Broker(id=BrokerId(1), epoch=BrokerEpoch(1), endpoints=endpoints)


INTERNAL, CLIENT = endpoint("INTERNAL"), endpoint("CLIENT", port=9091)
ONE = ControllerListeners(endpoints=(INTERNAL,))
TWO = ControllerListeners(endpoints=(INTERNAL, CLIENT))


def test_it_is_missing_under_the_names_that_it_is_hidden_from() -> None:
    hidden = ControllerListeners(endpoints=(INTERNAL,), hidden_from=("CLIENT", "SECURE"))
    brokers = [broker(endpoint("INTERNAL"), endpoint("ADMIN"), endpoint("CLIENT"), endpoint("SECURE", "SSL"))]
    assert hidden.list_endpoints(brokers) == (INTERNAL, endpoint("ADMIN"))
    assert hidden.find_endpoint("CLIENT") is None
    assert hidden.find_endpoint("ADMIN") == endpoint("ADMIN")
    assert hidden.find_unserved(brokers) == {}
    assert hidden.find_unknown([broker(endpoint("INTERNAL"), endpoint("CLIENT"))]) == ["SECURE"]


def test_one_address_is_listed_under_every_plaintext_name_that_some_broker_has() -> None:
    brokers = [broker(endpoint("INTERNAL"), endpoint("OLD")), broker(endpoint("NEW"), endpoint("SECURE", "SSL"))]
    assert ONE.list_endpoints(brokers) == (INTERNAL, endpoint("NEW"), endpoint("OLD"))
    assert ONE.list_endpoints([]) == (INTERNAL,)


def test_several_addresses_are_listed_under_their_own_names_whatever_brokers_have() -> None:
    assert TWO.list_endpoints([broker(endpoint("OTHER"))]) == (INTERNAL, CLIENT)


def test_a_broker_that_has_another_protocol_under_a_name_takes_the_name_from_nobody() -> None:
    assert ONE.list_endpoints([broker(endpoint("A", "SSL")), broker(endpoint("A"))]) == (INTERNAL, endpoint("A"))


def test_the_controllers_own_requests_go_to_the_listener_between_brokers_or_to_the_control_plane() -> None:
    assert (TWO.inter_broker, TWO.links) == ("INTERNAL", "INTERNAL")
    with_control_plane = ControllerListeners(endpoints=(INTERNAL, CLIENT), control_plane="CONTROL")
    assert (with_control_plane.inter_broker, with_control_plane.links) == ("INTERNAL", "CONTROL")


def test_clients_of_a_listener_find_the_controller_where_it_listens_for_them() -> None:
    assert TWO.find_endpoint("CLIENT") == CLIENT
    assert TWO.find_endpoint("OTHER") is None
    assert ONE.find_endpoint("CLIENT") == endpoint("CLIENT")


def test_clients_are_sent_addresses_of_the_listener_they_came_by_or_of_the_one_that_is_theirs() -> None:
    assert TWO.find_client_listener("CLIENT") == "CLIENT"
    assert ONE.find_client_listener("INTERNAL") == "INTERNAL"
    assert ControllerListeners(endpoints=(INTERNAL,), clients="CLIENT").find_client_listener("INTERNAL") == "CLIENT"


def test_a_listener_of_brokers_that_has_no_address_is_named_with_what_to_add() -> None:
    brokers = [broker(endpoint("INTERNAL"), endpoint("CLIENT")), broker(endpoint("CONTROL"))]
    assert list(TWO.find_unserved(brokers)) == ["CONTROL"]
    assert "add --listen CONTROL://HOST:PORT" in TWO.find_unserved(brokers)["CONTROL"]
    assert ONE.find_unserved(brokers) == {}


def test_a_name_in_the_settings_that_no_broker_has_is_found() -> None:
    mistaken = ControllerListeners(endpoints=(INTERNAL,), control_plane="CONTROLL", clients="CLINT")
    assert mistaken.find_unknown([broker(endpoint("INTERNAL")), broker(endpoint("CLIENT"))]) == ["CONTROLL", "CLINT"]
    assert TWO.find_unknown([broker(endpoint("INTERNAL"), endpoint("CLIENT"))]) == []


def test_a_listener_of_another_protocol_is_named_with_what_to_say_of_it() -> None:
    brokers = [broker(endpoint("INTERNAL"), endpoint("CLIENT", "SASL_SSL"))]
    for listeners, words in (
        (ONE, "it uses SASL_SSL, but a single --listen serves only listeners of its own protocol, PLAINTEXT"),
        (TWO, "it uses SASL_SSL, but the controller uses PLAINTEXT under that name: set CLIENT:SASL_SSL in"),
    ):
        assert list(listeners.find_unserved(brokers)) == ["CLIENT"]
        assert words in listeners.find_unserved(brokers)["CLIENT"]


def test_one_address_is_listed_under_every_name_of_its_own_protocol() -> None:
    secured = ControllerListeners(endpoints=(endpoint("INTERNAL", "SASL_SSL"),))
    brokers = [broker(endpoint("INTERNAL", "SASL_SSL"), endpoint("CLIENT", "SASL_SSL"), endpoint("OPEN"))]
    assert secured.list_endpoints(brokers) == (endpoint("INTERNAL", "SASL_SSL"), endpoint("CLIENT", "SASL_SSL"))
    assert list(secured.find_unserved(brokers)) == ["OPEN"]
    assert "add --listen OPEN://HOST:PORT, with OPEN:PLAINTEXT in" in secured.find_unserved(brokers)["OPEN"]
