"""The settings of a controller process: their sources, and the errors about bad ones."""

from collections.abc import Iterable
from ipaddress import ip_network
from pathlib import Path

import pytest

from controller_core.model.metadata import Endpoint
from controller_core.process.listener_addresses import parse_listener
from controller_core.process.settings import ControllerProcessSettings, InvalidSettings, load_settings

REQUIRED = {"zookeeper": "localhost:2181", "id": 1000, "listen": "PLAINTEXT://localhost:9092"}


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the settings in the environment of the person who runs the tests."""
    for name in ("ZOOKEEPER", "ID", "LISTEN", "ADVERTISE", "METRICS_PORT", "LOG_FORMAT"):
        monkeypatch.delenv(f"KONTROLLER_{name}", raising=False)


def addresses(endpoints: Iterable[Endpoint]) -> list[tuple[str, str, int]]:
    return [(endpoint.listener, endpoint.host, endpoint.port) for endpoint in endpoints]


def file_with(folder: Path, text: str) -> Path:
    path = folder / "settings.yaml"
    path.write_text(text)
    return path


def test_three_settings_are_enough() -> None:
    settings = load_settings(REQUIRED)
    assert (settings.zookeeper, settings.id) == ("localhost:2181", 1000)
    assert addresses(settings.listeners.endpoints) == [("PLAINTEXT", "localhost", 9092)]
    assert settings.binds == settings.listeners.endpoints
    assert settings.shared == {}, "brokers' files say the rest"
    assert settings.metrics_port is None


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_with(tmp_path, "zookeeper: from-file\nid: 1\nlisten: PLAINTEXT://from-file:1\nmetrics-port: 7")
    monkeypatch.setenv("KONTROLLER_ID", "2")
    monkeypatch.setenv("KONTROLLER_LISTEN", "PLAINTEXT://from-environment:2")
    settings = load_settings({"listen": "PLAINTEXT://from-command-line:3", "zookeeper": None}, file)
    assert settings.zookeeper == "from-file"
    assert settings.id == 2
    assert addresses(settings.binds) == [("PLAINTEXT", "from-command-line", 3)]
    assert settings.metrics_port == 7


def test_brokers_may_be_sent_another_address_than_the_one_that_is_listened_on() -> None:
    settings = load_settings({**REQUIRED, "listen": "INTERNAL://0.0.0.0:9092", "advertise": "kontroller.example:19092"})
    assert addresses(settings.binds) == [("INTERNAL", "0.0.0.0", 9092)]
    assert addresses(settings.listeners.endpoints) == [("INTERNAL", "kontroller.example", 19092)]


SEVERAL = ("INTERNAL://0.0.0.0:9092", "CLIENT://10.0.0.9:9093")
ADVERTISED = "internal://kontroller.example:19092"


@pytest.mark.parametrize("as_list", [True, False], ids=["a list", "with commas"])
def test_each_of_several_listeners_has_its_own_address(as_list: bool) -> None:
    settings = load_settings(
        {**REQUIRED, "listen": list(SEVERAL) if as_list else ", ".join(SEVERAL), "advertise": ADVERTISED}
    )
    assert addresses(settings.binds) == [("INTERNAL", "0.0.0.0", 9092), ("CLIENT", "10.0.0.9", 9093)]
    assert addresses(settings.listeners.endpoints) == [
        ("INTERNAL", "kontroller.example", 19092), ("CLIENT", "10.0.0.9", 9093),
    ]  # fmt: skip


def test_several_listeners_come_from_the_environment_and_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_with(
        tmp_path, "listen: [INTERNAL://from-file:1, CLIENT://from-file:2]\ncontrol-plane-listener: control"
    )
    given = {"zookeeper": "zk", "id": 1}
    settings = load_settings(given, file)
    assert addresses(settings.binds) == [("INTERNAL", "from-file", 1), ("CLIENT", "from-file", 2)]
    assert settings.listeners.links == "CONTROL", "brokers register the names of listeners in capitals"
    monkeypatch.setenv("KONTROLLER_LISTEN", "A://from-environment:1,B://from-environment:2")
    settings = load_settings(given, file)
    assert addresses(settings.binds) == [("A", "from-environment", 1), ("B", "from-environment", 2)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"zookeeper": None}, "--zookeeper is missing: give it, or set KONTROLLER_ZOOKEEPER"),
        ({"zookeeper": ""}, "--zookeeper: "),
        ({"id": -1}, "--id: "),
        ({"id": "seven"}, "--id: "),
        ({"listen": "localhost"}, "--listen: 'localhost' is not of the form PLAINTEXT://HOST:PORT"),
        ({"listen": "PLAINTEXT://localhost:65536"}, "is not of the form PLAINTEXT://HOST:PORT"),
        ({"listen": "SASL_SSL://localhost:9092"}, "SASL_SSL needs --properties, which say how it is secured"),
        ({"listen": "PLAINTEXT://0.0.0.0:9092"}, "say with --advertise which host and port they reach"),
        ({"listen": "PLAINTEXT://[::]:9092"}, "brokers cannot connect to ::"),
        ({"advertise": "no-port"}, "--advertise: "),
        ({"listen": []}, "--listen: "),
        ({"listen": "A://h:1,A://h:2"}, "--listen: listener A is given twice"),
        ({"listen": "A://h:1,B://h:1"}, "--listen: two listeners have the address h:1: give each its own, or one"),
        ({"listen": "A://h:1,B://0.0.0.0:2"}, "say with --advertise which host and port they reach for B"),
        ({"listen": "A://h:1,B://h:2", "advertise": "h:3"}, "'h:3' is not of the form PLAINTEXT://HOST:PORT"),
        ({"advertise": "OTHER://h:3"}, "OTHER is advertised, but there is no such listener: add it with listen"),
        (
            {"listen": "A://h:1,B://h:2", "client_listener": "A"},
            "--client-listener needs a single --listen that serves several",
        ),
        ({"control_plane_listener": "a b"}, "--control-plane-listener: "),
        (
            {"listen": "A://h:1", "hide_from": "b,a"},
            "--hide-from names A, at which brokers or clients find the controller",
        ),
        ({"listen": "A://h:1", "client_listener": "B", "hide_from": "B"}, "--hide-from names B"),
        ({"zookeeper_session_timeout_ms": 10}, "--zookeeper-session-timeout-ms: "),
        ({"metrics_port": 70000}, "--metrics-port: "),
        ({"log_format": "xml"}, "--log-format: "),
        ({"journal_topic": "journal"}, "--journal-topic and --journal-bootstrap-server go together"),
        ({"journal_topic": "a journal", "journal_bootstrap_server": "broker:9092"}, "--journal-topic: "),
        ({"journal_topic": "journal", "journal_bootstrap_server": "broker"}, "--journal-bootstrap-server: "),
        ({"admin_cidr": "10.0.0.0/8,nowhere"}, "--admin-cidr"),
        ({"broker_cidr": ["10.0.0.0/33"]}, "--broker-cidr"),
        ({"colour": "red"}, "colour is not a setting"),
    ],
)
def test_a_bad_setting_is_named_with_what_to_change(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load_settings({**REQUIRED, **changes})
    assert message in str(refused.value)


def test_all_bad_settings_are_named_at_once() -> None:
    with pytest.raises(InvalidSettings) as refused:
        load_settings({"id": -1, "listen": "nowhere"})
    assert [line.split(":")[0].split()[0] for line in str(refused.value).splitlines()] == [
        "--zookeeper", "--id", "--listen",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"), [("a: [", "is not YAML"), ("- id", "must hold settings as `name: value`"), ("", "must hold")]
)
def test_a_file_that_holds_no_settings_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidSettings, match=r"settings file .*settings\.yaml") as refused:
        load_settings(REQUIRED, file_with(tmp_path, text))
    assert message in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="cannot be read: No such file"):
        load_settings(REQUIRED, tmp_path / "settings.yaml")


@pytest.mark.parametrize(
    ("text", "host"),
    [("PLAINTEXT://[::1]:9092", "::1"), ("INTERNAL://broker-1.example.org:9092", "broker-1.example.org")],
)
def test_listeners_have_names_and_addresses_of_any_kind(text: str, host: str) -> None:
    assert parse_listener(text).host == host


@pytest.mark.parametrize("given", [["10.0.0.0/8", "fd00::/8"], "10.0.0.0/8, fd00::/8"], ids=["repeated", "with commas"])
def test_networks_are_given_one_by_one_or_in_one_line(given: object) -> None:
    settings = load_settings({**REQUIRED, "admin_cidr": given, "broker_cidr": "192.0.2.7"})
    assert settings.access_rules.administrators == (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
    assert settings.access_rules.brokers == (ip_network("192.0.2.7/32"),)


def test_nobody_is_said_to_administer_by_default() -> None:
    assert load_settings(REQUIRED).access_rules.administrators is None


def properties_with(folder: Path, **said: str) -> Path:
    path = folder / "server.properties"
    path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in said.items()))
    return path


def protocols(settings: ControllerProcessSettings) -> dict[str, str]:
    return {endpoint.listener: endpoint.security_protocol for endpoint in settings.listeners.endpoints}


def test_what_a_listener_speaks_is_said_by_the_map_of_the_brokers_or_by_its_own_name(tmp_path: Path) -> None:
    mapped = properties_with(tmp_path, listener_security_protocol_map="INTERNAL:SASL_SSL,CLIENT:PLAINTEXT")
    given = {**REQUIRED, "properties": mapped, "listen": "INTERNAL://h:1,CLIENT://0.0.0.0:2,SSL://h:3"}
    settings = load_settings({**given, "advertise": "client://kafka.example:2"})
    assert protocols(settings) == {"INTERNAL": "SASL_SSL", "CLIENT": "PLAINTEXT", "SSL": "SSL"}
    unmapped = properties_with(tmp_path, zookeeper_set_acl="false")
    settings = load_settings({**REQUIRED, "properties": unmapped, "listen": "INTERNAL://h:1,SASL_PLAINTEXT://h:2"})
    assert protocols(settings) == {"INTERNAL": "PLAINTEXT", "SASL_PLAINTEXT": "SASL_PLAINTEXT"}


def test_a_listener_that_the_map_does_not_have_is_not_taken_for_plaintext(tmp_path: Path) -> None:
    mapped = properties_with(tmp_path, listener_security_protocol_map="INTERNAL:SASL_SSL")
    with pytest.raises(InvalidSettings, match="does not have INTERNL: add INTERNL:PROTOCOL"):
        load_settings({**REQUIRED, "properties": mapped, "listen": "INTERNL://h:1"})
