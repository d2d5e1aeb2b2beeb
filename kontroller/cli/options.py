"""Options that several commands share. Each has one text, whichever command has the option."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli.endings import usage_error

if TYPE_CHECKING:
    from controller_core.client.transport.request_client import Address
    from controller_core.wire.connections.security import SecuritySource

_LARGEST_ID = 2**31 - 1
_LONGEST_S = 24 * 3600

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        help="Kafka servers: HOST:PORT[,HOST:PORT...].",
        envvar="KONTROLLER_BOOTSTRAP_SERVER",
        show_default=False,
    ),
]
BrokerIdOption = Annotated[
    int, typer.Option(help="Id of the broker.", envvar="KONTROLLER_BROKER_ID", min=0, max=_LARGEST_ID)
]
DeadlineSeconds = Annotated[
    int,
    typer.Option(
        help="Seconds after which the command gives up.", envvar="KONTROLLER_DEADLINE_SECONDS", min=1, max=_LONGEST_S
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        help="File of client properties, as for Kafka's tools: security.protocol, ssl.*, sasl.*, ...",
        envvar="KONTROLLER_COMMAND_CONFIG",
        show_default=False,
    ),
]
PropertiesOfBrokers = Annotated[
    Path | None,
    typer.Option(
        "--properties",
        help="Instead of --command-config: a broker's server.properties, or a part of it, to connect as a broker does.",
        envvar="KONTROLLER_PROPERTIES",
        show_default=False,
    ),
]
ClusterProperties = Annotated[
    Path | None,
    typer.Option(help="File with the cluster's security settings: a broker's server.properties, or a part of it."),
]
SettingsFile = Annotated[Path | None, typer.Option(help="YAML file with these settings.")]

# The options of a journal's reader.
JournalsOption = Annotated[
    list[str] | None,
    typer.Option(help="Folder of journal files, or a controller's http://HOST:9404/journal. May be repeated."),
]
JournalTokenFilesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[URL=]FILE",
        help="File with the token for the journal at URL; without URL, for all journals that have no other token. May "
        "be repeated.",
    ),
]
JournalTopicOption = Annotated[
    str | None, typer.Option(help="Kafka topic that controllers write their journals to. Needs --bootstrap-server.")
]
TopicBootstrapOption = Annotated[
    str | None, typer.Option("--bootstrap-server", help="Brokers of the journal's topic: HOST:PORT[,HOST:PORT...].")
]
TopicPropertiesOption = Annotated[
    Path | None,
    typer.Option(help="File with the security settings of the topic's brokers: a server.properties, or a part of it."),
]


def parse_bootstrap(text: str) -> "tuple[Address, ...]":
    """Return the servers of `--bootstrap-server`. Ends the command if it is not a list of servers."""
    from controller_core.client.transport.request_client import parse_addresses

    try:
        return parse_addresses(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap-server") from error


class TwoFiles(Exception):
    """Both --command-config and --properties were given."""


def read_security(config: Path | None, bootstrap: str, properties: Path | None = None) -> "SecuritySource | None":
    """Return the security settings of connections: those of a client's file, or of a broker's.

    Ends the command if the file cannot be used."""
    if config is not None and properties is not None:
        raise usage_error(TwoFiles("--command-config and --properties both set the security of connections: give one"))
    if properties is not None:
        return _read_broker_security(properties)
    return None if config is None else _read_client_security(config, bootstrap)


def _read_client_security(config: Path, bootstrap: str) -> "SecuritySource | None":
    from kontroller import ClientProperties, InvalidArgument

    try:
        return ClientProperties.read(config, {"bootstrap.servers": bootstrap}).security_source()
    except InvalidArgument as error:
        raise usage_error(error) from error


def _read_broker_security(file: Path) -> "SecuritySource | None":
    from controller_core.security.properties_file import InvalidProperties
    from controller_core.wire.connections.broker_properties import SecuredBrokers

    brokers = SecuredBrokers(file)
    try:
        brokers.check()
        return brokers.source_of(brokers.read().between_brokers)
    except InvalidProperties as error:
        raise usage_error(error) from error
