"""The options that several commands have."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from controller_admin.commands.endings import usage_error

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


def bootstrap_addresses(text: str) -> "tuple[Address, ...]":
    """The servers of `--bootstrap`; ends the command where it is not a list of them."""
    from controller_core.wire.client.request_client import parse_addresses

    try:
        return parse_addresses(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap") from error


def security_of(config: Path | None, bootstrap: str) -> "SecuritySource | None":
    """How servers are spoken to by a file of properties; ends the command where that cannot be used."""
    if config is None:
        return None

    from controller_admin.client.errors import InvalidArgument
    from controller_admin.client.properties import ClientProperties

    try:
        return ClientProperties.read(config, {"bootstrap.servers": bootstrap}).security_source()
    except InvalidArgument as error:
        raise usage_error(error) from error
