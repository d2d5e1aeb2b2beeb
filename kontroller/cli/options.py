"""Options that several commands share. Each has one text, whichever command has the option."""

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
ZooKeeperServers = Annotated[
    str | None, typer.Option(help="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot].")
]
ZooKeeperSessionTimeoutMs = Annotated[int | None, typer.Option(help="ZooKeeper session timeout, in milliseconds.")]
ZooKeeperJuteMaxbufferBytes = Annotated[
    int | None, typer.Option(help="jute.maxbuffer of the ZooKeeper servers, in bytes.")
]
ZooKeeperTimeoutMs = Annotated[
    int | None,
    typer.Option(help="Milliseconds without a connection to ZooKeeper after which the process exits. Default: 60000."),
]
ClusterProperties = Annotated[
    Path | None,
    typer.Option(help="File with the cluster's security settings: a broker's server.properties, or a part of it."),
]
MetricsHost = Annotated[
    str | None, typer.Option(help="Address of the HTTP server (/metrics, /healthz, ...). Default: 127.0.0.1.")
]
MetricsPort = Annotated[
    int | None, typer.Option(help="Port of the HTTP server (/metrics, /healthz, ...). Default: no HTTP server.")
]
LogFormat = Annotated[str | None, typer.Option(help="Format of log lines: json or console. Default: json.")]
LogLevel = Annotated[
    str | None, typer.Option(help="Lowest level to log: debug, info, warning or error. Default: info.")
]
SettingsFile = Annotated[Path | None, typer.Option(help="YAML file with these settings.")]

# The options of a journal's writer.
JournalDirectory = Annotated[Path | None, typer.Option(help="Folder to write the journal of the cluster's state to.")]
JournalSegmentBytes = Annotated[
    int | None, typer.Option(help="Bytes after which a new journal file begins. Default: 64 MiB.")
]
JournalRetentionBytes = Annotated[
    int | None, typer.Option(help="Bytes of finished journal files to keep. Default: 4 GiB.")
]
JournalRetentionHours = Annotated[
    int | None, typer.Option(help="Hours for which finished journal files are kept. Default: 168.")
]
JournalTokenFile = Annotated[
    Path | None, typer.Option(help="File with the token that readers of /journal must present. Default: no token.")
]
JournalSnapshotIntervalSeconds = Annotated[
    int | None, typer.Option(help="Seconds between snapshots of the whole state in the journal. Default: 3600.")
]
JournalAliveIntervalSeconds = Annotated[
    int | None, typer.Option(help="Seconds without a record after which the journal gets a heartbeat. Default: 10.")
]

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
        "be "
        "repeated.",
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

# The limits of a listener, for both processes that have one.
SocketRequestMaxBytes = Annotated[
    int | None,
    typer.Option(help="Bytes of the largest request. Default: socket.request.max.bytes of --properties, or 100 MiB."),
]
MaxConnections = Annotated[
    int | None, typer.Option(help="Open connections. Default: max.connections of --properties, or 5,000.")
]
MaxConnectionsPerAddress = Annotated[
    int | None,
    typer.Option(help="Open connections of one address. Default: max.connections.per.ip of --properties, or 1,000."),
]
ConnectionsMaxIdleMs = Annotated[
    int | None,
    typer.Option(
        help="Milliseconds after which an idle connection is closed. Default: connections.max.idle.ms of --properties, "
        "or "
        "10 minutes."
    ),
]
MaxRequestsInFlight = Annotated[
    int | None, typer.Option(help="Requests of one kind that are read and not yet answered. Default: 5,000.")
]
QueuedMaxRequestBytes = Annotated[
    int | None,
    typer.Option(help="Bytes of requests in memory. Default: queued.max.request.bytes of --properties, or 192 MiB."),
]


def parse_bootstrap(text: str) -> "tuple[Address, ...]":
    """Return the servers of `--bootstrap-server`. Ends the command if it is not a list of servers."""
    from controller_core.wire.client.request_client import parse_addresses

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
