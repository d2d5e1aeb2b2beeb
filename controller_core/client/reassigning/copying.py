"""The progress of a move, from the log directories of its brokers."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller_core.client.cluster import Call
from controller_core.client.log_dirs.copy_sizes import questions, take_reading
from controller_core.client.log_dirs.log_sizes import Copies, Copy
from controller_core.client.log_dirs.placing import Place
from controller_core.client.reassigning.assignments import Reassignment
from controller_core.client.reassigning.directories import read_places
from controller_core.client.reassigning.reassignments import Ongoing, list_ongoing
from controller_core.client.snapshot import read_snapshot
from controller_core.model.ids import NO_LEADER, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveProgress:
    """The progress of a move."""

    total: int
    done: int
    """Partitions that no longer move."""
    bytes_left: int | None
    """Bytes that the new replicas lack; None if a broker does not report them."""


async def progress(call: Call, plan: Reassignment) -> MoveProgress:
    """Ask the controller for the moves, and each broker that takes part for the sizes of its logs."""
    moving = await list_ongoing(call, tuple(plan.targets))
    if not moving and not plan.directories:
        return MoveProgress(total=len(plan.targets), done=len(plan.targets), bytes_left=0)
    copies = dict.fromkeys((each.topic_partition for each in plan.directories), Copy(leader=NO_LEADER, to=()))
    copies |= await _find_copies(call, moving)
    places = await read_places(call, questions(copies, plan.directories))
    found = take_reading(copies, places.answers, at_s=0.0, directories=plan.directories)
    unfinished = {
        replica.topic_partition
        for replica, directory in plan.directories.items()
        if places.find(replica, directory).place is not Place.THERE
    }
    return MoveProgress(
        total=len(plan.targets),
        done=len(plan.targets) - len(moving.keys() | unfinished),
        bytes_left=found.total_bytes if found.is_complete else None,
    )


async def _find_copies(call: Call, moving: Mapping[TopicPartition, Ongoing]) -> Copies:
    metadata = await call.metadata(*sorted({tp.topic for tp in moving}))
    leaders = {
        each.partition: each.leader for each in read_snapshot(metadata).list_partitions() if each.leader is not None
    }
    return {tp: Copy(leader=leaders.get(tp, NO_LEADER), to=each.adding) for tp, each in moving.items()}
