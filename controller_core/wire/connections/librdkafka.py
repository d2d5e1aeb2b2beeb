"""Security settings for librdkafka, from the brokers' properties. It writes and reads the journal's topic."""

from collections.abc import Callable, Iterator
from pathlib import Path

from controller_core.security.oauth.token_login import ENDPOINT_URL, TokenLogin
from controller_core.security.properties_file import InvalidProperties
from controller_core.security.tls_files import TlsFiles
from controller_core.wire.connections.broker_properties import ListenerSecurity, SecuredBrokers
from controller_core.wire.connections.security import TOKENAUTH, Login


def librdkafka_source(brokers: SecuredBrokers) -> Callable[[], dict[str, str]]:
    """Return a source of the settings for the inter-broker listener. It raises `InvalidProperties` when it is
    called."""
    return lambda: librdkafka_settings(brokers.read().read_inter_broker_security())


def librdkafka_settings(security: ListenerSecurity) -> dict[str, str]:
    """Return the settings by librdkafka's names. They contain secrets. Raises `InvalidProperties`."""
    settings = {"security.protocol": security.protocol}
    if security.login is not None:
        settings["sasl.mechanisms"] = security.login.mechanism
        settings |= dict(_login_settings(security.login))
    return settings if security.tls is None else {**settings, **dict(_tls_settings(security.tls))}


def _login_settings(login: Login | TokenLogin) -> Iterator[tuple[str, str]]:
    if isinstance(login, Login):
        if login.is_token:
            raise InvalidProperties(
                f"the client of the journal's topic does not support delegation tokens: remove {TOKENAUTH} from the "
                "JAAS line, and set a user and a password"
            )
        yield "sasl.username", login.username
        yield "sasl.password", login.password
        return
    if isinstance(login.source, Path):
        raise InvalidProperties(
            f"{ENDPOINT_URL} is a file, which the client of the journal's topic does not read: set it to the URL of the "
            "token endpoint"
        )
    yield "sasl.oauthbearer.method", "oidc"
    yield "sasl.oauthbearer.token.endpoint.url", login.source.url
    yield "sasl.oauthbearer.client.id", login.client_id
    yield "sasl.oauthbearer.client.secret", login.client_secret
    if login.scope:
        yield "sasl.oauthbearer.scope", login.scope
    if login.extensions:
        yield "sasl.oauthbearer.extensions", ",".join(f"{name}={value}" for name, value in login.extensions)
    if login.source.tls is not None and login.source.tls.truststore_location is not None:
        yield "https.ca.location", str(login.source.tls.truststore_location)


def _tls_settings(files: TlsFiles) -> Iterator[tuple[str, str]]:
    """Return the TLS settings. Kafka has a key and its certificate in one file, and librdkafka finds each of them
    there."""
    given = {
        "ssl.ca.location": files.truststore_location,
        "ssl.ca.pem": files.truststore_certificates,
        "ssl.certificate.location": files.keystore_location,
        "ssl.key.location": files.keystore_location,
        "ssl.certificate.pem": files.keystore_certificate_chain,
        "ssl.key.pem": files.keystore_key,
        "ssl.key.password": files.key_password,
        "ssl.endpoint.identification.algorithm": "https" if files.verifies_host_name else "none",
    }
    return ((name, str(value)) for name, value in given.items() if value is not None)
