"""How a plan limits what a move may take of the brokers, and how the limit ends.

What is set belongs to the object, so that nobody else's is changed. With ZooKeeper `/kontroller/throttles` says what it
wants, and which values of the configurations are its own (`controller_core.zk.throttle_writes`); there Kontroller also ends
it with the moves that it saw begin, where no operator is there to do so. Without, the configurations say it themselves
(`marked_throttles`, `requests.throttles`). Both steps may be repeated, and go on from any write at which the one before
them stopped.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import structlog

from controller_core.model.ids import TopicPartition
from controller_core.model.throttles import Move
from controller_core.zk.compare_and_set import Contended
from controller_core.zk.session import ConnectionLost, TooLarge, TransactionFailed, ZkSession
from controller_core.zk.throttle_writes import remove_throttle, set_throttle
from controller_operator.kafka.actions import Outcome

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetThrottle:
    """Limits the moves of an object, from now on or with another limit than before."""

    owner: str
    moves: Mapping[TopicPartition, Move]
    bytes_per_second: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveThrottle:
    """Ends the limit of an object; nothing where it has none."""

    owner: str
    partitions: Collection[TopicPartition]
    """All that the object may ever have moved."""


ThrottleStep = SetThrottle | RemoveThrottle


async def carry_out_throttle(step: ThrottleStep, session: ZkSession) -> Outcome:
    """Sets or removes it. Raises `MalformedZnode` where what was set cannot be read, `TooLarge`, and the `ZkError`s that
    are no answer to the step itself."""
    try:
        match step:
            case SetThrottle():
                await set_throttle(session, step.owner, step.moves, step.bytes_per_second)
            case RemoveThrottle():
                await remove_throttle(session, step.owner)
    except TooLarge:
        raise
    except (Contended, TransactionFailed, ConnectionLost) as error:
        _log.warning("throttle not settled", owner=step.owner, error=str(error))
        return Outcome.LOOK_AGAIN
    return Outcome.DONE
