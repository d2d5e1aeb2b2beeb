"""Logins with tokens, from properties: the origins of tokens, and the errors, which show no secret."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from controller_core.security.oauth.messages import (
    FirstMessage,
    read_first_message,
    write_first_message,
)
from controller_core.security.oauth.token_login import MODULE, Endpoint, RefreshTimes, TokenLogin
from controller_core.security.properties_file import InvalidProperties
from controller_core.security.tls_files import TlsFiles
from controller_core.wire.connections.broker_properties import BrokerProperties, ListenerSecurity
from controller_core.wire.connections.client_properties import ClientSecurity
from controller_core.wire.connections.java_clients import java_properties
from controller_core.wire.connections.librdkafka import librdkafka_settings

URL: Final = "sasl.oauthbearer.token.endpoint.url"
CREDENTIALS: Final = f'{MODULE} required clientId="kontroller" clientSecret="hidden" scope="kafka write";'
CLIENT: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": CREDENTIALS,
    URL: "https://identity.example/token",
}
BROKERS: Final = {
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "listener.name.internal.oauthbearer.sasl.jaas.config": CREDENTIALS,
    f"listener.name.internal.oauthbearer.{URL}": "https://identity.example/token",
}


def read_client(**changed: str) -> TokenLogin:
    given = CLIENT | {name.replace("_", "."): value for name, value in changed.items()}
    login = ClientSecurity.parse_properties(given).make_security(Path("/etc/kafka")).login
    assert isinstance(login, TokenLogin)
    return login


def test_a_client_has_the_properties_of_kafkas_login() -> None:
    login = read_client(
        sasl_login_connect_timeout_ms="1000",
        sasl_login_read_timeout_ms="2000",
        sasl_login_retry_backoff_ms="3",
        sasl_login_retry_backoff_max_ms="40",
        sasl_login_refresh_window_factor="0.6",
        sasl_login_refresh_window_jitter="0.1",
        sasl_login_refresh_min_period_seconds="5",
        sasl_login_refresh_buffer_seconds="6",
        sasl_oauthbearer_header_urlencode="true",
        sasl_login_callback_handler_class=(
            "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
        ),
    )
    assert login == TokenLogin(
        source=Endpoint(
            url="https://identity.example/token",
            connect_timeout_ms=1000,
            read_timeout_ms=2000,
            retry_backoff_ms=3,
            retry_backoff_max_ms=40,
        ),
        client_id="kontroller",
        client_secret="hidden",
        scope="kafka write",
        encodes_header=True,
        refresh=RefreshTimes(window_factor=0.6, window_jitter=0.1, min_period_s=5, buffer_s=6),
    )
    assert "hidden" not in repr(login)


def test_what_is_not_said_has_the_documented_defaults() -> None:
    login = read_client()
    assert login.source == Endpoint(
        url="https://identity.example/token",
        connect_timeout_ms=10_000,
        read_timeout_ms=10_000,
        retry_backoff_ms=100,
        retry_backoff_max_ms=10_000,
    )
    assert login.refresh == RefreshTimes(window_factor=0.8, window_jitter=0.05, min_period_s=60, buffer_s=300)
    assert not login.encodes_header


def test_brokers_have_them_by_listener_and_mechanism() -> None:
    found = BrokerProperties(BROKERS | {URL: "https://other.example"}, Path()).read_inter_broker_security().login
    assert isinstance(found, TokenLogin)
    assert found.source == Endpoint(url="https://identity.example/token")
    assert (found.client_id, found.mechanism) == ("kontroller", "OAUTHBEARER")


def test_a_jaas_line_may_have_extensions_and_certificates() -> None:
    more = ' extension_logicalCluster="lkc-1" ssl.truststore.type="PEM" ssl.truststore.location="ca.pem";'
    login = read_client(sasl_jaas_config=CREDENTIALS.removesuffix(";") + more)
    assert login.extensions == (("logicalCluster", "lkc-1"),)
    assert isinstance(login.source, Endpoint)
    assert login.source.tls is not None
    assert login.source.tls.truststore_location == Path("/etc/kafka/ca.pem")


def test_a_file_may_hold_the_token() -> None:
    login = read_client(**{URL: "file:///var/run/token"}, sasl_jaas_config=f"{MODULE} required;")
    assert login == TokenLogin(source=Path("/var/run/token"))


WRONG: Final = {
    "no URL": ({URL: ""}, f"{URL} is not set: write https://HOST/PATH or file:///PATH"),
    "another protocol": ({URL: "ftp://x/y"}, f"{URL} is not a usable URL"),
    "no host": ({URL: "https:///token"}, f"{URL} is not a usable URL"),
    "a wrong port": ({URL: "https://x:123456/token"}, f"{URL} is not a usable URL"),
    "a password in the URL": ({URL: "https://kontroller:hidden@x/token"}, f"{URL} holds a user or a password"),
    "no secret": ({"sasl.jaas.config": f'{MODULE} required clientId="c";'}, "has no 'clientSecret': write it as"),
    "no client": ({"sasl.jaas.config": f"{MODULE} required;"}, "sasl.jaas.config has no 'clientId'"),
    "a Java class": ({"sasl.login.callback.handler.class": "com.example.Own"}, "com.example.Own, a Java class that is"),
    "a factor that is none": ({"sasl.login.refresh.window.factor": "nan"}, "sasl.login.refresh.window.factor: "),
    "a timeout out of range": ({"sasl.login.read.timeout.ms": "0"}, "sasl.login.read.timeout.ms: "),
    "a wrong extension": (
        {"sasl.jaas.config": CREDENTIALS.removesuffix(";") + ' extension_auth="hidden";'},
        "has the option extension_auth: a name has letters only",
    ),
    "an extension that breaks out": (
        {"sasl.jaas.config": CREDENTIALS.removesuffix(";") + ' extension_a="b\x01auth=hidden";'},
        "extension_a: a value has printable ASCII",
    ),
}


@pytest.mark.parametrize(("changed", "said"), WRONG.values(), ids=WRONG)
def test_an_unusable_login_says_what_to_change(changed: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidProperties) as refused:
        read_client(**changed)
    assert said in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_other_clients_get_the_same_login() -> None:
    found = BrokerProperties(BROKERS, Path()).read_inter_broker_security()
    assert java_properties(found) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        ),
        URL: "https://identity.example/token",
        "sasl.login.connect.timeout.ms": "10000",
        "sasl.login.read.timeout.ms": "10000",
        "sasl.oauthbearer.header.urlencode": "false",
        "sasl.jaas.config": CREDENTIALS,
    }
    assert librdkafka_settings(found) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        URL: "https://identity.example/token",
        "sasl.oauthbearer.client.id": "kontroller",
        "sasl.oauthbearer.client.secret": "hidden",
        "sasl.oauthbearer.scope": "kafka write",
    }
    trusting = Endpoint(url="https://x/token", tls=TlsFiles(truststore_location=Path("/ca.pem")))
    settings = librdkafka_settings(ListenerSecurity(protocol="SASL_PLAINTEXT", login=TokenLogin(source=trusting)))
    assert settings["https.ca.location"] == "/ca.pem"
    of_file = ListenerSecurity(protocol="SASL_PLAINTEXT", login=TokenLogin(source=Path("/run/token")))
    assert java_properties(of_file)[URL] == "file:///run/token"
    with pytest.raises(InvalidProperties, match="set it to the URL of the token endpoint"):
        librdkafka_settings(of_file)


def test_a_token_is_replaced_within_kafkas_window() -> None:
    times = RefreshTimes()
    assert [times.find_age_s(3600, random) for random in (0.0, 1.0)] == pytest.approx([2880, 3060])
    assert times.find_age_s(1000, 0.0) == pytest.approx(700), "five minutes before the end"
    assert times.find_age_s(100, 0.0) == pytest.approx(80), "a short-lived token, to which the buffer does not apply"
    assert RefreshTimes(min_period_s=900, buffer_s=0).find_age_s(1000, 0.0) == 900


def test_messages_are_those_of_kafkas_clients() -> None:
    said = write_first_message("a.b.c", (("traceId", "x y"),))
    assert said == b"n,,\x01auth=Bearer a.b.c\x01traceId=x y\x01\x01"
    assert read_first_message(said) == FirstMessage(token="a.b.c")
    assert read_first_message(b"n,a=al=2Cice,\x01auth=bearer  a.b.c\x01\x01") == FirstMessage(
        token="a.b.c", authorized="al,ice"
    )


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic a.b.c\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01",
        b"n,,\x01auth=Bearer a.b.c\x01auth=Bearer d.e.f\x01\x01",
        b"n,,\x01auth=Bearer a,b\x01\x01",
        b"n,,\x01other=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Bearer \xc3\xa9\x01\x01",
        b"n,,\x01auth=Bearer " + b"a" * 40_000 + b"\x01\x01",
    ],
)
def test_other_messages_are_refused(message: bytes) -> None:
    assert read_first_message(message) is None


def test_the_libraries_for_tokens_are_imported_by_logins_with_tokens_alone() -> None:
    program = (
        "import sys, controller_core.wire.authentication.login, controller_core.client.admin_client;"
        "print(sorted({'aiohttp', 'cryptography', 'jwt'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
