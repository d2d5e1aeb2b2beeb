"""Security settings for Kafka's Java client, from the brokers' properties. Spark reads the journal's topic with it."""

from collections.abc import Iterator
from pathlib import Path

from controller_core.security.jaas import write_jaas
from controller_core.security.oauth import token_login
from controller_core.security.oauth.token_login import TokenLogin
from controller_core.security.tls_files import TlsFiles
from controller_core.wire.connections.broker_properties import ListenerSecurity
from controller_core.wire.connections.security import TOKENAUTH, Login, login_module


def java_properties(security: ListenerSecurity) -> dict[str, str]:
    """Return the settings by the names of Kafka's clients, which keep the secrets among them out of their logs."""
    properties = {"security.protocol": security.protocol}
    if security.login is not None:
        properties["sasl.mechanism"] = security.login.mechanism
        properties |= dict(_login_properties(security.login))
    return properties if security.tls is None else {**properties, **dict(_tls_properties(security.tls))}


def _login_properties(login: Login | TokenLogin) -> Iterator[tuple[str, str]]:
    if isinstance(login, Login):
        options = {"username": login.username, "password": login.password}
        options |= {TOKENAUTH: "true"} if login.is_token else {}
        yield "sasl.jaas.config", write_jaas(login_module(login.mechanism), options)
        return
    yield "sasl.login.callback.handler.class", token_login.LOGIN_HANDLER
    source = login.source
    if isinstance(source, Path):
        yield token_login.ENDPOINT_URL, source.absolute().as_uri()
        options = {}
    else:
        yield token_login.ENDPOINT_URL, source.url
        yield "sasl.login.connect.timeout.ms", str(source.connect_timeout_ms)
        yield "sasl.login.read.timeout.ms", str(source.read_timeout_ms)
        yield "sasl.oauthbearer.header.urlencode", str(login.encodes_header).lower()
        given = {"clientId": login.client_id, "clientSecret": login.client_secret, "scope": login.scope}
        options = {name: value for name, value in given.items() if value}
        options |= {} if source.tls is None else dict(_tls_properties(source.tls))
    options |= {f"extension_{name}": value for name, value in login.extensions}
    yield "sasl.jaas.config", write_jaas(token_login.MODULE, options)


def _tls_properties(files: TlsFiles) -> Iterator[tuple[str, str]]:
    given = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files.truststore_location,
        "ssl.truststore.certificates": files.truststore_certificates,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files.keystore_location,
        "ssl.keystore.certificate.chain": files.keystore_certificate_chain,
        "ssl.keystore.key": files.keystore_key,
        "ssl.key.password": files.key_password,
        "ssl.endpoint.identification.algorithm": "https" if files.verifies_host_name else "",
    }
    return ((name, str(value)) for name, value in given.items() if value is not None)
