"""The limits of a listener as settings: their sources, the order of these, and the errors about invalid ones."""

from pathlib import Path

import pytest

from controller_core.process.settings import ControllerProcessSettings, InvalidSettings, load_settings
from controller_core.wire.limits.listener_limits import ListenerLimits
from replica_broker.process.settings import load_settings as load_broker_settings

MB = 1 << 20
REQUIRED = {"zookeeper": "localhost:2181", "id": 1000, "listen": "PLAINTEXT://localhost:9092"}
OF_KAFKA: dict[str, object] = {
    "socket.request.max.bytes": 3 * MB,
    "max.connections": 11,
    "max.connections.per.ip": 7,
    "connections.max.idle.ms": 5000,
    "queued.max.requests": 9,
    "queued.max.request.bytes": 60 * MB,
    "controller.quota.window.num": 5,
    "controller.quota.window.size.seconds": 2,
}


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the settings in the environment of the person who runs the tests."""
    for name in OF_KAFKA:
        monkeypatch.delenv(f"KONTROLLER_{name.replace('.', '_').upper()}", raising=False)


def properties_with(folder: Path, said: dict[str, object]) -> Path:
    path = folder / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in said.items()))
    return path


def load_with(folder: Path, said: dict[str, object], **given: object) -> ControllerProcessSettings:
    """Load settings with a file of these properties."""
    return load_settings({**REQUIRED, "properties": properties_with(folder, said), **given})


def test_by_default_limits_are_kafkas_where_it_has_one() -> None:
    settings = load_settings(REQUIRED)
    assert settings.listener_limits == ListenerLimits()
    assert settings.most_queued_requests == 500
    assert settings.quota_windows == (None, None)


def test_what_brokers_properties_say_holds_for_the_controller_too(tmp_path: Path) -> None:
    settings = load_with(tmp_path, OF_KAFKA)
    limits = settings.listener_limits
    assert (limits.max_frame_bytes, limits.max_own_request_bytes, limits.max_passed_on_bytes) == (3 * MB,) * 3
    assert (limits.max_connections, limits.max_connections_per_address, limits.idle_timeout_ms) == (11, 7, 5000)
    assert (limits.brokers_bytes, limits.administrators_bytes, limits.strangers_bytes) == (20 * MB, 10 * MB, 30 * MB)
    assert settings.most_queued_requests == 9
    assert settings.quota_windows == (5, 2)
    assert limits.max_answer_bytes == ListenerLimits().max_answer_bytes, "of brokers' answers it says nothing"


def test_limits_of_one_listener_or_of_one_address_are_ignored(tmp_path: Path) -> None:
    said: dict[str, object] = {
        "listener.name.plaintext.max.connections": 3,
        "listener.name.plaintext.max.connections.per.ip": "none",
        "max.connections.per.ip.overrides": "127.0.0.1:2",
    }
    assert load_with(tmp_path, said).listener_limits == ListenerLimits()
    assert load_with(tmp_path, {**said, "max.connections": 11}).listener_limits.max_connections == 11


def test_a_setting_goes_before_the_properties_wherever_it_is_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("max-connections: 3\nqueued-max-requests: 4\nconnections-max-idle-ms: 6000")
    monkeypatch.setenv("KONTROLLER_QUEUED_MAX_REQUESTS", "40")
    monkeypatch.setenv("KONTROLLER_CONNECTIONS_MAX_IDLE_MS", "60000")
    given = {**REQUIRED, "properties": properties_with(tmp_path, OF_KAFKA), "connections_max_idle_ms": 600_000}
    settings = load_settings(given, file)
    limits = settings.listener_limits
    assert (limits.max_connections, settings.most_queued_requests, limits.idle_timeout_ms) == (3, 40, 600_000)
    assert limits.max_connections_per_address == 7, "of what no setting says the properties still say it"


def test_a_larger_request_than_kafkas_default_may_be_passed_on_where_there_is_room_for_it(tmp_path: Path) -> None:
    largest = (1 << 31) - 1
    limits = load_with(tmp_path, {}, socket_request_max_bytes=largest, queued_max_request_bytes=1 << 36).listener_limits
    assert limits.max_frame_bytes == largest
    assert limits.max_own_request_bytes == ListenerLimits().max_own_request_bytes


@pytest.mark.parametrize("said", ["-1", "0", " -1 "])
def test_no_limit_of_memory_means_ours(tmp_path: Path, said: str) -> None:
    assert load_with(tmp_path, {"queued.max.request.bytes": said}).listener_limits == ListenerLimits()


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ({"connections.max.idle.ms": -1}, {"connections_max_idle_ms": 1_000}),
        ({"socket.request.max.bytes": 100}, {"socket_request_max_bytes": MB}),
        ({"max.connections": 0}, {"max_connections": 10_000}),
        ({"max.connections.per.ip": 0}, {"max_connections_per_address": 1}),
        ({"queued.max.requests": 0}, {"queued_max_requests": 1}),
        ({"queued.max.request.bytes": MB - 1}, {"queued_max_request_bytes": 100 * MB}),
        ({"controller.quota.window.num": 0}, {"controller_quota_window_num": 1}),
        ({"controller.quota.window.size.seconds": 0}, {"controller_quota_window_size_seconds": 1}),
    ],
    ids=lambda value: next(iter(value)),
)
def test_what_a_controller_cannot_do_is_named_and_not_looked_at_where_a_setting_says_another(
    tmp_path: Path, said: dict[str, object], given: dict[str, object]
) -> None:
    with pytest.raises(InvalidSettings, match="set the option that overrides it") as refused:
        load_with(tmp_path, said)
    assert f"properties: {next(iter(said))}: Input should be greater than or equal to" in str(refused.value)
    load_with(tmp_path, said, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"socket_request_max_bytes": MB - 1}, "--socket-request-max-bytes: Input should be greater"),
        ({"socket_request_max_bytes": 1 << 31}, "--socket-request-max-bytes: Input should be less"),
        ({"max_connections": 10_001}, "--max-connections: "),
        ({"max_connections_per_address": 0}, "--max-connections-per-address: "),
        ({"connections_max_idle_ms": 999}, "--connections-max-idle-ms: "),
        ({"max_requests_in_flight": 0}, "--max-requests-in-flight: "),
        ({"queued_max_requests": "many"}, "--queued-max-requests: "),
        ({"queued_max_request_bytes": (1 << 36) + 1}, "--queued-max-request-bytes: "),
        ({"controller_quota_window_num": 1 << 31}, "--controller-quota-window-num: "),
        (
            {"queued_max_request_bytes": 100 * MB - 1},
            "queued-max-request-bytes (104857599) is less than the largest request, socket-request-max-bytes (104857600): ",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_out_of_range_is_named_with_what_to_change(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load_settings({**REQUIRED, **given})
    assert message in str(refused.value)


def test_a_broker_takes_what_its_limits_say_and_so_does_the_controller_within_it(tmp_path: Path) -> None:
    settings = load_broker_settings(
        {
            **REQUIRED,
            "id": 1,
            "log_directory": [str(tmp_path)],
            "properties": properties_with(tmp_path, {**OF_KAFKA, "max.connections": (1 << 31) - 1}),
            "max_connections_per_address": 5,
            "may_be_controller": "1003@PLAINTEXT://localhost:9093",
        }
    )
    limits = settings.listener_limits
    assert (limits.max_frame_bytes, limits.max_connections_per_address) == (3 * MB, 5)
    assert settings.controller is not None
    assert settings.controller.listener_limits == limits
    assert settings.controller.most_queued_requests == 9
