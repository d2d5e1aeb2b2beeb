"""The progress of a move, from the log directories of its brokers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller_core.client.cluster import Call
from controller_core.client.errors import AdminError
from controller_core.client.log_dirs.copy_sizes import questions, take_reading
from controller_core.client.log_dirs.log_sizes import Copy, LogSizes, ask_log_sizes
from controller_core.client.reassigning.assignments import Replicas
from controller_core.client.reassigning.reassignments import Ongoing, list_ongoing
from controller_core.client.snapshot import read_snapshot
from controller_core.model.ids import NO_LEADER, BrokerId, TopicPartition

_BROKER_MS: Final = 2_000
"""Time limit of one broker. A broker may hang in the middle of a move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveProgress:
    """The progress of a move."""

    total: int
    done: int
    """Partitions that no longer move."""
    bytes_left: int | None
    """Bytes that the new replicas lack; None if a broker does not report them."""


async def progress(call: Call, targets: Mapping[TopicPartition, Replicas]) -> MoveProgress:
    """Ask the controller for the moves, and each broker that takes part for the sizes of its logs."""
    moving = await list_ongoing(call, tuple(targets))
    return MoveProgress(
        total=len(targets),
        done=len(targets) - len(moving),
        bytes_left=await _ask_bytes_left(call, moving) if moving else 0,
    )


async def _ask_bytes_left(call: Call, moving: Mapping[TopicPartition, Ongoing]) -> int | None:
    metadata = await call.metadata(*sorted({tp.topic for tp in moving}))
    leaders = {
        each.partition: each.leader for each in read_snapshot(metadata).list_partitions() if each.leader is not None
    }
    copies = {tp: Copy(leader=leaders.get(tp, NO_LEADER), to=each.adding) for tp, each in moving.items()}
    asked = questions(copies)
    told = await asyncio.gather(*(_ask_sizes(call, broker, partitions) for broker, partitions in asked.items()))
    answers = {broker: found for broker, found in zip(asked, told, strict=True) if found is not None}
    found = take_reading(copies, answers, at_s=0.0)
    return found.total_bytes if found.is_complete else None


async def _ask_sizes(call: Call, broker: BrokerId, partitions: list[TopicPartition]) -> LogSizes | None:
    address = call.cluster.brokers.get(broker)
    if address is None:
        return None
    try:
        return await ask_log_sizes(
            partitions, call.cluster.client.restrict_to(address).replace_timeout(min(call.left_ms, _BROKER_MS))
        )
    except AdminError:
        return None
