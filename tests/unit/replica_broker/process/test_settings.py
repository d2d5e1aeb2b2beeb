"""The settings of a broker: their effects, and the errors about invalid ones."""

from collections.abc import Awaitable, Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from controller_core.admin.authorizing.authorizer_properties import ACL_AUTHORIZER
from controller_core.model.metadata import FeatureRange
from controller_core.process.settings import InvalidSettings
from replica_broker.process.run import run_broker
from replica_broker.process.run_v2 import run_v2_broker
from replica_broker.process.settings import BrokerProcessSettings, load_settings
from replica_broker.v2.settings import V2Settings

GIVEN: dict[str, Any] = {
    "zookeeper": "here:2181",
    "id": 3,
    "listen": "PLAINTEXT://127.0.0.1:9092",
    "log_directory": ["/data/a", "/data/b"],
}


def test_the_defaults_are_kafkas_and_the_seeds_lags_are_as_kafka_has_them() -> None:
    settings = load_settings(GIVEN)
    assert settings.log_directory == (Path("/data/a"), Path("/data/b"))
    replicas = settings.replicas
    assert (replicas.max_time_lag_ms, replicas.max_bytes_lag, replicas.min_bytes_lag) == (30_000, None, None)
    assert (replicas.truncate_to, replicas.isr_writes) == ("leader epoch", "AlterPartition")
    assert settings.zookeeper_session_timeout_ms == 18_000


def test_what_the_seed_has_can_be_chosen() -> None:
    settings = load_settings({**GIVEN, "truncate_to": "high-watermark", "isr_writes": "zookeeper", "max_bytes_lag": 9})
    replicas = settings.replicas
    assert (replicas.truncate_to, replicas.isr_writes, replicas.max_bytes_lag) == ("high watermark", "ZooKeeper", 9)


def test_networks_of_controllers_can_be_given() -> None:
    assert load_settings({**GIVEN, "controller_cidr": ["10.1.0.0/16"]}).controller_cidr == (ip_network("10.1.0.0/16"),)


def test_features_are_ranges() -> None:
    settings = load_settings({**GIVEN, "feature": ["f:0-3", "g:1-1"]})
    assert settings.features == {
        "f": FeatureRange(min_version=0, max_version=3),
        "g": FeatureRange(min_version=1, max_version=1),
    }


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"id": None}, "--id is missing"),
        ({"log_directory": []}, "--log-directory"),
        ({"listen": "here:9092"}, "is not of the form PLAINTEXT://HOST:PORT"),
        ({"listen": "SSL://here:9092"}, "SSL needs --properties"),
        ({"listen": "PLAINTEXT://0.0.0.0:9092"}, "nobody can connect to 0.0.0.0"),
        ({"advertise": "OTHER://here:9092"}, "OTHER is advertised, but there is no such listener"),
        ({"listen": ["A://h:1", "A://h:2"]}, "--listen: listener A is given twice"),
        ({"listen": ["A://h:1", "B://h:1"]}, "--listen: two listeners have the address h:1: give each its own"),
        ({"listen": ["A://h:1", "B://0.0.0.0:2"]}, "set advertise to a reachable host and port for B"),
        ({"inter_broker_listener": "INTERNAL"}, "inter-broker-listener INTERNAL has no address to listen on"),
        ({"feature": ["f:3-1"]}, "is not of the form NAME:MIN-MAX"),
        ({"feature": ["f"]}, "is not of the form NAME:MIN-MAX"),
        ({"truncate_to": "nowhere"}, "--truncate-to"),
        ({"isr_writes": "nobody"}, "--isr-writes"),
        ({"may_be_controller": "here:9093"}, "is not of the form ID@PLAINTEXT://HOST:PORT"),
        ({"may_be_controller": "3@PLAINTEXT://here:9093"}, "needs an id that no broker has"),
        ({"unknown": 1}, "unknown is not a setting"),
    ],
)
def test_what_cannot_be_is_refused_in_words(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSettings, match=words):
        load_settings({**GIVEN, **changed})


@pytest.mark.parametrize("run", [run_broker, run_v2_broker])
@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ("authorizer.class.name=org.example.Own", "authorizer.class.name is org.example.Own, whose rules are unknown"),
        (
            f"authorizer.class.name={ACL_AUTHORIZER}\nprincipal.builder.class=a.B",
            "principal.builder.class is a.B, whose",
        ),
        (f"authorizer.class.name={ACL_AUTHORIZER}\nsuper.users=admin", "'admin' is not a principal"),
    ],
)
async def test_an_authorization_that_cannot_be_applied_is_refused_at_the_start(
    tmp_path: Path, properties: str, said: str, run: Callable[[BrokerProcessSettings], Awaitable[None]]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(properties)
    with pytest.raises(InvalidSettings, match=f"--properties: .*{said}"):
        await run(load_settings({**GIVEN, "properties": file}))


def test_several_listeners_have_an_address_each_and_one_is_that_between_brokers() -> None:
    settings = load_settings(
        {
            **GIVEN,
            "listen": "CLIENT://0.0.0.0:9092, INTERNAL://127.0.0.1:9091",
            "advertise": ["CLIENT://outside:19092"],
            "inter_broker_listener": "internal",
        }
    )
    assert [(bind.listener, bind.host, bind.port) for bind in settings.binds] == [
        ("CLIENT", "0.0.0.0", 9092),
        ("INTERNAL", "127.0.0.1", 9091),
    ]
    assert [(one.listener, one.host, one.port) for one in settings.endpoints] == [
        ("CLIENT", "outside", 19092),
        ("INTERNAL", "127.0.0.1", 9091),
    ]
    assert settings.between_brokers == "INTERNAL"
    assert settings.own_configs["inter.broker.listener.name"] == "INTERNAL"


def test_what_topics_do_not_say_and_when_it_is_done_can_be_set() -> None:
    given = {"retention_ms": 5_000, "retention_bytes": 7, "retention_check_interval_ms": 900, "flush_interval_ms": 800}
    settings = load_settings({**GIVEN, **given, "compression_type": "zstd"})
    assert (settings.replicas.retention_check_interval_ms, settings.replicas.flush_interval_ms) == (900, 800)
    own = settings.own_configs
    assert (own["log.retention.ms"], own["log.retention.bytes"], own["compression.type"]) == ("5000", "7", "zstd")


def test_a_broker_says_that_it_has_an_authorizer_because_controllers_without_one_must_not_ask_it_for_others(
    tmp_path: Path,
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"authorizer.class.name={ACL_AUTHORIZER}\n")
    assert load_settings({**GIVEN, "properties": file}).own_configs["authorizer.class.name"] == ACL_AUTHORIZER
    assert load_settings(GIVEN).own_configs["authorizer.class.name"] == ""


def test_without_an_interval_logs_are_flushed_only_at_the_end() -> None:
    assert load_settings({**GIVEN, "flush_interval_ms": "none"}).replicas.flush_interval_ms is None


def test_the_first_listener_is_that_between_brokers_where_nobody_says_another() -> None:
    assert load_settings({**GIVEN, "listen": ["A://h:1", "B://h:2"]}).between_brokers == "A"


def test_of_one_listener_the_advertised_address_alone_can_be_given() -> None:
    (endpoint,) = load_settings({**GIVEN, "listen": "A://0.0.0.0:1", "advertise": "outside:2"}).endpoints
    assert (endpoint.listener, endpoint.host, endpoint.port) == ("A", "outside", 2)


def test_a_controller_in_the_same_process_has_an_id_and_a_port_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KONTROLLER_RACK", "north")
    settings = load_settings({**GIVEN, "may_be_controller": "1003@PLAINTEXT://127.0.0.1:9093"})
    assert settings.controller is not None
    assert (settings.controller.id, settings.controller.listen) == (1003, ("PLAINTEXT://127.0.0.1:9093",))
    assert load_settings(GIVEN).controller is None


def test_design_v2_is_chosen_with_its_times_and_bounds() -> None:
    assert load_settings(GIVEN).design == "v3"
    assert load_settings(GIVEN).v2 == V2Settings()
    chosen = load_settings(
        {
            **GIVEN,
            "design": "v2",
            "preferred_replica_time_ms": 1,
            "keep_in_sync_time_ms": 2,
            "state_change_queue_bound": 3,
            "becoming_leader_high_watermark": "end",
        }
    )
    assert (chosen.design, chosen.v2) == (
        "v2",
        V2Settings(
            preferred_replica_time_ms=1,
            keep_in_sync_time_ms=2,
            state_change_queue_bound=3,
            becoming_leader_high_watermark="end",
        ),
    )
    with pytest.raises(InvalidSettings):
        load_settings({**GIVEN, "design": "v1"})
    with pytest.raises(InvalidSettings, match="design v2 has no controller"):
        load_settings({**GIVEN, "design": "v2", "may_be_controller": "9@PLAINTEXT://127.0.0.1:9099"})
