"""The log directories of a move, if its spec names some: brokers are asked to put replicas there before the partitions
begin to move, and again for those that they have put elsewhere.

A partition is done when its replicas are in their directories. That shows only in the brokers' log directories, which
the operator reads in the background (`Context.places`). While they are not known, nothing is taken for done. All
requests are idempotent, so an operator that knows nothing of an earlier request repeats it.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from rich.filesize import decimal

from controller_core.client.log_dirs.placing import Directories, Place, Placement, Places, group_by_broker
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.model.wording import list_some, name_all
from controller_operator.kafka.requests.placements import PlaceReplicas
from controller_operator.plans.outcome import Context, Verdict
from controller_operator.plans.reassignment.copying.progress import round_bytes
from controller_operator.plans.reassignment.rows import ENDED, Rows, key, rows_before
from controller_operator.plans.reassignment.waiting import Obstacle, Obstacles
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import (
    MAX_ROW_MESSAGE,
    MovingPartition,
    PartitionReassignment,
    ReassignmentStep,
)

_RETRY_S: Final = 5.0
_NOT_BEGUN: Final = (*ENDED, ReassignmentStep.WAITING)


def refuse_directories(directories: Directories, places: Places | None) -> Verdict | None:
    """Return why replicas cannot get their directories; None if they can. Nothing begins before that is known."""
    if not directories:
        return None
    brokers = sorted(group_by_broker(directories))
    if places is None:
        message = f"the log directories of {name_all('broker', brokers)} are being read"
        return Verdict.make_working(Reason.PROGRESSING, message)
    if unknown := [broker for broker in brokers if broker not in places.answers]:
        reasons = f": {'; '.join(places.troubles)}" if places.troubles else ""
        message = f"the log directories of {name_all('broker', unknown)} are not known{reasons}"
        return Verdict.make_working(Reason.BROKERS_UNAVAILABLE, message)
    told = {
        replica: why
        for replica, directory in directories.items()
        if (why := places.explain_unusable(replica, directory)) is not None
    }
    if not told:
        return None
    message = list_some(f"{replica.topic_partition}: {why}" for replica, why in told.items())
    if any(directories[replica] not in places.answers[replica.broker].directories for replica in told):
        return Verdict.make_stalled(Reason.UNKNOWN_LOG_DIRECTORY, message)
    return Verdict.make_working(Reason.LOG_DIRECTORY_FAILED, message)


def find_misplaced(directories: Directories, places: Places | None) -> set[TopicPartition]:
    """Return the partitions with replicas that are not known to be in their directories."""
    found = {replica for replica, path in directories.items() if _place(replica, path, places).place is not Place.THERE}
    return {replica.topic_partition for replica in found}


def follow_directories(move: PartitionReassignment, rows: Rows, context: Context) -> Rows:
    """Return the rows of a move that was requested. A partition at its replicas is done only in their directories, and
    waits if its directories were not asked for yet."""
    directories = _group_by_partition(move.directories)
    if not directories:
        return rows
    before, counts = rows_before(move), move.status.counts
    are_all_asked_for = counts is not None and not counts.waiting
    asked = {replica.topic_partition for replica in _list_accepted(context)}

    def follow(row: MovingPartition) -> MovingPartition:
        was, wanted = before.get(key(row)), directories.get(key(row))
        if wanted is None or row.step.is_abandoned or (was is not None and was.step in ENDED):
            return row
        found = {replica: _place(replica, path, context.places) for replica, path in wanted.items()}
        copied = {replica: each for replica, each in found.items() if each.place is Place.COPYING}
        if row.step is ReassignmentStep.DONE and any(each.place is not Place.THERE for each in found.values()):
            is_asked = are_all_asked_for if was is None else was.step is not ReassignmentStep.WAITING
            has_begun = copied or is_asked or key(row) in asked
            step = ReassignmentStep.MOVING_LOG_DIRS if has_begun else ReassignmentStep.WAITING
            row = row.model_copy(update={"step": step})
        if not copied or row.step in _NOT_BEGUN:
            return row
        return row.model_copy(update={"message": _describe_copies(copied)[:MAX_ROW_MESSAGE]})

    return [follow(row) for row in rows]


def find_first_requests(
    move: PartitionReassignment, partitions: Collection[TopicPartition], context: Context
) -> Directories:
    """Return the directories to ask for before these partitions begin to move; empty if brokers have accepted all."""
    accepted = _list_accepted(context)
    return {
        replica: path
        for replica, path in move.directories.items()
        if replica.topic_partition in partitions and replica not in accepted
    }


def find_again(move: PartitionReassignment, rows: Rows, context: Context) -> Directories:
    """Return the directories to ask for again: those of replicas that brokers have put, or left, elsewhere."""
    if context.places is None or context.placements:
        return {}
    begun = {key(row) for row in rows if row.step not in _NOT_BEGUN}
    return {
        replica: path
        for replica, path in move.directories.items()
        if replica.topic_partition in begun and context.places.find(replica, path).place is Place.ELSEWHERE
    }


def find_refused_directories(context: Context) -> Obstacles:
    """Return the partitions whose directories brokers refused in this reconciliation, or could not be asked for."""
    found: dict[TopicPartition, Obstacle] = {}
    for reply in context.placements:
        for replica, said in reply.refused.items():
            why = f"cannot have {reply.step.directories[replica]} on broker {replica.broker}: {said}"
            found.setdefault(replica.topic_partition, Obstacle(Reason.REQUEST_REFUSED, why, _RETRY_S))
        for replica, said in reply.unasked.items():
            why = f"waits for its log directory: {said}"
            found.setdefault(replica.topic_partition, Obstacle(Reason.BROKERS_UNAVAILABLE, why, _RETRY_S))
    return found


def list_unfinished(
    move: PartitionReassignment, rows: Rows, places: Places | None
) -> dict[TopicPartition, list[BrokerId]]:
    """Return the brokers whose directories a partition waits for at last."""
    directories = _group_by_partition(move.directories)
    return {
        key(row): [
            replica.broker
            for replica, path in directories[key(row)].items()
            if _place(replica, path, places).place is not Place.THERE
        ]
        for row in rows
        if row.step is ReassignmentStep.MOVING_LOG_DIRS
    }


def find_open_directories(move: PartitionReassignment, rows: Rows) -> Directories:
    """Return the directories of the partitions that have not ended, for reading their places."""
    if not (directories := move.directories):
        return {}
    open_ = {key(row) for row in rows if row.step not in ENDED}
    return {replica: path for replica, path in directories.items() if replica.topic_partition in open_}


def _group_by_partition(directories: Directories) -> Mapping[TopicPartition, Directories]:
    found: dict[TopicPartition, dict[PartitionReplica, str]] = {}
    for replica, path in directories.items():
        found.setdefault(replica.topic_partition, {})[replica] = path
    return found


def _place(replica: PartitionReplica, path: str, places: Places | None) -> Placement:
    return (places or Places()).find(replica, path)


def _list_accepted(context: Context) -> set[PartitionReplica]:
    return {each for step in context.done if isinstance(step, PlaceReplicas) for each in step.directories}


def _describe_copies(copied: Mapping[PartitionReplica, Placement]) -> str:
    def describe() -> Iterator[str]:
        for replica, found in copied.items():
            left = decimal(round_bytes(found.bytes_left or 0)) if found.bytes_left else f"{found.offset_lag} offsets"
            yield f"to {found.directory} on broker {replica.broker}: {left} left"

    return f"is being copied {', and '.join(describe())}"
