"""The listeners in a broker's properties, for clients that connect to them: as brokers read them, without a secret."""

from pathlib import Path
from typing import Final

import pytest

from controller_core.process.connections import open_secured_brokers
from controller_core.process.settings import InvalidSettings
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.connections.broker_properties import (
    NO_FILE,
    BrokerProperties,
    ListenerSecurity,
    SecuredBrokers,
)
from controller_core.wire.connections.java_clients import java_properties
from controller_core.wire.connections.librdkafka import librdkafka_settings
from controller_core.wire.connections.security import Login
from devcluster.clusters.certificates import make_certificate

SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
INTERNAL: Final = {
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT, INTERNAL:SASL_SSL,EDGE:ssl",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "listener.name.internal.scram-sha-512.sasl.jaas.config": f'{SCRAM} required username="broker" password="hidden";',
}


def read(properties: dict[str, str]) -> BrokerProperties:
    return BrokerProperties(properties, Path("/etc/kafka"))


@pytest.mark.parametrize(
    ("properties", "listener", "protocol"),
    [
        ({}, "PLAINTEXT", "PLAINTEXT"),
        ({}, "SASL_SSL", "SASL_SSL"),
        ({}, "INTERNAL", None),
        (INTERNAL, "internal", "SASL_SSL"),
        (INTERNAL, "EDGE", "SSL"),
        (INTERNAL, "CONTROLLER", None),
    ],
)
def test_a_listener_speaks_what_the_map_or_its_name_says(
    properties: dict[str, str], listener: str, protocol: str | None
) -> None:
    assert read(properties).protocol_of(listener) == protocol


@pytest.mark.parametrize(
    ("properties", "listener", "protocol"),
    [
        ({}, "PLAINTEXT", "PLAINTEXT"),
        ({"security.inter.broker.protocol": "SSL"}, "SSL", "SSL"),
        (INTERNAL, "INTERNAL", "SASL_SSL"),
    ],
)
def test_brokers_reach_each_other_by_a_listener_or_a_protocol(
    properties: dict[str, str], listener: str, protocol: str
) -> None:
    found = read(properties)
    assert (found.between_brokers, found.read_inter_broker_security().protocol) == (listener, protocol)


def test_a_login_is_that_of_the_listener_and_the_mechanism() -> None:
    other = {"listener.name.internal.plain.sasl.jaas.config": 'x required username="other" password="p";'}
    found = read({**INTERNAL, **other, "sasl.jaas.config": "of nobody"}).read_inter_broker_security()
    assert found.login == Login(mechanism="SCRAM-SHA-512", username="broker", password="hidden")


def test_at_controllers_a_login_may_be_by_another_mechanism_than_between_brokers() -> None:
    of_controllers = {
        "controller.listener.names": "QUORUM, CONTROLLER",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": 'x required username="node" password="p";',
    }
    found = read({**INTERNAL, **of_controllers})
    assert found.read_listener_security("Controller", "SASL_PLAINTEXT").login == Login(
        mechanism="PLAIN", username="node", password="p"
    )
    assert found.read_inter_broker_security().login == Login(
        mechanism="SCRAM-SHA-512", username="broker", password="hidden"
    )
    with pytest.raises(InvalidProperties, match=r"^sasl\.mechanism\.controller\.protocol is GSSAPI"):
        read({"controller.listener.names": "CONTROLLER"}).read_listener_security("CONTROLLER", "SASL_SSL")


def test_what_java_reads_from_a_file_of_logins_is_said_of_all() -> None:
    line = 'x required\n username="broker" password="hidden" user_alice="a";'
    found = read({"sasl.mechanism.inter.broker.protocol": "PLAIN", "sasl.jaas.config": line})
    assert found.read_listener_security("SASL_PLAINTEXT", "SASL_PLAINTEXT").login == Login(
        mechanism="PLAIN",
        username="broker",
        password="hidden",
    )


def test_certificates_are_those_of_all_but_for_what_is_said_of_the_listener() -> None:
    properties = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/other/broker.pem",
        "listener.name.internal.ssl.keystore.location": "internal.pem",
        "listener.name.internal.ssl.endpoint.identification.algorithm": "",
        "listener.name.client.ssl.keystore.location": "client.pem",
    }
    internal, edge = (read(properties).read_listener_security(name, "SSL").tls for name in ("INTERNAL", "EDGE"))
    assert internal is not None
    assert edge is not None
    assert (internal.truststore_location, internal.keystore_location) == (
        Path("/etc/kafka/ca.pem"),
        Path("/etc/kafka/internal.pem"),
    )
    assert edge.keystore_location == Path("/other/broker.pem")
    assert (internal.verifies_host_name, edge.verifies_host_name) == (False, True)


WRONG: Final = {
    "Kerberos": ({}, "SASL_SSL", "sasl.mechanism.inter.broker.protocol is GSSAPI, which is not supported"),
    "tokens": (
        {"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"},
        "SASL_SSL",
        "set listener.name.internal.oauthbearer.sasl.jaas.config",
    ),
    "no login": (
        {"sasl.mechanism.inter.broker.protocol": "PLAIN"},
        "SASL_SSL",
        "set listener.name.internal.plain.sasl.jaas.config",
    ),
    "a login without a user": (
        {**INTERNAL, "listener.name.internal.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;"},
        "SASL_PLAINTEXT",
        "listener.name.internal.scram-sha-512.sasl.jaas.config has no 'username'",
    ),
    "a Java key store": (
        {"listener.name.internal.ssl.keystore.location": "broker.jks"},
        "SSL",
        "listener.name.internal.ssl.keystore.type is JKS: convert the keystore to PEM",
    ),
    "a file that is not there": (
        {"ssl.truststore.type": "PEM", "ssl.truststore.location": "absent"},
        "SSL",
        r"the certificates of ssl\.\* cannot be used: there is no file \S+/absent",
    ),
    "a protocol that is none": ({}, "QUIC", "has the protocol QUIC: use one of"),
}


@pytest.mark.parametrize(("properties", "protocol", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_used_says_what_to_change(properties: dict[str, str], protocol: str, said: str) -> None:
    with pytest.raises(InvalidProperties, match=said):
        read(properties).read_listener_security("INTERNAL", protocol).security()


@pytest.mark.parametrize("text", ["INTERNAL", "INTERNAL:TLS", "A:SSL,:"])
def test_a_map_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidProperties, match="write LISTENER:PROTOCOL"):
        read({"listener.security.protocol.map": text}).protocol_of("INTERNAL")


def test_a_listener_between_brokers_that_is_in_no_map_is_refused() -> None:
    with pytest.raises(InvalidProperties, match=r"add INTERNAL:PROTOCOL"):
        read({"inter.broker.listener.name": "INTERNAL"}).read_inter_broker_security()


def test_a_process_does_not_begin_with_properties_that_its_listener_cannot_use(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("security.inter.broker.protocol=SASL_SSL\n")
    for listener in (None, "SASL_SSL"):
        with pytest.raises(InvalidSettings, match=r"--properties: .*GSSAPI"):
            open_secured_brokers(file, listener)
    open_secured_brokers(file, "PLAINTEXT")
    with pytest.raises(InvalidSettings, match=r"--properties: .*absent"):
        open_secured_brokers(tmp_path / "absent")


def test_without_a_file_nothing_but_plaintext_is_spoken() -> None:
    assert NO_FILE.source("ANY", "PLAINTEXT") is None
    source = NO_FILE.source("ANY", "SSL")
    assert source is not None
    with pytest.raises(InvalidProperties, match="the listener ANY uses SSL: give its settings by --properties"):
        source()


def test_the_protocol_of_a_listener_may_go_by_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listener.security.protocol.map=INTERNAL:SSL\n")
    brokers = SecuredBrokers(file)
    assert brokers.source_of("ELSEWHERE") is None
    source = brokers.source_of("INTERNAL")
    assert source is not None
    assert source().tls is not None


def test_no_secret_is_in_what_is_shown() -> None:
    found = read(
        {**INTERNAL, "ssl.keystore.key": "hidden key", "ssl.key.password": "hidden too"}
    ).read_inter_broker_security()
    assert "hidden" not in repr(found) + repr(SecuredBrokers(Path("file")))
    with pytest.raises(InvalidProperties) as refused:
        found.security()
    assert "hidden" not in str(refused.value)


def test_a_password_is_read_by_java_as_it_is_written_for_it() -> None:
    login = Login(mechanism="PLAIN", username="a", password='p"\\w')
    told = java_properties(ListenerSecurity(protocol="SASL_PLAINTEXT", login=login))["sasl.jaas.config"]
    assert Login.parse_jaas(told, mechanism="PLAIN", name="sasl.jaas.config") == login


@pytest.mark.parametrize(
    ("mechanism", "said", "is_token"),
    [
        ("SCRAM-SHA-256", ' tokenauth="True"', True),
        ("SCRAM-SHA-512", ' tokenauth="false"', False),
        ("SCRAM-SHA-512", "", False),
        ("PLAIN", ' tokenauth="true"', False),
    ],
)
def test_a_login_with_a_delegation_token_is_one_by_scram(mechanism: str, said: str, is_token: bool) -> None:
    text = f'{SCRAM} required username="id" password="hmac=="{said};'
    login = Login.parse_jaas(text, mechanism=mechanism, name="sasl.jaas.config")
    assert login == Login(mechanism=mechanism, username="id", password="hmac==", is_token=is_token)
    assert next(login.messages()).endswith(b",tokenauth=true") is is_token


def test_other_libraries_are_told_of_a_delegation_token_or_it_is_refused() -> None:
    login = Login(mechanism="SCRAM-SHA-256", username="id", password="hidden", is_token=True)
    security = ListenerSecurity(protocol="SASL_PLAINTEXT", login=login)
    told = java_properties(security)["sasl.jaas.config"]
    assert Login.parse_jaas(told, mechanism="SCRAM-SHA-256", name="sasl.jaas.config") == login
    with pytest.raises(InvalidProperties, match="does not support delegation tokens") as refused:
        librdkafka_settings(security)
    assert "hidden" not in str(refused.value)


def test_other_libraries_are_told_the_same(tmp_path: Path) -> None:
    files = make_certificate(tmp_path, "localhost")
    given = {
        **INTERNAL,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files.certificate.name,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files.store().name,
        "ssl.endpoint.identification.algorithm": "",
    }
    security = BrokerProperties(given, tmp_path).read_inter_broker_security()
    assert java_properties(security) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM} required username="broker" password="hidden";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.certificate),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.store()),
        "ssl.endpoint.identification.algorithm": "",
    }
    assert librdkafka_settings(security) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "broker",
        "sasl.password": "hidden",
        "ssl.ca.location": str(files.certificate),
        "ssl.certificate.location": str(files.store()),
        "ssl.key.location": str(files.store()),
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert librdkafka_settings(read({}).read_inter_broker_security()) == {"security.protocol": "PLAINTEXT"}
