"""Security settings for librdkafka, from the brokers' properties. It writes and reads the journal's topic."""

from collections.abc import Callable, Iterator

from controller_core.security.tls_files import TlsFiles
from controller_core.wire.connections.broker_properties import ListenerSecurity, SecuredBrokers


def librdkafka_source(brokers: SecuredBrokers) -> Callable[[], dict[str, str]]:
    """Return a source of the settings for the inter-broker listener. It raises `InvalidProperties` when it is
    called."""
    return lambda: librdkafka_settings(brokers.read().read_inter_broker_security())


def librdkafka_settings(security: ListenerSecurity) -> dict[str, str]:
    """Return the settings by librdkafka's names. They contain secrets."""
    settings = {"security.protocol": security.protocol}
    if security.login is not None:
        settings["sasl.mechanisms"] = security.login.mechanism
        settings["sasl.username"] = security.login.username
        settings["sasl.password"] = security.login.password
    return settings if security.tls is None else {**settings, **dict(_tls_settings(security.tls))}


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
