"""The limits of a listener as settings of a process, and as properties of a broker.

The value of each limit comes from the first source that has it: the settings (command line, environment, settings file,
in this order), then Kafka's property with the same meaning in the file of `--properties`, then the default. A property
with a setting is not read, so a file that is shared with brokers may have values there that a controller does not
support.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.security.property_types import describe_errors
from controller_core.wire.limits.descriptors import MOST_CONNECTIONS
from controller_core.wire.limits.listener_limits import ListenerLimits
from controller_core.wire.limits.memory import connections_bytes

_MB: Final = 1 << 20
_LEAST_REQUEST_BYTES: Final = _MB
"""Brokers report the ISRs of thousands of partitions in one request."""
_MOST_REQUEST_BYTES: Final = (1 << 31) - 1
"""The largest length that the header of a request can have."""
_MOST_MEMORY_BYTES: Final = 1 << 36
_DEFAULT_MEMORY_BYTES: Final = 192 * _MB
_LEAST_IDLE_MS: Final = 1_000
_MOST_IDLE_MS: Final = (1 << 63) - 1
DEFAULT_QUEUED_REQUESTS: Final = 500
"""Kafka's default of `queued.max.requests`."""

_RequestBytes: TypeAlias = Annotated[int, Field(ge=_LEAST_REQUEST_BYTES, le=_MOST_REQUEST_BYTES)]
_MemoryBytes: TypeAlias = Annotated[int, Field(ge=_LEAST_REQUEST_BYTES, le=_MOST_MEMORY_BYTES)]
_IdleMs: TypeAlias = Annotated[int, Field(ge=_LEAST_IDLE_MS, le=_MOST_IDLE_MS)]
_Count: TypeAlias = Annotated[int, Field(ge=1, le=(1 << 31) - 1)]


def _none_where_unlimited(value: Any) -> Any:
    """Return None for 0 or less, which mean no limit to Kafka. Here the default limit applies instead."""
    return None if str(value).strip().removeprefix("-").isdigit() and int(value) <= 0 else value


class _LimitProperties(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    socket_request_max_bytes: _RequestBytes | None = Field(default=None, alias="socket.request.max.bytes")
    max_connections: _Count | None = Field(default=None, alias="max.connections")
    max_connections_per_address: _Count | None = Field(default=None, alias="max.connections.per.ip")
    connections_max_idle_ms: _IdleMs | None = Field(default=None, alias="connections.max.idle.ms")
    queued_max_requests: _Count | None = Field(default=None, alias="queued.max.requests")
    queued_max_request_bytes: Annotated[_MemoryBytes | None, BeforeValidator(_none_where_unlimited)] = Field(
        default=None, alias="queued.max.request.bytes"
    )
    controller_quota_window_num: _Count | None = Field(default=None, alias="controller.quota.window.num")
    controller_quota_window_size_seconds: _Count | None = Field(
        default=None, alias="controller.quota.window.size.seconds"
    )


class ListenerLimitSettings(BaseSettings):
    """The limits that apply to clients of any listening process."""

    model_config = SettingsConfigDict(env_prefix="KONTROLLER_", extra="forbid", frozen=True)

    properties: Path | None = None
    socket_request_max_bytes: _RequestBytes | None = Field(
        default=None,
        description="Largest request in bytes. Default: socket.request.max.bytes in --properties, or 100 "
        "MiB. Requests that this process answers itself, and requests without records, also have lower limits.",
    )
    max_connections: Annotated[int, Field(ge=1, le=MOST_CONNECTIONS)] | None = Field(
        default=None,
        description="Maximum number of connections, if the limit of open files allows them. Default: "
        "max.connections in --properties, or 5,000. Never more than 10,000.",
    )
    max_connections_per_address: _Count | None = Field(
        default=None,
        description="Maximum number of connections from one address; brokers may have more. Default: "
        "max.connections.per.ip in --properties, or 1,000.",
    )
    connections_max_idle_ms: _IdleMs | None = Field(
        default=None,
        description="Milliseconds without a request after which a connection is closed. Default: "
        "connections.max.idle.ms in --properties, or 10 minutes.",
    )
    max_requests_in_flight: int = Field(
        default=5_000,
        ge=1,
        le=MOST_CONNECTIONS,
        description="Maximum number of requests that are read and not yet answered: for brokers, for administrators and "
        "for all others, separately. Further requests wait unread.",
    )
    queued_max_request_bytes: _MemoryBytes | None = Field(
        default=None,
        description="Bytes of requests in memory: a third for requests of brokers, a sixth for requests of "
        "administrators, half for all others. Further requests wait unread. Default: queued.max.request.bytes "
        "in --properties, or 192 MiB.",
    )

    @model_validator(mode="after")
    def _limits_fit_together(self) -> "ListenerLimitSettings":
        limits = self.listener_limits
        if self._memory_bytes < limits.max_frame_bytes:
            raise ValueError(
                f"queued-max-request-bytes ({self._memory_bytes}) is less than the largest request, "
                f"socket-request-max-bytes ({limits.max_frame_bytes}): raise the former, or lower the latter"
            )
        return self

    @cached_property
    def listener_limits(self) -> ListenerLimits:
        """The resulting limits. Raises `ValueError` for unusable properties, but not after the settings have been
        created."""
        said, default = self._by_properties, ListenerLimits()
        largest = self.socket_request_max_bytes or said.socket_request_max_bytes or default.max_frame_bytes
        of_address = self.max_connections_per_address or said.max_connections_per_address
        max_connections = self.max_connections or said.max_connections or default.max_connections
        return ListenerLimits(
            max_connections=max_connections,
            connections_bytes=connections_bytes(max_connections, default.max_unauthenticated_connections),
            max_connections_per_address=of_address or default.max_connections_per_address,
            max_frame_bytes=largest,
            max_passed_on_bytes=min(largest, default.max_passed_on_bytes),
            max_own_request_bytes=min(largest, default.max_own_request_bytes),
            idle_timeout_ms=self.connections_max_idle_ms or said.connections_max_idle_ms or default.idle_timeout_ms,
            max_requests_in_flight=self.max_requests_in_flight,
            brokers_bytes=self._memory_bytes // 3,
            administrators_bytes=self._memory_bytes // 6,
            strangers_bytes=self._memory_bytes // 2,
        )

    @property
    def _memory_bytes(self) -> int:
        return self.queued_max_request_bytes or self._by_properties.queued_max_request_bytes or _DEFAULT_MEMORY_BYTES

    @cached_property
    def _by_properties(self) -> _LimitProperties:
        """The properties that no setting overrides."""
        try:
            said = read_properties(self.properties) if self.properties is not None else {}
            return _LimitProperties.model_validate(self._not_set(said))
        except InvalidProperties as error:
            raise ValueError(f"properties: {error}") from error
        except ValidationError as error:
            wrong = describe_errors(error)
            raise ValueError(f"properties: {wrong}: change it, or set the option that overrides it") from None

    def _not_set(self, said: Mapping[str, str]) -> dict[str, str]:
        names = {name: str(field.alias) for name, field in _LimitProperties.model_fields.items()}
        return {
            of_kafka: said[of_kafka]
            for name, of_kafka in names.items()
            if of_kafka in said and getattr(self, name, None) is None
        }


class ControllerLimitSettings(ListenerLimitSettings):
    """The further limits of a controller's listener: its queue, and the quotas of changes."""

    queued_max_requests: _Count | None = Field(
        default=None,
        description="Maximum number of requests that wait for the controller: for brokers and for all others, "
        "separately. Default: "
        "queued.max.requests in --properties, or 500.",
    )

    controller_quota_window_num: _Count | None = Field(
        default=None,
        description="Windows whose quota of controller mutations may be used up at once. Default: "
        "controller.quota.window.num in --properties, or that of the brokers.",
    )
    controller_quota_window_size_seconds: _Count | None = Field(
        default=None,
        description="Length of one of these windows in seconds. Default: controller.quota.window.size.seconds in "
        "--properties, or that of the brokers.",
    )

    @property
    def most_queued_requests(self) -> int:
        """The number of waiting requests of each kind. See `EventQueue`."""
        return self.queued_max_requests or self._by_properties.queued_max_requests or DEFAULT_QUEUED_REQUESTS

    @property
    def quota_windows(self) -> tuple[int | None, int | None]:
        """The number of windows whose quota of mutations may be used up at once, and the seconds of each, if given."""
        said = self._by_properties
        return (
            self.controller_quota_window_num or said.controller_quota_window_num,
            self.controller_quota_window_size_seconds or said.controller_quota_window_size_seconds,
        )
