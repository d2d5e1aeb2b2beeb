"""Throttles in clusters without ZooKeeper: configuration requests, repeated until all settings are right
(`marked_throttles`).

Each read waits until its broker has reached the controllers' committed offset at the beginning of the read. So a writer
sees its own write and everything before it, and of several concurrent writers the last one sees the common result.
Every request is idempotent.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

import structlog
from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.describe_configs.v4 import DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResult
from kio.schema.describe_quorum.v0 import DescribeQuorumResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse

from controller_core.client.errors import AdminError, NotAdmittedError, OutcomeUnknown, Refused, Unreachable
from controller_core.client.quorum import read_quorum
from controller_core.client.results import is_momentary
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import TopicName
from controller_core.model.throttles import Throttle
from controller_core.polling.answers import TOPIC_S_OWN, read_finalized_features
from controller_core.polling.catching_up import wait_until_caught_up
from controller_core.wire.requests.api_versions import SERVER_FEATURES
from controller_core.wire.requests.configs import (
    BROKER_DEFAULTS,
    ConfigChange,
    ConfigResource,
    ResourceType,
    make_alter_configs_request,
    make_describe_configs_request,
    make_topic_resource,
)
from controller_core.wire.requests.quorum import QUORUM_LEADER
from controller_operator.kafka.marked_throttles import (
    LISTS,
    Changes,
    Configs,
    Entry,
    ListTooLongError,
    changes_to_remove,
    changes_to_set,
    entries_in,
)
from controller_operator.kafka.requests.rights import describe_error
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle, ThrottleStep
from controller_operator.resources.conditions import Reason

MAX_ASKED: Final = 100
"""Topics of one request."""
_ROUNDS: Final = 20
"""Reads that are enough unless others change the same settings all the time."""
_log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleReply:
    """The result of a step."""

    step: ThrottleStep
    trouble: str | None = None
    """The reason why it is not done, or not known to be done; it may be repeated. None if all settings are right."""
    reason: Reason = Reason.BROKERS_UNAVAILABLE
    """The reason of the trouble. Only `TooLarge` needs a person; time may end any other."""


class _RefusedError(Exception):
    """Kafka refuses the change, or does not show the settings."""


async def ask_for_throttle(step: ThrottleStep, broker: ControllerClient, controller: ControllerClient) -> ThrottleReply:
    """Set or remove it. `broker` reads the settings, always from the same broker while that one answers.

    The plan reports an error as trouble, and the step is retried."""
    try:
        for _ in range(_ROUNDS):
            changes = _next_changes(step, await _read(step, broker))
            if not changes:
                return ThrottleReply(step=step)
            for part in _divide(changes.items()):
                await _change(dict(part), controller)
    except ListTooLongError as error:
        return ThrottleReply(step=step, trouble=str(error), reason=Reason.TOO_LARGE)
    except (_RefusedError, NotAdmittedError) as error:
        return ThrottleReply(step=step, trouble=str(error), reason=Reason.REQUEST_REFUSED)
    except AdminError as error:
        _log.warning("throttle not settled", owner=step.owner, error=f"{type(error).__name__}: {error}")
        return ThrottleReply(step=step, trouble=str(error))
    return ThrottleReply(step=step, trouble="others change the same configurations all the time")


async def ask_for_entries(broker: ControllerClient) -> tuple[Entry, ...] | None:
    """Return the owners' wishes as a broker knows them; None if it does not show them."""
    try:
        (defaults,) = await _describe([BROKER_DEFAULTS], broker)
    except AdminError as error:
        _log.info("limits not known", error=f"{type(error).__name__}: {error}")
        return None
    return entries_in(each.name for each in defaults.configs) if defaults.error_code is ErrorCode.none else None


def _next_changes(step: ThrottleStep, found: Configs) -> Changes:
    match step:
        case SetThrottle(owner=owner, moves=moves, bytes_per_second=rate):
            return changes_to_set(owner, Throttle(bytes_per_second=rate, moves=moves), found)
        case RemoveThrottle(owner=owner, partitions=partitions):
            return changes_to_remove(owner, partitions, found)


async def _read(step: ThrottleStep, broker: ControllerClient) -> Configs:
    """Return the present settings. If a broker does not answer, the next one is asked."""
    partitions = step.moves if isinstance(step, SetThrottle) else step.partitions
    topics = tuple(dict.fromkeys(each.topic for each in partitions))
    try:
        return await _read_at_one(topics, broker)
    except (OutcomeUnknown, Unreachable) as error:
        _log.info("another broker is asked", error=str(error))
        return await _read_at_one(topics, broker)


async def _read_at_one(topics: Iterable[TopicName], broker: ControllerClient) -> Configs:
    async def ask() -> FinalizedFeatures:
        return read_finalized_features(await broker.ask(SERVER_FEATURES, ApiVersionsResponse))

    # The committed offset is one past the last record that the broker must have applied.
    if await wait_until_caught_up(ask, await _read_committed(broker) - 1) is None:
        raise Unreachable("the broker that was asked lags behind the controllers")
    (defaults,) = await _describe([BROKER_DEFAULTS], broker)
    if defaults.error_code is not ErrorCode.none:
        raise _error_of(defaults, "DescribeConfigs")
    return Configs(
        defaults={each.name: each.value for each in defaults.configs},
        topics={name: lists for part in _divide(topics) for name, lists in await _lists_of(part, broker)},
    )


async def _read_committed(broker: ControllerClient) -> int:
    """Return the committed offset of the controllers."""
    try:
        return read_quorum(await broker.ask(QUORUM_LEADER, DescribeQuorumResponse)).committed
    except Refused as error:
        raise _error("the quorum of controllers", error.code, None, "Describe the cluster") from error


async def _lists_of(topics: Sequence[TopicName], broker: ControllerClient) -> list[tuple[TopicName, dict[str, str]]]:
    """Return the lists of the existing topics, as far as they are set."""
    found = []
    for each in await _describe(map(make_topic_resource, topics), broker, LISTS):
        if each.error_code is ErrorCode.none:
            own = {said.name: said.value or "" for said in each.configs if said.config_source == TOPIC_S_OWN}
            found.append((TopicName(each.resource_name), own))
        elif each.error_code is not ErrorCode.unknown_topic_or_partition:
            raise _error_of(each, "DescribeConfigs")
    return found


async def _describe(
    resources: Iterable[ConfigResource], broker: ControllerClient, settings: Collection[str] | None = None
) -> tuple[DescribeConfigsResult, ...]:
    request = make_describe_configs_request(resources, settings)
    return (await broker.ask(request, DescribeConfigsResponse)).results


async def _change(changes: Mapping[TopicName | None, Sequence[ConfigChange]], controller: ControllerClient) -> None:
    """Request the changes. A topic that no longer exists needs none."""
    request = make_alter_configs_request(
        {
            BROKER_DEFAULTS if topic is None else make_topic_resource(topic): changed
            for topic, changed in changes.items()
        }
    )
    for each in (await controller.ask(request, IncrementalAlterConfigsResponse)).responses:
        if each.error_code not in (ErrorCode.none, ErrorCode.unknown_topic_or_partition):
            raise _error_of(each, "AlterConfigs")


def _error_of(each: DescribeConfigsResult | AlterConfigsResourceResponse, right: str) -> OutcomeUnknown | _RefusedError:
    """Return the exception for the error of one resource; `right`: the right that such a request needs."""
    is_topic = int(each.resource_type) == ResourceType.TOPIC
    whose, place = (f"topic {each.resource_name}", "topic") if is_topic else ("the defaults of brokers", "cluster")
    return _error(whose, each.error_code, each.error_message, f"{right} of the {place}")


def _error(whose: str, code: ErrorCode, message: str | None, right: str) -> OutcomeUnknown | _RefusedError:
    said = f"{whose}: {describe_error(code, message, right)}"
    return OutcomeUnknown(said) if is_momentary(code) else _RefusedError(said)


def _divide(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    left = iter(items)
    while part := tuple(islice(left, MAX_ASKED)):
        yield part
