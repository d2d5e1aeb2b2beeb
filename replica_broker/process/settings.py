"""The settings of a broker's process: command line, then environment (`KONTROLLER_*`), then a settings file (YAML)."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, field_validator, model_validator
from pydantic_settings import NoDecode

from controller_core.admin.authorizing.authorizer_properties import AUTHORIZER_CLASS, authorizer_class
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Endpoint, FeatureRange
from controller_core.process.listener_addresses import (
    LISTENER_NAME,
    advertised,
    parse_listener,
    protocols_by,
    require_apart,
    require_readable,
    unreachable,
)
from controller_core.process.settings import ControllerProcessSettings, load
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.limits.limit_settings import ListenerLimitSettings
from replica_broker.replicas.settings import IsrWrites, ReplicaSettings, TruncateTo
from replica_broker.v2.settings import V2Settings

_FEATURE: Final = re.compile(r"(?P<name>[^:\s,]+):(?P<min>\d{1,5})-(?P<max>\d{1,5})")
_MOST: Final = 32_767
_CONTROLLER: Final = re.compile(r"\d{1,9}@\S+")


class BrokerProcessSettings(ListenerLimitSettings):
    """All that can be set about a broker's process. The defaults are Kafka's, where Kafka has the setting."""

    zookeeper: str = Field(min_length=1, description="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot].")
    zookeeper_timeout_ms: int = Field(
        default=18_000, ge=1000, description="How long ZooKeeper may be out of reach when the broker starts."
    )
    properties: Path | None = Field(
        default=None,
        description="A file that says how ZooKeeper and other brokers are spoken to, by the names that a stock broker's "
        "server.properties has for it (zookeeper.ssl.*, sasl.*, ssl.*, ...): such a file, or a part of it.",
    )
    zookeeper_session_timeout_ms: int = Field(
        default=18_000, ge=1000, description="After how long without a sign of life the broker counts as dead."
    )
    id: int = Field(ge=0, description="The broker's id; no other broker and no controller may have it.")
    listen: Annotated[tuple[str, ...], NoDecode] = Field(
        min_length=1,
        description="Where the broker listens: LISTENER://HOST:PORT; may be repeated. What a name speaks is "
        "said by listener.security.protocol.map in --properties; else PLAINTEXT.",
    )
    advertise: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="What others are told to connect to, LISTENER://HOST:PORT, or HOST:PORT where there is one --listen; "
        "by default what --listen says.",
    )
    inter_broker_listener: str | None = Field(
        default=None,
        pattern=f"^{LISTENER_NAME}$",
        description="The listener by which brokers and the controller reach each other, as inter.broker.listener.name; by "
        "default that of the first --listen.",
    )
    log_directory: Annotated[tuple[Path, ...], NoDecode] = Field(
        min_length=1, description="Where the logs are; may be repeated. Each belongs to this broker alone."
    )
    rack: str | None = Field(default=None, description="The rack that the broker is in.")
    feature: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="A feature that the broker supports, NAME:MIN-MAX; may be repeated."
    )
    max_time_lag_ms: int = Field(
        default=30_000, ge=1, description="Who has not caught up for so long leaves the ISR (replica.lag.time.max.ms)."
    )
    max_bytes_lag: int | None = Field(
        default=None, ge=1, description="Who is so many bytes behind leaves the ISR; none: nobody leaves for that."
    )
    min_bytes_lag: int | None = Field(
        default=None,
        ge=0,
        description="Who is no more bytes behind, and has all that is committed, joins the ISR; none: bytes do not count.",
    )
    truncate_to: str = Field(
        default="leader-epoch",
        pattern="^(leader-epoch|high-watermark)$",
        description="Where a follower cuts its log before it follows. high-watermark, as seed 004 has it, may lose "
        "committed messages, and is refused beside stock brokers.",
    )
    isr_writes: str = Field(
        default="alter-partition",
        pattern="^(alter-partition|zookeeper)$",
        description="Who writes the ISR: the controller when it is asked, or the leader itself into ZooKeeper.",
    )
    fetchers_per_leader: int = Field(default=1, ge=1, description="How many fetches go to one leader side by side.")
    fetch_wait_max_ms: int = Field(default=500, ge=1, description="How long a leader may wait for something new.")
    compression_type: str = Field(
        default="producer",
        pattern="^(producer|uncompressed|gzip|snappy|lz4|zstd)$",
        description="How a leader compresses records of topics that do not say it (compression.type); producer: they stay "
        "as they are sent.",
    )
    retention_ms: int = Field(
        default=604_800_000,
        ge=-1,
        description="How long topics that do not say it keep records (log.retention.ms); -1: without a limit.",
    )
    retention_bytes: int = Field(
        default=-1,
        ge=-1,
        description="How much partitions of topics that do not say it keep (log.retention.bytes); -1: without a limit.",
    )
    retention_check_interval_ms: int = Field(
        default=300_000,
        ge=1,
        description="How often is looked for what is to be deleted (log.retention.check.interval.ms).",
    )
    flush_interval_ms: int | None = Field(
        default=60_000,
        ge=1,
        description="How often all logs are flushed to the disk, beside all else; none: when the "
        "broker ends. What was not flushed is read when it starts after a crash, and replicas have it meanwhile.",
    )
    min_insync_replicas: int = Field(default=1, ge=1, description="The default of topics that do not say it.")
    controlled_shutdown_retry_backoff_ms: int = Field(
        default=5_000, ge=0, description="How long after a controller that could not move all leaders is asked again."
    )
    may_be_controller: str | None = Field(
        default=None,
        description="That the cluster's controller may be in this process, too: ID@LISTENER://HOST:PORT, with an id and a "
        "port of its own. One of all that may is it.",
    )
    design: str = Field(
        default="v3",
        pattern="^(v2|v3)$",
        description="v3: a controller says who leads. v2 (seed 003): the brokers elect leaders by way of ZooKeeper, in a "
        "chroot of their own.",
    )
    preferred_replica_time_ms: int = Field(
        default=1_000, ge=0, description="v2: how long the others leave an election to the preferred replica."
    )
    keep_in_sync_time_ms: int = Field(
        default=5_000, ge=0, description="v2: how long a new leader waits for live followers to catch up."
    )
    state_change_queue_bound: int = Field(
        default=1_000, ge=1, description="v2: how many state change requests wait for one broker."
    )
    becoming_leader_high_watermark: str = Field(
        default="checkpoint",
        pattern="^(checkpoint|end)$",
        description="v2: what a new leader takes as committed. end, as seed 003 has it, shows what nobody else may have.",
    )
    metrics_host: str = Field(default="127.0.0.1", description="The address that serves /metrics and /healthz.")
    metrics_port: int | None = Field(default=None, ge=0, le=65535, description="Its port; none: not served.")
    log_format: str = Field(default="json", pattern="^(json|console)$", description="json, or console for people.")
    log_level: str = Field(
        default="info",
        pattern="^(debug|info|warning|error)$",
        description="The least severe lines that are logged: debug, info, warning or error.",
    )

    @field_validator("listen", "advertise", "log_directory", "feature", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [part.strip() for part in value.split(",")] if isinstance(value, str) else value

    @field_validator("listen")
    @classmethod
    def _listeners_are_readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        require_apart(value)
        return value

    @field_validator("advertise")
    @classmethod
    def _advertised_addresses_are_readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        require_readable(value)
        return value

    @field_validator("inter_broker_listener")
    @classmethod
    def _in_capitals(cls, value: str | None) -> str | None:
        return None if value is None else value.upper()

    @field_validator("may_be_controller")
    @classmethod
    def _controller_is_readable(cls, value: str | None) -> str | None:
        if value is not None:
            if _CONTROLLER.fullmatch(value) is None:
                raise ValueError(
                    f"{value!r} is not of the form ID@PLAINTEXT://HOST:PORT, such as 1003@PLAINTEXT://here:9093"
                )
            require_readable((value.partition("@")[2],))
        return value

    @field_validator("feature")
    @classmethod
    def _features_are_readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            match = _FEATURE.fullmatch(text)
            if match is None or not int(match["min"]) <= int(match["max"]) <= _MOST:
                raise ValueError(f"{text!r} is not of the form NAME:MIN-MAX, such as group_coordinator:1-3")
        return value

    @model_validator(mode="after")
    def _names_no_authorizer(self) -> "BrokerProcessSettings":
        try:
            named = authorizer_class(self.properties)
        except InvalidProperties as error:
            raise ValueError(f"properties: {error}") from error
        if named is not None:
            raise ValueError(
                f"properties: {AUTHORIZER_CLASS} is {named}, and this broker asks no authorizer: all that it forbids would "
                "be allowed here. Run a stock broker, or, if everybody who reaches this broker may do everything, give a "
                "copy of the file without that line"
            )
        return self

    @model_validator(mode="after")
    def _has_a_controller_or_none(self) -> "BrokerProcessSettings":
        if self.design == "v2" and self.may_be_controller is not None:
            raise ValueError("design v2 has no controller: leave may_be_controller out")
        return self

    @model_validator(mode="after")
    def _can_be_reached(self) -> "BrokerProcessSettings":
        if (endpoint := unreachable(self.endpoints)) is not None:
            raise ValueError(
                f"nobody can connect to {endpoint.host}: say with advertise which host and port they reach for "
                f"{endpoint.listener}"
            )
        if self.between_brokers not in (endpoint.listener for endpoint in self.endpoints):
            raise ValueError(f"inter-broker-listener {self.between_brokers} is not listened on: add it with listen")
        if self.controller is not None and self.controller.id == self.id:
            raise ValueError("may-be-controller needs an id that no broker has, this one neither")
        return self

    @property
    def binds(self) -> tuple[Endpoint, ...]:
        """Where the process listens."""
        protocol_of = protocols_by(self.properties)
        return tuple(parse_listener(text, protocol_of) for text in self.listen)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where others are to connect. Raises `ValueError` for what is advertised and not listened on."""
        return advertised(self.binds, self.advertise)

    @property
    def between_brokers(self) -> str:
        """The listener by which brokers and the controller reach each other."""
        return self.inter_broker_listener or self.binds[0].listener

    @property
    def features(self) -> dict[str, FeatureRange]:
        """The versions of features that the broker supports."""
        matches = [match for text in self.feature if (match := _FEATURE.fullmatch(text)) is not None]
        return {
            match["name"]: FeatureRange(min_version=int(match["min"]), max_version=int(match["max"]))
            for match in matches
        }

    @property
    def replicas(self) -> ReplicaSettings:
        """What replicas do with it."""
        truncate_to: TruncateTo = "leader epoch" if self.truncate_to == "leader-epoch" else "high watermark"
        isr_writes: IsrWrites = "AlterPartition" if self.isr_writes == "alter-partition" else "ZooKeeper"
        return ReplicaSettings(
            broker_id=BrokerId(self.id),
            max_time_lag_ms=self.max_time_lag_ms,
            max_bytes_lag=self.max_bytes_lag,
            min_bytes_lag=self.min_bytes_lag,
            truncate_to=truncate_to,
            isr_writes=isr_writes,
            fetch_wait_max_ms=self.fetch_wait_max_ms,
            fetchers_per_leader=self.fetchers_per_leader,
            retention_check_interval_ms=self.retention_check_interval_ms,
            flush_interval_ms=self.flush_interval_ms,
        )

    @property
    def controller(self) -> ControllerProcessSettings | None:
        """Those of the controller in this process; None where there is none."""
        if self.may_be_controller is None:
            return None
        controller_id, _, listen = self.may_be_controller.partition("@")
        return ControllerProcessSettings(
            zookeeper=self.zookeeper,
            properties=self.properties,
            zookeeper_timeout_ms=max(60_000, self.zookeeper_timeout_ms),
            zookeeper_session_timeout_ms=self.zookeeper_session_timeout_ms,
            id=int(controller_id),
            listen=(listen,),
            advertise=(),
            metrics_port=None,
            journal_directory=None,
            journal_topic=None,
            journal_bootstrap=None,
            **{name: getattr(self, name) for name in ListenerLimitSettings.model_fields if name != "properties"},
        )

    @property
    def v2(self) -> V2Settings:
        """What design v2 does with it."""
        return V2Settings(
            preferred_replica_time_ms=self.preferred_replica_time_ms,
            keep_in_sync_time_ms=self.keep_in_sync_time_ms,
            state_change_queue_bound=self.state_change_queue_bound,
            becoming_leader_high_watermark="end" if self.becoming_leader_high_watermark == "end" else "checkpoint",
        )

    @property
    def own_configs(self) -> dict[str, str]:
        """What this process was started with, by Kafka's names."""
        return {
            "broker.id": str(self.id),
            "broker.rack": self.rack or "",
            "listeners": ",".join(self.listen),
            "inter.broker.listener.name": self.between_brokers,
            "log.dirs": ",".join(map(str, self.log_directory)),
            "min.insync.replicas": str(self.min_insync_replicas),
            "compression.type": self.compression_type,
            "log.retention.ms": str(self.retention_ms),
            "log.retention.bytes": str(self.retention_bytes),
            "log.retention.check.interval.ms": str(self.retention_check_interval_ms),
            "auto.create.topics.enable": "false",
            "replica.lag.time.max.ms": str(self.max_time_lag_ms),
            "replica.fetch.wait.max.ms": str(self.fetch_wait_max_ms),
            "num.replica.fetchers": str(self.fetchers_per_leader),
            "zookeeper.session.timeout.ms": str(self.zookeeper_session_timeout_ms),
        }


def load_settings(given: Mapping[str, Any], settings_file: Path | None = None) -> BrokerProcessSettings:
    """A broker's settings. Raises `InvalidSettings`."""
    return load(BrokerProcessSettings, given, settings_file)
