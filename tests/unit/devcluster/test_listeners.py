"""The properties files of brokers with several listeners."""

from devcluster.clusters.listeners import EACH_APART, ONE_FOR_ALL


def test_one_listener_is_for_everything() -> None:
    assert ONE_FOR_ALL.names == ("PLAINTEXT",)
    assert ONE_FOR_ALL.properties({"PLAINTEXT": 1}) == {
        "listeners": "PLAINTEXT://127.0.0.1:1",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }


def test_each_listener_has_its_port_and_its_purpose() -> None:
    properties = EACH_APART.properties({"INTERNAL": 1, "CLIENT": 2, "CONTROLLER": 3})
    assert properties["listeners"] == "INTERNAL://127.0.0.1:1,CLIENT://127.0.0.1:2,CONTROLLER://127.0.0.1:3"
    assert properties["inter.broker.listener.name"] == "INTERNAL"
    assert properties["control.plane.listener.name"] == "CONTROLLER"
