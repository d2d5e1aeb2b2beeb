"""Throttles in clusters without ZooKeeper: writes to the record and to Kafka, repeated until all is right
(`recorded_throttles`).

Each read waits until its broker has reached the controllers' committed offset at the beginning of the read. So a writer
sees its own write and everything before it. Every request is idempotent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.describe_quorum.v0 import DescribeQuorumResponse
from kio.schema.errors import ErrorCode

from controller_core.client.errors import AdminError, NotAdmittedError, OutcomeUnknown, Refused, Unreachable
from controller_core.client.quorum import read_quorum
from controller_core.client.reassigning.throttle_configs import (
    Changes,
    ConfigRefused,
    Configs,
    ListTooLongError,
    change_throttle_configs,
    describe_entity,
    read_throttle_configs,
)
from controller_core.client.results import is_momentary
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.features import FinalizedFeatures
from controller_core.model.throttles import ALL_BROKERS, EntityPath, Record, Throttle
from controller_core.polling.answers import read_finalized_features
from controller_core.polling.catching_up import wait_until_caught_up
from controller_core.wire.requests.api_versions import SERVER_FEATURES
from controller_core.wire.requests.quorum import QUORUM_LEADER
from controller_operator.kafka.recorded_throttles import end_throttle, find_next_write, list_entities
from controller_operator.kafka.requests.rights import describe_error
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle, ThrottleStep
from controller_operator.resources.conditions import Reason

_ROUNDS: Final = 20
"""Reads that are enough unless others change the same settings all the time."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleReply:
    """The result of a step."""

    step: ThrottleStep
    trouble: str | None = None
    """The reason why it is not done, or not known to be done; it may be repeated. None if all settings are right."""
    reason: Reason = Reason.BROKERS_UNAVAILABLE
    """The reason of the trouble. Only `TooLarge` needs a person; time may end any other."""


class RefusedError(AdminError):
    """A change is refused, or the settings or the record are not shown. A person must change something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The record as read, and its version for compare-and-set."""

    record: Record
    version: str | None = None
    """None: there is no document yet."""


class ThrottleRecord(Protocol):
    """The record of the throttles of one Kafka cluster. Its methods raise `RefusedError`, and errors of its server."""

    async def read(self) -> Recorded: ...

    async def write(self, record: Record, known: Recorded) -> None:
        """Replace the known version. If the document has another version by now, nothing is written."""
        ...


async def ask_for_throttle(
    step: ThrottleStep, records: ThrottleRecord, broker: ControllerClient, controller: ControllerClient
) -> ThrottleReply:
    """Set or remove it. `broker` reads the settings, always from the same broker while that one answers.

    The plan reports an error as trouble, and the step is retried."""
    try:
        for _ in range(_ROUNDS):
            known = await records.read()
            throttles = _change_throttles(step, known.record.throttles)
            configs = await _read(list_entities(known.record, throttles), broker)
            match find_next_write(known.record, throttles, configs):
                case None:
                    return ThrottleReply(step=step)
                case Record() as record:
                    await records.write(record, known)
                case changes:
                    await _change(changes, controller)
    except ListTooLongError as error:
        return ThrottleReply(step=step, trouble=str(error), reason=Reason.TOO_LARGE)
    except (RefusedError, NotAdmittedError) as error:
        return ThrottleReply(step=step, trouble=str(error), reason=Reason.REQUEST_REFUSED)
    except AdminError as error:
        _log.warning("throttle not settled", owner=step.owner, error=f"{type(error).__name__}: {error}")
        return ThrottleReply(step=step, trouble=str(error))
    return ThrottleReply(step=step, trouble="others change the same configurations all the time")


def _change_throttles(step: ThrottleStep, throttles: Mapping[str, Throttle]) -> dict[str, Throttle]:
    """Return the throttles of all owners after the step."""
    match step:
        case SetThrottle(owner=owner, moves=moves, bytes_per_second=rate):
            return {**throttles, owner: Throttle(bytes_per_second=rate, moves=moves)}
        case RemoveThrottle(owner=owner):
            return end_throttle(throttles, owner)


async def _read(entities: Sequence[EntityPath], broker: ControllerClient) -> Configs:
    """Return the present settings. If a broker does not answer, the next one is asked."""
    if not entities:
        return {}
    try:
        return await _read_at_one(entities, broker)
    except (OutcomeUnknown, Unreachable) as error:
        _log.info("another broker is asked", error=str(error))
        return await _read_at_one(entities, broker)


async def _read_at_one(entities: Sequence[EntityPath], broker: ControllerClient) -> Configs:
    async def ask() -> FinalizedFeatures:
        return read_finalized_features(await broker.ask(SERVER_FEATURES, ApiVersionsResponse))

    # The committed offset is one past the last record that the broker must have applied.
    if await wait_until_caught_up(ask, await _read_committed(broker) - 1) is None:
        raise Unreachable("the broker that was asked lags behind the controllers")
    try:
        return await read_throttle_configs(broker, entities)
    except ConfigRefused as error:
        raise _make_error(error, "DescribeConfigs") from error


async def _read_committed(broker: ControllerClient) -> int:
    """Return the committed offset of the controllers."""
    try:
        return read_quorum(await broker.ask(QUORUM_LEADER, DescribeQuorumResponse)).committed
    except Refused as error:
        raise _error("the quorum of controllers", error.code, None, "Describe the cluster") from error


async def _change(changes: Changes, controller: ControllerClient) -> None:
    """Request the changes."""
    try:
        await change_throttle_configs(controller, changes)
    except ConfigRefused as error:
        raise _make_error(error, "AlterConfigs") from error


def _make_error(error: ConfigRefused, right: str) -> OutcomeUnknown | RefusedError:
    """Return the exception for the error of one resource; `right`: the right that such a request needs."""
    place = "cluster" if error.entity == ALL_BROKERS else "topic"
    return _error(describe_entity(error.entity), error.code, error.message, f"{right} of the {place}")


def _error(whose: str, code: ErrorCode, message: str | None, right: str) -> OutcomeUnknown | RefusedError:
    said = f"{whose}: {describe_error(code, message, right)}"
    return OutcomeUnknown(said) if is_momentary(code) else RefusedError(said)
