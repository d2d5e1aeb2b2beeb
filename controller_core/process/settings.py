"""Settings of a process. The command line wins over the environment (`KONTROLLER_*`), and that over a YAML file."""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import yaml
from pydantic import (
    BeforeValidator,
    Field,
    IPvAnyAddress,
    IPvAnyNetwork,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode

from controller_core.admin.authorizing.authorizer_properties import read_authorizer_class
from controller_core.audit.settings import AuditSettings
from controller_core.model.access import AccessRules
from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import Endpoint
from controller_core.model.settings.shared import AUTHORIZER, QUOTA_WINDOW_SIZE, QUOTA_WINDOWS, collect_given
from controller_core.process.http_access.settings import HttpSettings
from controller_core.process.listener_addresses import (
    LISTENER_NAME,
    find_unreachable,
    list_advertised_endpoints,
    make_protocol_lookup,
    parse_listener,
    require_apart,
    require_readable,
)
from controller_core.security.delegation_tokens import read_token_check_interval_ms
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.limits.limit_settings import ControllerLimitSettings
from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES


class InvalidSettings(Exception):
    """Settings that cannot be used. Each problem says what to change."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def _parse_list(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


S = TypeVar("S", bound=BaseSettings)
T = TypeVar("T")
Several = Annotated[tuple[T, ...], NoDecode, BeforeValidator(_parse_list)]
"""Several values: a repeated option, or a text with commas in the environment or the settings file."""


TOPIC_RULES_DESCRIPTION: Final = (
    "File with rules for topics in CEL. Changes that break one are refused. It is read at the start. Default: no rules."
)


class CommonSettings(HttpSettings):
    """The settings that all processes have: the HTTP server, and the logs."""

    log_format: str = Field(
        default="json", pattern="^(json|console)$", description="Format of log lines: json, or console for people."
    )
    log_level: str = Field(
        default="info",
        pattern="^(debug|info|warning|error)$",
        description="Lowest level to log: debug, info, warning or error.",
    )


class ProcessSettings(CommonSettings):
    """Settings of any process that observes or controls a cluster and may write a journal."""

    zookeeper_timeout_ms: int = Field(
        default=60_000,
        ge=1000,
        description="Milliseconds without a connection to ZooKeeper after which the process exits.",
    )
    zookeeper_jute_maxbuffer_bytes: int = Field(
        default=DEFAULT_JUTE_MAXBUFFER_BYTES,
        ge=1 << 18,
        le=(1 << 31) - 1,
        description="jute.maxbuffer of the ZooKeeper servers. Larger requests are refused here instead of being sent.",
    )
    properties: Path | None = Field(
        default=None,
        description="File with the cluster's security settings, by their names in a broker's server.properties "
        "(zookeeper.ssl.*, listener.security.protocol.map, sasl.*, ssl.*, ...): that file itself, or a part of it.",
    )
    journal_token_file: Path | None = Field(
        default=None,
        description="File with the token that readers of /journal must present. Default: everybody who may read /metrics "
        "may read it.",
    )
    journal_segment_bytes: int = Field(
        default=64 << 20, ge=1 << 16, description="Bytes after which a new journal file begins."
    )
    journal_retention_bytes: int = Field(
        default=4 << 30, ge=1 << 20, description="Bytes of finished journal files to keep."
    )
    journal_retention_hours: int = Field(
        default=24 * 7, ge=1, description="Hours for which finished journal files are kept."
    )
    journal_snapshot_interval_seconds: int = Field(
        default=3600, ge=1, description="Seconds between snapshots of the whole state in the journal."
    )
    journal_alive_interval_seconds: int = Field(
        default=10, ge=1, description="Seconds without a record after which the journal gets a heartbeat."
    )


class ControllerProcessSettings(ProcessSettings, ControllerLimitSettings, AuditSettings):
    """Settings of a controller process."""

    zookeeper: str = Field(min_length=1, description="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot].")
    id: int = Field(
        ge=0, description="Id of this controller, in the same number space as the brokers' ids. No broker may have it."
    )
    listen: Several[str] = Field(
        min_length=1,
        description="Addresses to listen on: LISTENER://HOST:PORT, named like the brokers' inter-broker listener. A "
        "single address is registered under the name of every broker listener with the same protocol; several "
        "addresses are each registered under their own name. listener.security.protocol.map in --properties sets the "
        "protocol of a name; default: PLAINTEXT.",
    )
    advertise: Several[str] = Field(
        default=(),
        description="Addresses that brokers and clients connect to: LISTENER://HOST:PORT, or HOST:PORT with one "
        "--listen. Default: those of --listen.",
    )
    control_plane_listener: str | None = Field(
        default=None,
        pattern=f"^{LISTENER_NAME}$",
        description="Broker listener to which the controller sends its requests, as control.plane.listener.name. "
        "Default: the listener of the first --listen.",
    )
    client_listener: str | None = Field(
        default=None,
        pattern=f"^{LISTENER_NAME}$",
        description="Listener whose broker addresses clients receive, if one --listen serves several listeners. "
        "Default: the one that --listen names.",
    )
    hide_from: Several[str] = Field(
        default=(),
        description="Broker listeners whose clients do not see the controller as a node. These clients cannot send it "
        "requests, such as CreateTopics.",
    )
    zookeeper_session_timeout_ms: int = Field(
        default=6000,
        ge=1000,
        description="ZooKeeper session timeout in milliseconds. After this time without a sign of life the role goes "
        "to another controller.",
    )
    hot_standby: bool = Field(
        default=True,
        description="Keep a current copy of the cluster's state while standing by, for a faster failover.",
    )
    exclusive: bool = Field(
        default=True,
        description="Take the role from a Kafka broker that has it. With --no-exclusive, take it only if no process has "
        "it, or after `kontroller controller take-over`.",
    )
    request_timeout_ms: int = Field(
        default=30_000, ge=1000, description="Milliseconds that a broker has to answer a request."
    )
    brokers_timeout_ms: int = Field(
        default=30_000,
        ge=6000,
        description="Milliseconds without any reachable registered broker after which the controller gives the role "
        "back.",
    )
    unclean_leader_election_enable: bool | None = Field(
        default=None,
        description="Default of unclean.leader.election.enable, for topics that do not set it. "
        "Default: that of the brokers.",
    )
    unclean_recovery_timeout_ms: int = Field(
        default=5000,
        ge=0,
        le=300_000,
        description="Milliseconds that brokers have to report the ends of their logs before a requested unclean "
        "election. 0: do not ask them; the first live replica leads.",
    )
    auto_leader_rebalance_enable: bool | None = Field(
        default=None,
        description="Move leaderships back to the preferred replicas automatically. Default: as the brokers' files say.",
    )
    leader_imbalance_per_broker_percentage: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Percent of its preferred leaderships that a broker may miss before leaderships move back. "
        "Default: that of the brokers.",
    )
    leader_imbalance_check_interval_seconds: int | None = Field(
        default=None, ge=1, description="Seconds between checks of the leader imbalance. Default: that of the brokers."
    )
    address_cache_seconds: int = Field(
        default=40,
        ge=0,
        le=3600,
        description="Seconds for which clients may keep the former address of a broker that was restarted. A broker that "
        "was drained gets its leaderships back after this time, without waiting for the next check. 0: at once.",
    )
    delete_topic_enable: bool | None = Field(
        default=None, description="Allow the deletion of topics. Default: as the brokers' files say."
    )
    topic_deletion_waits_for_absent_brokers: bool = Field(
        default=True,
        description="Complete the deletion of a topic only after brokers that are down have returned and deleted its "
        "replicas, as Kafka does. Otherwise it completes without them, and they delete the replicas when they return to "
        "Kontroller. Turn this off only if all brokers have inter.broker.protocol.version 2.8 or later.",
    )
    removed_replicas_retention_days: int = Field(
        default=90,
        ge=0,
        description="Days to remember the replicas that an absent broker has to delete, counted from its last "
        "registration. 0: forever.",
    )
    num_partitions: int | None = Field(
        default=None,
        ge=1,
        description="Partitions of a topic that is created without a number. Default: num.partitions of the brokers.",
    )
    default_replication_factor: int | None = Field(
        default=None,
        ge=1,
        description="Replicas of a topic that is created without a number. Default: default.replication.factor of the "
        "brokers.",
    )
    remote_log_storage_system_enable: bool | None = Field(
        default=None, description="Allow topics with remote storage. Default: if all brokers have remote storage."
    )
    topic_rules: Path | None = Field(default=None, description=TOPIC_RULES_DESCRIPTION)
    admin_cidr: Several[IPvAnyNetwork] = Field(
        default=(),
        description="Networks whose addresses may change the cluster: topics, reassignments, elections, features, "
        "SCRAM credentials. Default: private networks may change everything but credentials, which only this machine "
        "may change.",
    )
    broker_cidr: Several[IPvAnyNetwork] = Field(
        default=(),
        description="Networks of brokers, if brokers connect from addresses that they do not register: behind NAT, or "
        "on machines with several addresses.",
    )
    node_address: IPvAnyAddress | None = Field(
        default=None,
        description="Address of the node that runs this pod. If a network of --admin-cidr or --broker-cidr contains it, "
        "the log warns, because source NAT gives this address to many callers.",
    )
    relay: bool = Field(
        default=True,
        description="Relay requests that only brokers can answer to a broker. Otherwise close the client's connection.",
    )
    journal_directory: Path | None = Field(
        default=None, description="Folder to write the journal of the cluster's state to. Default: no journal there."
    )
    journal_topic: str | None = Field(
        default=None,
        pattern=r"^[a-zA-Z0-9._-]{1,249}$",
        description="Kafka topic to write the journal to, in addition to the directory or instead of it. Default: no "
        "topic.",
    )
    journal_bootstrap_server: str | None = Field(
        default=None,
        pattern=r"^[^:/,\s]+:\d{1,5}(,[^:/,\s]+:\d{1,5})*$",
        description="Brokers of the journal's topic: HOST:PORT[,HOST:PORT...].",
    )

    @field_validator("listen")
    @classmethod
    def _check_listeners(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        require_apart(value, remedy="give each its own, or one listener alone, which serves all of its protocol")
        return value

    @field_validator("advertise")
    @classmethod
    def _check_advertised_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        require_readable(value)
        return value

    @field_validator("hide_from")
    @classmethod
    def _capitalize_all(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name.upper() for name in value)

    @field_validator("control_plane_listener", "client_listener")
    @classmethod
    def _capitalize(cls, value: str | None) -> str | None:
        return None if value is None else value.upper()

    @model_validator(mode="after")
    def _check_reachability(self) -> "ControllerProcessSettings":
        if self.client_listener is not None and len(self.listen) > 1:
            raise ValueError(
                "--client-listener needs a single --listen that serves several listeners, but here each listener has its "
                "own"
            )
        listeners = self.listeners
        names = [*(endpoint.listener for endpoint in listeners.endpoints), listeners.control_plane, listeners.clients]
        for name in names:
            if name in self.hide_from:
                raise ValueError(
                    f"--hide-from names {name}, at which brokers or clients find the controller by --listen, "
                    "--control-plane-listener or --client-listener: name other listeners of the brokers"
                )
        if (endpoint := find_unreachable(listeners.endpoints)) is not None:
            raise ValueError(
                f"brokers cannot connect to {endpoint.host}: say with --advertise which host and port they reach for "
                f"{endpoint.listener}"
            )
        return self

    @model_validator(mode="after")
    def _check_delegation_tokens(self) -> "ControllerProcessSettings":
        try:
            read_token_check_interval_ms(self.properties)
        except InvalidProperties as error:
            raise ValueError(f"--properties: {error}") from error
        return self

    @model_validator(mode="after")
    def _check_journal_topic(self) -> "ControllerProcessSettings":
        if (self.journal_topic is None) != (self.journal_bootstrap_server is None):
            raise ValueError("--journal-topic and --journal-bootstrap-server go together: give both, or neither")
        return self

    @cached_property
    def delegation_token_check_interval_ms(self) -> int | None:
        """Return the interval of checks for expired delegation tokens, as the properties set it; None without
        delegation tokens.

        Raises `InvalidProperties`, but never after validation."""
        return read_token_check_interval_ms(self.properties)

    @property
    def shared(self) -> dict[str, str]:
        """The given settings that brokers' files have, too, by their names there."""
        number, size_s = self.quota_windows
        given = {QUOTA_WINDOWS: number, QUOTA_WINDOW_SIZE: size_s, AUTHORIZER: read_authorizer_class(self.properties)}
        return {name: str(value) for name, value in given.items() if value is not None} | collect_given(self)

    @property
    def access_rules(self) -> AccessRules:
        """The clients that may send each kind of request."""
        return AccessRules(brokers=self.broker_cidr, administrators=self.admin_cidr or None)

    @property
    def binds(self) -> tuple[Endpoint, ...]:
        """The addresses on which the process listens."""
        protocol_of = make_protocol_lookup(self.properties)
        return tuple(parse_listener(text, protocol_of) for text in self.listen)

    @property
    def listeners(self) -> ControllerListeners:
        """The addresses to which brokers and clients connect.

        Raises `ValueError` if an address is advertised without a listener."""
        return ControllerListeners(
            endpoints=list_advertised_endpoints(self.binds, self.advertise),
            control_plane=self.control_plane_listener,
            clients=self.client_listener,
            hidden_from=self.hide_from,
        )


def load_settings(given: Mapping[str, Any], settings_file: Path | None = None) -> ControllerProcessSettings:
    """Load a controller's settings. Raises `InvalidSettings`."""
    return load(ControllerProcessSettings, given, settings_file)


def load(kind: type[S], given: Mapping[str, Any], settings_file: Path | None = None) -> S:
    """Load settings from the command line, the environment, and a file. Raises `InvalidSettings`."""
    from_file = _read_file(settings_file) if settings_file else {}
    explicit = {name: value for name, value in given.items() if value is not None}
    environment = {name for name in kind.model_fields if f"KONTROLLER_{name.upper()}" in _list_environment_names()}
    merged = {name: value for name, value in from_file.items() if name not in environment} | explicit
    try:
        return kind(**merged)
    except ValidationError as error:
        raise make_invalid_settings(error, kind) from error


def make_invalid_settings(error: ValidationError, kind: type[BaseSettings]) -> InvalidSettings:
    """Return the error for wrong settings of a kind, with a problem for each in the terms of the command line."""
    return InvalidSettings(*(_explain(dict(detail), kind) for detail in error.errors()))


def _list_environment_names() -> set[str]:
    return {name.upper() for name in os.environ}


def _read_file(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise InvalidSettings(f"settings file {path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise InvalidSettings(f"settings file {path} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise InvalidSettings(f"settings file {path} must hold settings as `name: value`")
    return {str(name).replace("-", "_"): value for name, value in content.items()}


def _explain(detail: dict[str, Any], kind: type[BaseSettings]) -> str:
    name = ".".join(str(part) for part in detail["loc"])
    option = f"--{name.replace('_', '-')}"
    if detail["type"] == "missing":
        return f"{option} is missing: give it, or set KONTROLLER_{name.upper()}, or {name} in the settings file"
    if detail["type"] == "extra_forbidden":
        return f"{name} is not a setting"
    field = kind.model_fields.get(name)
    if detail["type"] == "string_pattern_mismatch" and field is not None and field.description:
        return f"{option}: {detail['input']!r} is not valid. {field.description}"
    reason = str(detail["msg"]).removeprefix("Value error, ")
    return f"{option}: {reason}" if name else reason
