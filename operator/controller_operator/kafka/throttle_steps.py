"""The steps that set and remove the throttle of a move.

Every setting belongs to an object, so settings of others never change. With ZooKeeper, `/kontroller/throttles` records
the owner's wishes and its values in the configurations (`controller_core.zk.throttle_writes`). There Kontroller also
ends a throttle with the moves that it saw begin, in case no operator runs. Without ZooKeeper a ConfigMap beside the
operator has the same record (`recorded_throttles`, `clusters.throttle_record`). Both steps may be repeated, and continue
from any write at which an earlier attempt stopped.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from controller_core.model.ids import TopicPartition
from controller_core.model.throttles import Move
from controller_core.zk.compare_and_set import Contended
from controller_core.zk.session import ConnectionLost, TooLarge, TransactionFailed, ZkSession
from controller_core.zk.throttle_writes import Throttles
from controller_operator.kafka.actions import Outcome
from controller_operator.resources.conditions import Reason

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetThrottle:
    """Limits the moves of an object, or changes its limit."""

    owner: str
    moves: Mapping[TopicPartition, Move]
    bytes_per_second: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveThrottle:
    """Ends the limit of an object, if it has one."""

    owner: str


ThrottleStep = SetThrottle | RemoveThrottle


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleReply:
    """The result of a step."""

    step: ThrottleStep
    trouble: str | None = None
    """The reason why it is not done, or not known to be done; it may be repeated. None if all settings are right."""
    reason: Reason = Reason.BROKERS_UNAVAILABLE
    """The reason of the trouble. Only `TooLarge` needs a person; time may end any other."""


async def carry_out_throttle(step: ThrottleStep, session: ZkSession) -> Outcome:
    """Set or remove it. Raises `MalformedZnode` if the record is unreadable, `TooLarge`, and `ZkError`s of the
    connection."""
    try:
        match step:
            case SetThrottle():
                await Throttles(session).set(step.owner, step.moves, step.bytes_per_second)
            case RemoveThrottle():
                await Throttles(session).remove(step.owner)
    except TooLarge:
        raise
    except (Contended, TransactionFailed, ConnectionLost) as error:
        _log.warning("throttle not settled", owner=step.owner, error=str(error))
        return Outcome.LOOK_AGAIN
    return Outcome.DONE
