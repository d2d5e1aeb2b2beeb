"""The options that several commands have."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli.endings import usage_error

if TYPE_CHECKING:
    from controller_core.wire.client.request_client import Address
    from controller_core.wire.connections.security import SecuritySource

_LARGEST_ID = 2**31 - 1
_LONGEST_S = 24 * 3600

Bootstrap = Annotated[
    str,
    typer.Option(help="Kafka servers: HOST:PORT[,HOST:PORT...].", envvar="KONTROLLER_BOOTSTRAP", show_default=False),
]
BrokerIdOption = Annotated[
    int, typer.Option(help="The broker's id.", envvar="KONTROLLER_BROKER_ID", min=0, max=_LARGEST_ID)
]
DeadlineSeconds = Annotated[
    int,
    typer.Option(help="Give up after so long.", envvar="KONTROLLER_DEADLINE_SECONDS", min=1, max=_LONGEST_S),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        help="A file of properties, as Kafka's tools take it: security.protocol, ssl.*, sasl.*, ...",
        envvar="KONTROLLER_COMMAND_CONFIG",
        show_default=False,
    ),
]
PropertiesOfBrokers = Annotated[
    Path | None,
    typer.Option(
        "--properties",
        help="In its place a broker's server.properties, or a part of it: as brokers speak to each other.",
        envvar="KONTROLLER_PROPERTIES",
        show_default=False,
    ),
]
LogLevel = Annotated[
    str | None, typer.Option(help="The least severe lines to log: debug, info, warning or error (info).")
]
JournalsOption = Annotated[
    list[str] | None,
    typer.Option(help="A folder of segments, or a controller's http://HOST:9404/journal. Several times for several."),
]
JournalTokenFilesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[URL=]FILE",
        help="A file with the token that a journal at http://... is served for: of that one, or of all that have no "
        "other. Several times for several.",
    ),
]
JournalTopicOption = Annotated[
    str | None, typer.Option(help="The Kafka topic that controllers write their journals to; with --bootstrap.")
]
TopicBootstrapOption = Annotated[str | None, typer.Option(help="HOST:PORT[,HOST:PORT...] of the topic's brokers.")]
TopicPropertiesOption = Annotated[
    Path | None, typer.Option(help="How they are secured: a broker's server.properties, or a part of it.")
]

# What others may take of a listener, for both processes that have one.
SocketRequestMaxBytes = Annotated[
    int | None, typer.Option(help="How large a request may be; else as --properties says, or 100 MiB.")
]
MaxConnections = Annotated[
    int | None, typer.Option(help="How many connections are served; else as --properties says, or 5,000.")
]
MaxConnectionsPerAddress = Annotated[
    int | None,
    typer.Option(help="How many of one address; else as max.connections.per.ip in --properties says, or 1,000."),
]
ConnectionsMaxIdleMs = Annotated[
    int | None, typer.Option(help="When an idle connection is closed; else as --properties says, or 10 minutes.")
]
MaxRequestsInFlight = Annotated[
    int | None, typer.Option(help="How many requests of one kind are read and not yet answered; by default 5,000.")
]
QueuedMaxRequestBytes = Annotated[
    int | None,
    typer.Option(help="How many bytes of requests are in memory; else as --properties says, or 192 MiB."),
]


def bootstrap_addresses(text: str) -> "tuple[Address, ...]":
    """The servers of `--bootstrap`; ends the command where it is not a list of them."""
    from controller_core.wire.client.request_client import parse_addresses

    try:
        return parse_addresses(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap") from error


class TwoFiles(Exception):
    """Servers are spoken to in one way."""


def security_of(config: Path | None, bootstrap: str, properties: Path | None = None) -> "SecuritySource | None":
    """How servers are spoken to: by a client's file, or by a broker's; ends the command where that cannot be used."""
    if config is not None and properties is not None:
        raise usage_error(TwoFiles("--command-config and --properties both say how brokers are spoken to: give one"))
    if properties is not None:
        return _between_brokers(properties)
    return None if config is None else _of_client(config, bootstrap)


def _of_client(config: Path, bootstrap: str) -> "SecuritySource | None":
    from kontroller.client.errors import InvalidArgument
    from kontroller.client.properties import ClientProperties

    try:
        return ClientProperties.read(config, {"bootstrap.servers": bootstrap}).security_source()
    except InvalidArgument as error:
        raise usage_error(error) from error


def _between_brokers(file: Path) -> "SecuritySource | None":
    from controller_core.security.properties_file import InvalidProperties
    from controller_core.wire.connections.broker_properties import SecuredBrokers

    brokers = SecuredBrokers(file)
    try:
        brokers.check()
        return brokers.source_of(brokers.read().between_brokers)
    except InvalidProperties as error:
        raise usage_error(error) from error
