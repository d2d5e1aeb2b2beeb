"""The settings of a process: command line, then environment (`KONTROLLER_*`), then a settings file (YAML)."""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import Field, IPvAnyNetwork, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from controller_core.model.access import AccessRules
from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import Endpoint
from controller_core.process.listener_addresses import (
    LISTENER_NAME,
    advertised,
    parse_listener,
    protocols_by,
    require_apart,
    require_readable,
    unreachable,
)
from controller_core.security.delegation_tokens import read_token_check_interval_ms
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.limits.limit_settings import ControllerLimitSettings
from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES


class InvalidSettings(Exception):
    """Settings that cannot be used; the message has a line for each, saying what to change."""


S = TypeVar("S", bound=BaseSettings)


class ProcessSettings(BaseSettings):
    """What can be set about any process that looks at or controls a cluster, and may write a journal."""

    model_config = SettingsConfigDict(env_prefix="KONTROLLER_", extra="forbid", frozen=True)

    zookeeper_timeout_ms: int = Field(
        default=60_000, ge=1000, description="How long ZooKeeper may be out of reach before the process exits."
    )
    zookeeper_jute_maxbuffer_bytes: int = Field(
        default=DEFAULT_JUTE_MAXBUFFER_BYTES,
        ge=1 << 18,
        le=(1 << 31) - 1,
        description="The jute.maxbuffer of the ZooKeeper servers: what is larger is refused, and not sent.",
    )
    properties: Path | None = Field(
        default=None,
        description="A file that says how the cluster is secured, by the names that a broker's server.properties has for "
        "it (zookeeper.ssl.*, listener.security.protocol.map, sasl.*, ssl.*, ...): that file itself, or a part of it.",
    )
    metrics_host: str = Field(default="127.0.0.1", description="The address that serves /metrics and /healthz.")
    metrics_port: int | None = Field(default=None, ge=0, le=65535, description="Its port; none: not served.")
    journal_token_file: Path | None = Field(
        default=None,
        description="A file with the token that readers of /journal have to show; none: whoever reaches the port may read.",
    )
    journal_segment_bytes: int = Field(default=64 << 20, ge=1 << 16, description="How large a file of it becomes.")
    journal_retention_bytes: int = Field(
        default=4 << 30, ge=1 << 20, description="How much of it is kept besides the file that is being written."
    )
    journal_retention_hours: int = Field(default=24 * 7, ge=1, description="How long it is kept.")
    journal_snapshot_interval_seconds: int = Field(
        default=3600, ge=1, description="How often the whole state is written to it."
    )
    journal_alive_interval_seconds: int = Field(
        default=10, ge=1, description="After how long without a record it says that the controller is alive."
    )
    log_format: str = Field(default="json", pattern="^(json|console)$", description="json, or console for people.")
    log_level: str = Field(
        default="info",
        pattern="^(debug|info|warning|error)$",
        description="The least severe lines that are logged: debug, info, warning or error.",
    )


class ControllerProcessSettings(ProcessSettings, ControllerLimitSettings):
    """All that can be set about a controller process."""

    zookeeper: str = Field(min_length=1, description="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot].")
    id: int = Field(ge=0, description="The controller's id among the brokers' ids; no broker may have it.")
    listen: Annotated[tuple[str, ...], NoDecode] = Field(
        min_length=1,
        description="Where the controller listens: LISTENER://HOST:PORT, under the name of the brokers' inter-broker "
        "listener. One alone is listed under all names of listeners that brokers have with its protocol; of several, each "
        "under its own name. What a name speaks is said by listener.security.protocol.map in --properties; else PLAINTEXT.",
    )
    advertise: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="What brokers and clients are told to connect to, LISTENER://HOST:PORT, or HOST:PORT where there is "
        "one --listen; by default what --listen says.",
    )
    control_plane_listener: str | None = Field(
        default=None,
        pattern=f"^{LISTENER_NAME}$",
        description="The brokers' listener that the controller sends its requests to, as control.plane.listener.name; by "
        "default that of the first --listen.",
    )
    client_listener: str | None = Field(
        default=None,
        pattern=f"^{LISTENER_NAME}$",
        description="Where one --listen serves several listeners: that of the clients, who are told the brokers' "
        "addresses on it; by default the one that --listen names.",
    )
    zookeeper_session_timeout_ms: int = Field(
        default=6000, ge=1000, description="After how long without a sign of life ZooKeeper gives the role away."
    )
    hot_standby: bool = Field(
        default=True,
        description="Whether a controller that stands by reads the cluster's state beforehand and keeps it current.",
    )
    exclusive: bool = Field(
        default=True,
        description="Whether the role is taken from a Kafka broker that has it. With no-exclusive it is taken when nobody "
        "has it, or by `kontroller controller take-over`.",
    )
    request_timeout_ms: int = Field(default=30_000, ge=1000, description="How long a broker may take to answer.")
    brokers_timeout_ms: int = Field(
        default=30_000,
        ge=6000,
        description="How long no registered broker may be within reach before the role is given back.",
    )
    unclean_leader_election_enable: bool = Field(
        default=False, description="The default of topics that do not set unclean.leader.election.enable."
    )
    unclean_recovery_timeout_ms: int = Field(
        default=5000,
        ge=0,
        le=300_000,
        description="How long brokers may take to say whose log is the longest, before an unclean election that somebody "
        "asks for; 0: the first live replica leads.",
    )
    auto_leader_rebalance_enable: bool = Field(
        default=True, description="Whether leaders go back to their preferred replicas by themselves."
    )
    leader_imbalance_per_broker_percentage: int = Field(
        default=10, ge=0, le=100, description="How many percent of its leaderships a broker may miss before that."
    )
    leader_imbalance_check_interval_seconds: int = Field(default=300, ge=1, description="How often that is looked at.")
    delete_topic_enable: bool = Field(default=True, description="Whether topics may be deleted at all.")
    removed_replicas_retention_days: int = Field(
        default=90,
        ge=0,
        description="How long what a broker has to delete is remembered after it was there last; 0: for ever.",
    )
    num_partitions: int | None = Field(
        default=None,
        ge=1,
        description="Partitions of a topic whose creator does not say how many: num.partitions of the brokers' files. By "
        "default such a creation is refused.",
    )
    default_replication_factor: int | None = Field(
        default=None,
        ge=1,
        description="Replicas of each partition of a topic whose creator does not say how many: default.replication.factor "
        "of the brokers' files. By default such a creation is refused.",
    )
    remote_log_storage_system_enable: bool = Field(
        default=False, description="Whether the brokers have it, so that topics may be created with remote storage."
    )
    admin_cidr: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        default=(),
        description="Networks whose addresses may change the cluster: topics, reassignments, elections, features, SCRAM "
        "credentials. By default private networks may, but for credentials, which this machine alone may alter then.",
    )
    broker_cidr: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        default=(),
        description="Networks that brokers' requests come from, where these are not the addresses that brokers register: "
        "behind NAT, or on machines with several addresses.",
    )
    relay: bool = Field(
        default=True, description="Whether requests that brokers answer are passed on to one; clients are refused else."
    )
    journal_directory: Path | None = Field(
        default=None, description="Where the journal of the cluster's state is written; none: it is not."
    )
    journal_topic: str | None = Field(
        default=None,
        pattern=r"^[a-zA-Z0-9._-]{1,249}$",
        description="The Kafka topic that the journal is written to, beside the directory or instead of it; none: none.",
    )
    journal_bootstrap: str | None = Field(
        default=None,
        pattern=r"^[^:/,\s]+:\d{1,5}(,[^:/,\s]+:\d{1,5})*$",
        description="Brokers that lead to that topic: HOST:PORT[,HOST:PORT...].",
    )

    @field_validator("listen", "advertise", "admin_cidr", "broker_cidr", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [part.strip() for part in value.split(",")] if isinstance(value, str) else value

    @field_validator("listen")
    @classmethod
    def _listeners_are_readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        require_apart(value, remedy="give each its own, or one listener alone, which serves all of its protocol")
        return value

    @field_validator("advertise")
    @classmethod
    def _advertised_addresses_are_readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        require_readable(value)
        return value

    @field_validator("control_plane_listener", "client_listener")
    @classmethod
    def _in_capitals(cls, value: str | None) -> str | None:
        return None if value is None else value.upper()

    @model_validator(mode="after")
    def _listeners_fit_together(self) -> "ControllerProcessSettings":
        if self.client_listener is not None and len(self.listen) > 1:
            raise ValueError("client-listener is for one --listen that serves several listeners: here each has its own")
        if (endpoint := unreachable(self.listeners.endpoints)) is not None:
            raise ValueError(
                f"brokers cannot connect to {endpoint.host}: say with advertise which host and port they reach for "
                f"{endpoint.listener}"
            )
        return self

    @model_validator(mode="after")
    def _tokens_can_be_expired(self) -> "ControllerProcessSettings":
        try:
            read_token_check_interval_ms(self.properties)
        except InvalidProperties as error:
            raise ValueError(f"properties: {error}") from error
        return self

    @model_validator(mode="after")
    def _topic_can_be_found(self) -> "ControllerProcessSettings":
        if (self.journal_topic is None) != (self.journal_bootstrap is None):
            raise ValueError("journal-topic and journal-bootstrap go together: give both, or neither")
        return self

    @cached_property
    def delegation_token_check_interval_ms(self) -> int | None:
        """How often it is looked whether delegation tokens are over, as the properties say; None: the cluster has none.

        Raises `InvalidProperties`, but not once the settings are there."""
        return read_token_check_interval_ms(self.properties)

    @property
    def access_rules(self) -> AccessRules:
        """Who may ask what of the controller."""
        return AccessRules(brokers=self.broker_cidr, administrators=self.admin_cidr or None)

    @property
    def binds(self) -> tuple[Endpoint, ...]:
        """Where the process listens."""
        protocol_of = protocols_by(self.properties)
        return tuple(parse_listener(text, protocol_of) for text in self.listen)

    @property
    def listeners(self) -> ControllerListeners:
        """Where brokers and clients are to connect. Raises `ValueError` for what is advertised and not listened on."""
        return ControllerListeners(
            endpoints=advertised(self.binds, self.advertise),
            control_plane=self.control_plane_listener,
            clients=self.client_listener,
        )


def load_settings(given: Mapping[str, Any], settings_file: Path | None = None) -> ControllerProcessSettings:
    """A controller's settings. Raises `InvalidSettings`."""
    return load(ControllerProcessSettings, given, settings_file)


def load(kind: type[S], given: Mapping[str, Any], settings_file: Path | None = None) -> S:
    """Settings from what the command line gave, the environment, and a file. Raises `InvalidSettings`."""
    from_file = _read_file(settings_file) if settings_file else {}
    explicit = {name: value for name, value in given.items() if value is not None}
    environment = {name for name in kind.model_fields if f"KONTROLLER_{name.upper()}" in _environment_names()}
    merged = {name: value for name, value in from_file.items() if name not in environment} | explicit
    try:
        return kind(**merged)
    except ValidationError as error:
        raise invalid(error) from error


def invalid(error: ValidationError) -> InvalidSettings:
    """What is wrong with settings, a line for each, in the words of the command line."""
    return InvalidSettings("\n".join(_explain(dict(detail)) for detail in error.errors()))


def _environment_names() -> set[str]:
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


def _explain(detail: dict[str, Any]) -> str:
    name = ".".join(str(part) for part in detail["loc"])
    option = f"--{name.replace('_', '-')}"
    if detail["type"] == "missing":
        return f"{option} is missing: give it, or set KONTROLLER_{name.upper()}, or {name} in the settings file"
    if detail["type"] == "extra_forbidden":
        return f"{name} is no setting"
    reason = str(detail["msg"]).removeprefix("Value error, ")
    return f"{option}: {reason}" if name else reason
