"""Connections for commands that send single requests, or leave it to others, from the files that a user names."""

from pathlib import Path

from controller_core.client.properties import ClientProperties, convert_errors
from controller_core.client.transport.request_client import ClusterClient as ClusterClient
from controller_core.client.transport.request_client import RequestClient, parse_addresses
from controller_core.wire.connections.broker_properties import SecuredBrokers
from controller_core.wire.connections.java_clients import java_properties
from controller_core.wire.connections.security import SecuritySource


def open_client(
    bootstrap_server: str,
    *,
    command_config: Path | None = None,
    properties: Path | None = None,
    timeout_ms: int,
    connect_timeout_ms: int,
) -> ClusterClient:
    """Return a client that connects as a client's file of properties says, or a broker's, or else without security.

    Raises `ValueError` if the servers are malformed, and `InvalidArgument` if the file cannot be used."""
    addresses = parse_addresses(bootstrap_server)
    security: SecuritySource | None = None
    if properties is not None:
        with convert_errors():
            brokers = SecuredBrokers.open(properties)
            security = brokers.source_of(brokers.read().between_brokers)
    elif command_config is not None:
        security = ClientProperties.read(command_config, {"bootstrap.servers": bootstrap_server}).security_source()
    return RequestClient(addresses, timeout_ms=timeout_ms, connect_timeout_ms=connect_timeout_ms, security=security)


def read_java_properties(properties: Path | None) -> dict[str, str]:
    """Return the settings of a Java client that connects as a broker's properties say. Raises `InvalidArgument`."""
    with convert_errors():
        return java_properties(SecuredBrokers.open(properties).read().read_inter_broker_security())
