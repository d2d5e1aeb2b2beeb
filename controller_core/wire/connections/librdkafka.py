"""How librdkafka is told what a file of brokers' properties says: for the journal's topic, which it writes and reads."""

from collections.abc import Callable, Iterator

from controller_core.security.tls_files import TlsFiles
from controller_core.wire.connections.broker_properties import ListenerSecurity, SecuredBrokers


def librdkafka_source(brokers: SecuredBrokers) -> Callable[[], dict[str, str]]:
    """What a client is told of the listener between brokers when it is made. Raises `InvalidProperties` when called."""
    return lambda: librdkafka_settings(brokers.read().of_brokers())


def librdkafka_settings(security: ListenerSecurity) -> dict[str, str]:
    """By librdkafka's names. Among them are secrets."""
    settings = {"security.protocol": security.protocol}
    if security.login is not None:
        settings["sasl.mechanisms"] = security.login.mechanism
        settings["sasl.username"] = security.login.username
        settings["sasl.password"] = security.login.password
    return settings if security.tls is None else {**settings, **dict(_tls_settings(security.tls))}


def _tls_settings(files: TlsFiles) -> Iterator[tuple[str, str]]:
    """A key and its certificate are in one file for Kafka; librdkafka takes from it what it looks for."""
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
