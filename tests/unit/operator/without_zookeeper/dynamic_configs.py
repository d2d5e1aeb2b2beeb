"""The dynamic configurations of a cluster without ZooKeeper in memory, as far as throttles need them.

As in Kafka, each resource changes as a whole or not at all, lists change by added and removed entries, and an empty
list is not the same as none.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResult
from kio.schema.describe_quorum.v0 import DescribeQuorumRequest
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse
from kio.static.primitive import i8, i32Timedelta, i64
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.reassigning.throttle_configs import Changes, Configs
from controller_core.model.throttles import ALL_BROKERS, FOLLOWER_REPLICAS, LEADER_REPLICAS, EntityPath
from controller_core.wire.requests.configs import Operation
from tests.unit.client.transport.quorums import quorum_decided

NO_TIME: Final = i32Timedelta.parse(timedelta())
_LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
Values = dict[str, str]


class DynamicConfigs:
    """The configurations that were set. A topic that is not in it does not exist."""

    def __init__(self, *topics: str, defaults: Values | None = None) -> None:
        self.defaults: Values = defaults or {}
        self.topics: dict[str, Values] = {topic: {} for topic in topics}
        self.unchangeable: frozenset[str] = frozenset()
        """The topics that take no change, because another of their settings is wrong."""

    def copy(self) -> "DynamicConfigs":
        copied = DynamicConfigs(defaults=dict(self.defaults))
        copied.topics = {topic: dict(values) for topic, values in self.topics.items()}
        copied.unchangeable = self.unchangeable
        return copied

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DynamicConfigs) and self.frozen() == other.frozen()

    def __hash__(self) -> int:
        return hash(self.frozen())

    def frozen(self) -> tuple[object, ...]:
        topics = ((topic, tuple(sorted(values.items()))) for topic, values in sorted(self.topics.items()))
        return tuple(sorted(self.defaults.items())), tuple(topics)

    def show(self, entities: Iterable[EntityPath]) -> Configs:
        """Return the configurations as a client that asks for throttles sees them."""
        names = {entity: entity.partition("/")[2] for entity in entities}
        shown = {entity: self.topics[name] for entity, name in names.items() if name in self.topics}
        return shown | ({ALL_BROKERS: self.defaults} if ALL_BROKERS in names else {})

    def change(self, changes: Changes) -> None:
        """Makes those changes that Kafka takes."""
        for entity, changed in changes.items():
            topic = None if entity == ALL_BROKERS else entity.partition("/")[2]
            if topic is None or topic in self.topics:
                self.alter(topic, [(each.name, each.operation, each.value) for each in changed])

    def alter(self, topic: str | None, changes: Iterable[tuple[str, int, str | None]]) -> str | None:
        """Change one resource. Return the reason if Kafka refuses it."""
        if topic in self.unchangeable:
            return "Invalid value 102400 for configuration segment.bytes"
        values = dict(self.defaults if topic is None else self.topics[topic])
        for name, operation, value in changes:
            items = [item for item in values.get(name, "").split(",") if item]
            parts = (value or "").split(",")
            match operation:
                case Operation.SET:
                    values[name] = value or ""
                case Operation.DELETE:
                    values.pop(name, None)
                case Operation.APPEND:
                    values[name] = ",".join(dict.fromkeys([*items, *parts]))
                case _:
                    gone = set(parts)
                    values[name] = ",".join(item for item in items if item not in gone)
            if topic is not None and "*" in values.get(name, "") and values[name] != "*":
                return f"Invalid value {values[name]}"
            if len(values.get(name, "")) > 32_767:
                return "the connection would be closed"
        if topic is None:
            self.defaults = values
        else:
            self.topics[topic] = values
        return None


class ConfiguredCluster:
    """Answers requests: writes at once, and reads as a broker that is some questions behind."""

    def __init__(self, configs: DynamicConfigs) -> None:
        self.decided = [configs]
        """All configurations that there ever were. The last one counts."""
        self.behind = 0
        """The number of changes that the broker is behind. Each question about its progress lets it catch up by one."""
        self.refuses: ErrorCode | None = None
        """The error of the answer to a client that reads a configuration."""
        self.hides: frozenset[str] = frozenset()
        """The topics that the client may not read."""
        self.refuses_writes: ErrorCode | None = None
        self.refuses_quorum: ErrorCode | None = None
        self.before_write: Callable[[], None] = lambda: None
        self.writes = 0

    @property
    def configs(self) -> DynamicConfigs:
        return self.decided[-1]

    async def answer(self, request: RequestPayload) -> ResponsePayload:
        match request:
            case DescribeQuorumRequest():
                told = quorum_decided(len(self.decided))
                return replace(told, error_code=self.refuses_quorum or ErrorCode.none)
            case ApiVersionsRequest():
                applied = len(self.decided) - 1 - self.behind
                self.behind = max(0, self.behind - 1)
                return ApiVersionsResponse(
                    error_code=ErrorCode.none, api_keys=(), throttle_time=NO_TIME, finalized_features_epoch=i64(applied)
                )
            case DescribeConfigsRequest():
                results = tuple(self._describe(each) for each in request.resources)
                return DescribeConfigsResponse(throttle_time=NO_TIME, results=results)
            case IncrementalAlterConfigsRequest():
                return self._alter(request)
            case _:
                raise AssertionError(request)

    def _describe(self, asked: Any) -> DescribeConfigsResult:
        configs = self.decided[len(self.decided) - 1 - self.behind]
        is_topic = asked.resource_type == 2
        values: Values | None = configs.topics.get(asked.resource_name) if is_topic else configs.defaults
        code = ErrorCode.unknown_topic_or_partition if values is None else self.refuses or ErrorCode.none
        if is_topic and asked.resource_name in self.hides:
            code = ErrorCode.topic_authorization_failed
        names = _LISTS if is_topic else tuple(values or ())
        return DescribeConfigsResult(
            error_code=code,
            error_message=None,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            configs=tuple(_setting(name, (values or {}).get(name), is_topic=is_topic) for name in names),
        )

    def _alter(self, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
        if not request.validate_only:
            self.before_write()
            self.writes += 1
        after = self.configs.copy()
        answers = []
        for each in request.resources:
            topic = each.resource_name if each.resource_type == 2 else None
            code, said = ErrorCode.none, None
            if topic is not None and topic not in after.topics:
                code = ErrorCode.unknown_topic_or_partition
            elif self.refuses_writes is not None:
                code = self.refuses_writes
            else:
                changes = ((one.name, int(one.config_operation), one.value) for one in each.configs)
                said = after.alter(topic, changes)
                code = ErrorCode.invalid_config if said else code
            answers.append(
                AlterConfigsResourceResponse(
                    error_code=code,
                    error_message=said,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
            )
        if not request.validate_only:
            self.decided.append(after)
        return IncrementalAlterConfigsResponse(throttle_time=NO_TIME, responses=tuple(answers))


def _setting(name: str, value: str | None, *, is_topic: bool) -> DescribeConfigsResourceResult:
    """Return the setting: Kafka shows no value of an unknown one, and the default of a known one."""
    is_known = "replication.throttled" in name
    source = 5 if value is None else 1 if is_topic else 3
    return DescribeConfigsResourceResult(
        name=name,
        value=(value or "") if is_known else None,
        read_only=False,
        config_source=i8(source),
        is_sensitive=not is_known,
        synonyms=(),
        documentation=None,
    )
