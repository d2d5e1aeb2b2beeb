"""The settings of a broker process: from the command line, the environment (`KONTROLLER_*`) and a settings file (YAML).

The first of these that has a setting wins.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import Field, IPvAnyNetwork, field_validator, model_validator

from controller_core.admin.authorizing.authorizer_properties import AUTHORIZER_CLASS, read_authorizer_class
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Endpoint, FeatureRange
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
from controller_core.process.settings import ControllerProcessSettings, Several, load
from controller_core.wire.limits.limit_settings import ListenerLimitSettings
from replica_broker.replicas.settings import IsrWrites, ReplicaSettings, TruncateTo
from replica_broker.v2.settings import V2Settings

_FEATURE: Final = re.compile(r"(?P<name>[^:\s,]+):(?P<min>\d{1,5})-(?P<max>\d{1,5})")
_MOST: Final = 32_767
_CONTROLLER: Final = re.compile(r"\d{1,9}@\S+")


class BrokerProcessSettings(ListenerLimitSettings, HttpSettings):
    """All settings of a broker process. The defaults are Kafka's if Kafka has the setting."""

    zookeeper: str = Field(min_length=1, description="ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT...][/chroot].")
    zookeeper_timeout_ms: int = Field(
        default=18_000, ge=1000, description="Milliseconds that ZooKeeper may be unreachable when the broker starts."
    )
    properties: Path | None = Field(
        default=None,
        description=(
            "File with the security settings of the connections to ZooKeeper, the brokers and the controller, and of "
            "the listeners, by the names of a stock broker's server.properties (zookeeper.ssl.*, sasl.*, ssl.*, ...): "
            "such a file, or a part of it."
        ),
    )
    zookeeper_session_timeout_ms: int = Field(
        default=18_000, ge=1000, description="Milliseconds without a heartbeat after which the broker counts as dead."
    )
    id: int = Field(ge=0, description="The broker's id. No other broker and no controller may have it.")
    listen: Several[str] = Field(
        min_length=1,
        description=(
            "LISTENER://HOST:PORT to listen on. The protocol is PLAINTEXT unless "
            "listener.security.protocol.map in --properties maps the listener's name to another one."
        ),
    )
    advertise: Several[str] = Field(
        default=(),
        description=(
            "LISTENER://HOST:PORT that clients and brokers connect to, or HOST:PORT if there is one --listen. May be "
            "repeated. Default: --listen."
        ),
    )
    inter_broker_listener: str | None = Field(
        default=None,
        pattern=f"^{LISTENER_NAME}$",
        description=(
            "Listener for traffic between brokers and from the controller (inter.broker.listener.name). Default: the "
            "first --listen."
        ),
    )
    log_directory: Several[Path] = Field(
        min_length=1, description="Directory of logs. Each belongs to this broker alone."
    )
    controller_cidr: Several[IPvAnyNetwork] = Field(
        default=(),
        description=(
            "Networks of controllers and brokers, if they connect from other addresses than they register: behind "
            "NAT, or on machines with several addresses."
        ),
    )
    rack: str | None = Field(default=None, description="The broker's rack.")
    feature: Several[str] = Field(default=(), description="Supported feature as NAME:MIN-MAX.")
    max_time_lag_ms: int = Field(
        default=30_000,
        ge=1,
        description="Milliseconds after which a lagging follower leaves the ISR (replica.lag.time.max.ms).",
    )
    max_bytes_lag: int | None = Field(
        default=None,
        ge=1,
        description=(
            "Bytes behind the leader at which a follower leaves the ISR. By default, no follower leaves because of "
            "bytes."
        ),
    )
    min_bytes_lag: int | None = Field(
        default=None,
        ge=0,
        description=(
            "Bytes behind the leader within which a follower that has all committed messages joins the ISR. By "
            "default, bytes do not count."
        ),
    )
    truncate_to: str = Field(
        default="leader-epoch",
        pattern="^(leader-epoch|high-watermark)$",
        description=(
            "Point at which a follower truncates its log before it follows. high-watermark, as in seed 004, may lose "
            "committed messages and is refused beside stock brokers."
        ),
    )
    isr_writes: str = Field(
        default="alter-partition",
        pattern="^(alter-partition|zookeeper)$",
        description=(
            "Path of ISR changes: through the controller (alter-partition), or written to ZooKeeper by the leader "
            "itself (zookeeper)."
        ),
    )
    fetchers_per_leader: int = Field(default=1, ge=1, description="Number of parallel fetches to each leader.")
    fetch_wait_max_ms: int = Field(
        default=500, ge=1, description="Milliseconds that a leader may hold a fetch until new messages arrive."
    )
    compression_type: str = Field(
        default="producer",
        pattern="^(producer|uncompressed|gzip|snappy|lz4|zstd)$",
        description=(
            "Compression that the leader applies for topics that do not set it (compression.type). producer keeps the "
            "producers' compression."
        ),
    )
    retention_ms: int = Field(
        default=604_800_000,
        ge=-1,
        description="Milliseconds that topics keep records if they do not set it (log.retention.ms). -1: no limit.",
    )
    retention_bytes: int = Field(
        default=-1,
        ge=-1,
        description="Bytes that each partition keeps if its topic does not set it (log.retention.bytes). -1: no limit.",
    )
    retention_check_interval_ms: int = Field(
        default=300_000,
        ge=1,
        description="Milliseconds between checks for deletable segments (log.retention.check.interval.ms).",
    )
    flush_interval_ms: int | None = Field(
        default=60_000,
        ge=1,
        description=(
            "Milliseconds between flushes of all logs to the disk, in the background. none: only when the broker "
            "ends. Unflushed data is scanned at the start after a crash; until the flush, the replicas protect it."
        ),
    )
    min_insync_replicas: int = Field(
        default=1, ge=1, description="Default min.insync.replicas of topics that do not set it."
    )
    controlled_shutdown_retry_backoff_ms: int = Field(
        default=5_000,
        ge=0,
        description="Milliseconds before the controller is asked again to move the remaining leaders.",
    )
    may_be_controller: str | None = Field(
        default=None,
        description=(
            "ID@LISTENER://HOST:PORT of a controller that runs in this process and takes part in the controller "
            "election. It needs its own id and port."
        ),
    )
    design: str = Field(
        default="v3",
        pattern="^(v2|v3)$",
        description=(
            "v3: a controller elects the partition leaders. v2 (seed 003): the brokers elect them through ZooKeeper, "
            "in a chroot of their own."
        ),
    )
    preferred_replica_time_ms: int = Field(
        default=1_000,
        ge=0,
        description="v2: milliseconds that the other brokers leave an election to the preferred replica.",
    )
    keep_in_sync_time_ms: int = Field(
        default=5_000, ge=0, description="v2: milliseconds that a new leader waits for live followers to catch up."
    )
    state_change_queue_bound: int = Field(
        default=1_000, ge=1, description="v2: maximum number of state change requests in the queue of one broker."
    )
    becoming_leader_high_watermark: str = Field(
        default="checkpoint",
        pattern="^(checkpoint|end)$",
        description=(
            "v2: offset that a new leader takes as its high watermark. end, as in seed 003, shows consumers messages "
            "that no other replica may have."
        ),
    )
    log_format: str = Field(
        default="json", pattern="^(json|console)$", description="Log format: json, or console for people."
    )
    log_level: str = Field(
        default="info",
        pattern="^(debug|info|warning|error)$",
        description="Lowest severity of the logged lines: debug, info, warning or error.",
    )

    @field_validator("flush_interval_ms", mode="before")
    @classmethod
    def _read_none(cls, value: object) -> object:
        return None if value == "none" else value

    @field_validator("listen")
    @classmethod
    def _listeners_are_readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        require_apart(value)
        return value

    @field_validator("advertise")
    @classmethod
    def _require_readable_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        require_readable(value)
        return value

    @field_validator("inter_broker_listener")
    @classmethod
    def _capitalize(cls, value: str | None) -> str | None:
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
    def _has_a_controller_or_none(self) -> "BrokerProcessSettings":
        if self.design == "v2" and self.may_be_controller is not None:
            raise ValueError("design v2 has no controller: remove may_be_controller")
        return self

    @model_validator(mode="after")
    def _can_be_reached(self) -> "BrokerProcessSettings":
        if (endpoint := find_unreachable(self.endpoints)) is not None:
            raise ValueError(
                f"nobody can connect to {endpoint.host}: set advertise to a reachable host and port for "
                f"{endpoint.listener}"
            )
        if self.between_brokers not in (endpoint.listener for endpoint in self.endpoints):
            raise ValueError(
                f"inter-broker-listener {self.between_brokers} has no address to listen on: add it to listen"
            )
        if self.controller is not None and self.controller.id == self.id:
            raise ValueError("may-be-controller needs an id that no broker has, not even this one")
        return self

    @property
    def binds(self) -> tuple[Endpoint, ...]:
        """The addresses that the process listens on."""
        protocol_of = make_protocol_lookup(self.properties)
        return tuple(parse_listener(text, protocol_of) for text in self.listen)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The addresses that others connect to.

        Raises `ValueError` for an advertised listener without an address to listen on.
        """
        return list_advertised_endpoints(self.binds, self.advertise)

    @property
    def between_brokers(self) -> str:
        """The listener for traffic between brokers and from the controller."""
        return self.inter_broker_listener or self.binds[0].listener

    @property
    def features(self) -> dict[str, FeatureRange]:
        """The supported versions of each feature."""
        matches = [match for text in self.feature if (match := _FEATURE.fullmatch(text)) is not None]
        return {
            match["name"]: FeatureRange(min_version=int(match["min"]), max_version=int(match["max"]))
            for match in matches
        }

    @property
    def replicas(self) -> ReplicaSettings:
        """The settings of the replicas."""
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
        """The settings of the controller in this process, or None."""
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
            journal_bootstrap_server=None,
            **{name: getattr(self, name) for name in ListenerLimitSettings.model_fields if name != "properties"},
        )

    @property
    def v2(self) -> V2Settings:
        """The settings of design v2."""
        return V2Settings(
            preferred_replica_time_ms=self.preferred_replica_time_ms,
            keep_in_sync_time_ms=self.keep_in_sync_time_ms,
            state_change_queue_bound=self.state_change_queue_bound,
            becoming_leader_high_watermark="end" if self.becoming_leader_high_watermark == "end" else "checkpoint",
        )

    @property
    def own_configs(self) -> dict[str, str]:
        """The settings that this process was started with, by Kafka's names."""
        return {
            "broker.id": str(self.id),
            "broker.rack": self.rack or "",
            "listeners": ",".join(self.listen),
            "inter.broker.listener.name": self.between_brokers,
            AUTHORIZER_CLASS: read_authorizer_class(self.properties) or "",  # controllers without one ask for it
            "log.dirs": ",".join(map(str, self.log_directory)),
            "min.insync.replicas": str(self.min_insync_replicas),
            "compression.type": self.compression_type,
            "log.retention.ms": str(self.retention_ms),
            "log.retention.bytes": str(self.retention_bytes),
            "log.retention.check.interval.ms": str(self.retention_check_interval_ms),
            "auto.create.topics.enable": "false",
            "delete.topic.enable": "true",
            "replica.lag.time.max.ms": str(self.max_time_lag_ms),
            "replica.fetch.wait.max.ms": str(self.fetch_wait_max_ms),
            "num.replica.fetchers": str(self.fetchers_per_leader),
            "zookeeper.session.timeout.ms": str(self.zookeeper_session_timeout_ms),
        }


def load_settings(given: Mapping[str, Any], settings_file: Path | None = None) -> BrokerProcessSettings:
    """Return the settings of a broker. Raises `InvalidSettings`."""
    return load(BrokerProcessSettings, given, settings_file)
