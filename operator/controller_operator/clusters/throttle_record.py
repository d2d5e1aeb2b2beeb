"""The record of throttles in clusters without ZooKeeper, and the writes to it and to Kafka that settle a throttle.

The record is a ConfigMap beside the operator, with an entry for each Kafka cluster. Writes to it and to Kafka are
repeated until all is right (`kafka.recorded_throttles`). Each read waits until its broker has reached the controllers'
committed offset at the beginning of the read. So a writer sees its own write and everything before it. Every request is
idempotent.

A throttle is recorded after Kafka has validated its settings. So an owner whose topic refuses its throttle limits nobody.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

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
from controller_core.model.throttles import ALL_BROKERS, EntityPath, Record, Throttle, topic_entity
from controller_core.polling.answers import read_finalized_features
from controller_core.polling.catching_up import wait_until_caught_up
from controller_core.wire.requests.api_versions import SERVER_FEATURES
from controller_core.wire.requests.quorum import QUORUM_LEADER
from controller_core.zk.codecs import MalformedZnode, decode_record, encode_record
from controller_operator.kafka.recorded_throttles import end_throttle, find_next_write, list_entities, set_throttle
from controller_operator.kafka.requests.rights import describe_error
from controller_operator.kafka.throttle_steps import SetThrottle, ThrottleReply, ThrottleStep
from controller_operator.kubernetes.object_api import ApiRefused, ObjectApi, ObjectChanged, ObjectGone
from controller_operator.resources.conditions import Reason

_ROUNDS: Final = 20
"""Reads that are enough unless others change the same settings all the time."""
_log = structlog.get_logger(__name__)


class RefusedError(AdminError):
    """A change is refused, or the settings or the record are not shown. A person must change something."""


_Errors: TypeAlias = dict[EntityPath, OutcomeUnknown | RefusedError]
"""The configurations that are not shown or not changed, with the reason."""


@dataclass(frozen=True, slots=True)
class ThrottleRecord:
    """The record of one Kafka cluster. Its methods raise `RefusedError`, and `ApiError`s of the API server."""

    api: ObjectApi
    namespace: str
    name: str
    cluster_id: str
    """The name of the entry."""

    async def read(self) -> tuple[Record, str | None]:
        """Return the record, and the version of the ConfigMap; None: there is none yet."""
        try:
            found = await self.api.read_config_map(self.namespace, self.name)
        except ApiRefused as error:
            raise RefusedError(f"{self} cannot be read: {error}") from error
        if found is None:
            return Record(), None
        try:
            return decode_record(self.cluster_id, found.entries.get(self.cluster_id, "").encode()), found.version
        except MalformedZnode as error:
            raise RefusedError(f"{self} is unreadable: {error.reason}. Correct or remove this entry") from error

    async def write(self, record: Record, version: str | None) -> None:
        """Replace the known version. If the ConfigMap has another version by now, nothing is written."""
        text = encode_record(record).decode() if record != Record() else None
        try:
            await self.api.write_entry(self.namespace, self.name, self.cluster_id, text, version)
        except (ObjectChanged, ObjectGone) as error:
            _log.info("record of throttles was changed", record=str(self), error=str(error))
        except ApiRefused as error:
            raise RefusedError(f"{self} cannot be written: {error}") from error

    def __str__(self) -> str:
        return f"entry {self.cluster_id} of ConfigMap {self.namespace}/{self.name}"


OpenRecord = Callable[[str], ThrottleRecord]
"""Returns the record of the Kafka cluster with this id."""


def refuse_record(cluster_id: str) -> ThrottleRecord:
    """Open no record, for a process that only observes clusters."""
    raise RefusedError(f"no record of throttles for Kafka cluster {cluster_id}")


async def ask_for_throttle(
    step: ThrottleStep, records: ThrottleRecord, broker: ControllerClient, controller: ControllerClient
) -> ThrottleReply:
    """Set or remove it. `broker` reads the settings, always from the same broker while that one answers.

    The plan reports an error as trouble, and the step is retried. A topic of another owner that refuses a change is no
    trouble of this step."""
    errors: _Errors = {}
    try:
        before, _ = await records.read()
        for _ in range(_ROUNDS):
            known, version = await records.read()
            own = _list_own_entities(step, known)
            error = _find_error(errors, own)
            throttles = _change_throttles(step, known.throttles, None if error is None else before)
            configs = await _read(list_entities(known, throttles), broker, errors)
            write = find_next_write(known, throttles, configs, errors.keys())
            if isinstance(step, SetThrottle) and isinstance(write, Record) and error is None:
                planned = find_next_write(write, throttles, configs, errors.keys())
                await _validate(planned, own, controller, errors)
            if error is None and _find_error(errors, own) is not None:
                continue  # The next round changes what the owner may have.
            match write:
                case None if error is not None:
                    raise error
                case None:
                    return ThrottleReply(step=step)
                case Record() as record:
                    await records.write(record, version)
                case changes:
                    await _change(changes, controller, errors)
    except ListTooLongError as error:
        return ThrottleReply(step=step, trouble=str(error), reason=Reason.TOO_LARGE)
    except (RefusedError, NotAdmittedError) as error:
        return ThrottleReply(step=step, trouble=str(error), reason=Reason.REQUEST_REFUSED)
    except AdminError as error:
        _log.warning("throttle not settled", owner=step.owner, error=f"{type(error).__name__}: {error}")
        return ThrottleReply(step=step, trouble=str(error))
    return ThrottleReply(step=step, trouble="others change the same configurations all the time")


def _list_own_entities(step: ThrottleStep, known: Record) -> set[EntityPath]:
    """Return the configurations that the owner of the step depends on."""
    earlier = known.throttles.get(step.owner)
    moves = step.moves if isinstance(step, SetThrottle) else earlier.moves if earlier is not None else {}
    return {ALL_BROKERS, *(topic_entity(tp.topic) for tp in moves)}


def _find_error(errors: _Errors, own: Collection[EntityPath]) -> OutcomeUnknown | RefusedError | None:
    return next((error for entity, error in errors.items() if entity in own), None)


def _change_throttles(
    step: ThrottleStep, throttles: Mapping[str, Throttle], back_to: Record | None
) -> dict[str, Throttle]:
    """Return the throttles of all owners after the step. `back_to`: the record before it, if Kafka refuses the step."""
    match step:
        case SetThrottle(owner=owner, moves=moves, bytes_per_second=rate) if back_to is None:
            return set_throttle(throttles, owner, Throttle(bytes_per_second=rate, moves=moves))
        case SetThrottle(owner=owner) if back_to is not None and owner in back_to.throttles:
            return set_throttle(throttles, owner, back_to.throttles[owner])
        case _:
            return end_throttle(throttles, step.owner)


async def _read(entities: Sequence[EntityPath], broker: ControllerClient, errors: _Errors) -> Configs:
    """Return the present settings, and collect the errors of those that are not shown. If a broker does not answer,
    the next one is asked."""
    if not entities:
        return {}
    try:
        return await _read_at_one(entities, broker, errors)
    except (OutcomeUnknown, Unreachable) as error:
        _log.info("another broker is asked", error=str(error))
        return await _read_at_one(entities, broker, errors)


async def _read_at_one(entities: Sequence[EntityPath], broker: ControllerClient, errors: _Errors) -> Configs:
    async def ask() -> FinalizedFeatures:
        return read_finalized_features(await broker.ask(SERVER_FEATURES, ApiVersionsResponse))

    # The committed offset is one past the last record that the broker must have applied.
    if await wait_until_caught_up(ask, await _read_committed(broker) - 1) is None:
        raise Unreachable("the broker that was asked lags behind the controllers")
    refusals: dict[EntityPath, ConfigRefused] = {}
    configs = await read_throttle_configs(broker, entities, refusals=refusals)
    errors.update({entity: _make_error(each, "DescribeConfigs") for entity, each in refusals.items()})
    return configs


async def _read_committed(broker: ControllerClient) -> int:
    """Return the committed offset of the controllers."""
    try:
        return read_quorum(await broker.ask(QUORUM_LEADER, DescribeQuorumResponse)).committed
    except Refused as error:
        raise _error("the quorum of controllers", error.code, None, "Describe the cluster") from error


async def _validate(
    planned: Record | Changes | None, own: Collection[EntityPath], controller: ControllerClient, errors: _Errors
) -> None:
    """Collect the errors of an owner's planned changes before they are recorded."""
    if planned is not None and not isinstance(planned, Record):
        changes = {entity: changed for entity, changed in planned.items() if entity in own}
        await _change(changes, controller, errors, validate_only=True)


async def _change(
    changes: Changes, controller: ControllerClient, errors: _Errors, *, validate_only: bool = False
) -> None:
    """Request the changes, and collect the errors of those that are refused."""
    refusals: dict[EntityPath, ConfigRefused] = {}
    await change_throttle_configs(controller, changes, refusals=refusals, validate_only=validate_only)
    errors.update({entity: _make_error(each, "AlterConfigs") for entity, each in refusals.items()})


def _make_error(error: ConfigRefused, right: str) -> OutcomeUnknown | RefusedError:
    """Return the exception for the error of one resource; `right`: the right that such a request needs."""
    place = "cluster" if error.entity == ALL_BROKERS else "topic"
    return _error(describe_entity(error.entity), error.code, error.message, f"{right} of the {place}")


def _error(whose: str, code: ErrorCode, message: str | None, right: str) -> OutcomeUnknown | RefusedError:
    said = f"{whose}: {describe_error(code, message, right)}"
    return OutcomeUnknown(said) if is_momentary(code) else RefusedError(said)
