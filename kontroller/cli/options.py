"""Options that several commands share. Each has one text, whichever command has the option."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kontroller.cli.endings import usage_error

if TYPE_CHECKING:
    from kontroller.servers import ClusterClient

LARGEST_ID = 2**31 - 1
LONGEST_MS = 24 * 3600 * 1000

BrokerIdOption = Annotated[
    int, typer.Option(help="Id of the broker.", envvar="KONTROLLER_BROKER_ID", min=0, max=LARGEST_ID)
]
TimeoutMs = Annotated[int, typer.Option(help="Milliseconds after which the command gives up.", min=1, max=LONGEST_MS)]
"""Without an environment variable, because `drain` and `ready` share the environment of a pod and not their times."""
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        help="File of client properties, as for Kafka's tools: security.protocol, ssl.*, sasl.*, ...",
        envvar="KONTROLLER_COMMAND_CONFIG",
        show_default=False,
    ),
]
ClusterProperties = Annotated[
    Path | None,
    typer.Option(
        help="File with the cluster's security settings: a broker's server.properties, or a part of it.",
        envvar="KONTROLLER_PROPERTIES",
        show_default=False,
    ),
]
SettingsFile = Annotated[Path | None, typer.Option(help="YAML file with these settings.")]

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


def divide_time(timeout_ms: int, most_ms: int) -> int:
    """Return the time for one request: a third at most, so that one without an answer leaves time for other servers."""
    return max(1, min(most_ms, timeout_ms // 3))


@dataclass(frozen=True, kw_only=True)
class Servers:
    """The servers of a cluster, and the file with the security settings of the connections to them."""

    bootstrap_server: Annotated[
        str,
        typer.Option(
            help="Kafka servers: HOST:PORT[,HOST:PORT...].", envvar="KONTROLLER_BOOTSTRAP_SERVER", show_default=False
        ),
    ]
    command_config: CommandConfig = None
    properties: Annotated[
        Path | None,
        typer.Option(
            help="Instead of --command-config: a broker's server.properties, or a part of it, to connect as a broker "
            "does.",
            envvar="KONTROLLER_PROPERTIES",
            show_default=False,
        ),
    ] = None

    def make_client(self, timeout_ms: int, connect_timeout_ms: int | None = None) -> "ClusterClient":
        """Return a client of these servers. Ends the command if the servers or the file cannot be used."""
        from kontroller import InvalidArgument
        from kontroller.servers import open_client

        if self.command_config is not None and self.properties is not None:
            raise usage_error(
                ValueError("--command-config and --properties both set the security of connections: give one")
            )
        try:
            return open_client(
                self.bootstrap_server,
                command_config=self.command_config,
                properties=self.properties,
                timeout_ms=timeout_ms,
                connect_timeout_ms=connect_timeout_ms or timeout_ms,
            )
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--bootstrap-server") from error
        except InvalidArgument as error:
            raise usage_error(error) from error
