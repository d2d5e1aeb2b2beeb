"""Security settings for Kafka's Java client, from the brokers' properties. Spark reads the journal's topic with it."""

from collections.abc import Iterator

from controller_core.security.tls_files import TlsFiles
from controller_core.wire.connections.broker_properties import ListenerSecurity
from controller_core.wire.connections.security import Login, login_module


def java_properties(security: ListenerSecurity) -> dict[str, str]:
    """Return the settings by the names of Kafka's clients, which keep the secrets among them out of their logs."""
    properties = {"security.protocol": security.protocol}
    if security.login is not None:
        properties["sasl.mechanism"] = security.login.mechanism
        properties["sasl.jaas.config"] = _jaas(security.login)
    return properties if security.tls is None else {**properties, **dict(_tls_properties(security.tls))}


def _jaas(login: Login) -> str:
    username, password = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (login.username, login.password))
    return f'{login_module(login.mechanism)} required username="{username}" password="{password}";'


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
