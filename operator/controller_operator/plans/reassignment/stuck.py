"""Partitions that have begun to move and make no progress: the cause for each, and the remedy.

Most causes show in the cluster; the brokers' replica sizes show the others (`copying.stalls`). No decision depends on
it: the move goes on as soon as the cause is gone, and then the message disappears.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from controller_core.model.ids import NO_LEADER, BrokerId, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import name_all
from controller_operator.kafka.stalls import Stalls
from controller_operator.plans.outcome import Notice
from controller_operator.plans.reassignment.copying.stalls import STALLED_AFTER_S
from controller_operator.plans.reassignment.rows import Rows, key
from controller_operator.plans.reassignment.waiting import Obstacle, Obstacles, describe_obstacles
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import MovingPartition, PartitionReassignment, ReassignmentStep

_SAID: Final = {
    Reason.PARTITIONS_OFFLINE: "has no leader",
    Reason.BROKERS_MISSING: "waits for its new replica on",
    Reason.LOG_DIRECTORY_FAILED: "is not copied, because of a failed log directory of",
    Reason.COPY_STALLED: "is not copied, because for",
    Reason.COPY_FALLS_BEHIND: "is copied no faster than producers write",
}
"""The first words of each cause identify it in the status. If there are several causes, the first one gives the
reason."""
_MINUTES: Final = int(STALLED_AFTER_S // 60)
Unfinished = Mapping[TopicPartition, Sequence[BrokerId]]
_NONE: Final[Unfinished] = {}


def find_stuck(
    move: PartitionReassignment, rows: Rows, view: Snapshot, stalls: Stalls, unfinished: Unfinished = _NONE
) -> Obstacles:
    """Return the partitions without progress and their causes, the worst ones first.

    `unfinished`: the brokers that copy partitions to other log directories."""
    new = {
        key(row): [broker for broker in row.target_replicas if broker not in row.isr]
        for row in rows
        if row.step is ReassignmentStep.CATCHING_UP
    } | {**unfinished}
    moving = [(row, new[key(row)]) for row in rows if key(row) in new]
    found = {key(row): cause for row, to in moving if (cause := _cause(move, row, to, view, stalls)) is not None}
    ranks = [*_SAID]
    return dict(sorted(found.items(), key=lambda each: ranks.index(each[1].reason)))


def stuck_notices(move: PartitionReassignment, stuck: Obstacles, now: datetime) -> tuple[Notice, ...]:
    """Return one event for each cause that the status does not name yet.

    Kubernetes keeps events for an hour, so a cause that returns within the hour makes no new event."""
    before = [row.message or "" for row in move.status.partitions]
    return tuple(
        Notice(
            reason=reason,
            message=describe_obstacles({tp: each for tp, each in stuck.items() if each.reason is reason}),
            is_warning=True,
            series=f"{now:%Y-%m-%dT%H}",
        )
        for reason in dict.fromkeys(each.reason for each in stuck.values())
        if not any(said.startswith(_SAID[reason]) for said in before)
    )


def _cause(
    move: PartitionReassignment, row: MovingPartition, new: Sequence[BrokerId], view: Snapshot, stalls: Stalls
) -> Obstacle | None:
    return next(_causes(move, row, new, view, stalls), None)


def _causes(
    move: PartitionReassignment, row: MovingPartition, new: Sequence[BrokerId], view: Snapshot, stalls: Stalls
) -> Iterator[Obstacle]:
    if row.leader in (None, NO_LEADER):
        yield _stuck(Reason.PARTITIONS_OFFLINE, _describe_offline(row, view))
    if missing := [broker for broker in new if broker not in view.brokers]:
        are = "is" if len(missing) == 1 else "are"
        yield _stuck(Reason.BROKERS_MISSING, f" {name_all('broker', missing)}, which {are} not registered: start it")
    if failed := [broker for broker in stalls.on_failed_directories.get(key(row), ()) if broker in new]:
        yield _stuck(
            Reason.LOG_DIRECTORY_FAILED,
            f" {name_all('broker', failed)}: look at its log, and repair or replace the disk",
        )
    if idle := [broker for broker in stalls.idle.get(key(row), ()) if broker in new]:
        logs = f"look at its log, and at that of the leader, broker {row.leader}"
        yield _stuck(
            Reason.COPY_STALLED, f" {_MINUTES} minutes nothing has arrived at {name_all('broker', idle)}: {logs}"
        )
    if stalls.falls_behind:
        throttle = move.spec.throttle
        limit = (
            f" under the limit of {throttle.bytes_per_second} bytes a second, so" if throttle is not None else ", and"
        )
        remedy = "raise throttle.bytesPerSecond" if throttle is not None else "let producers write less for a time"
        yield _stuck(Reason.COPY_FALLS_BEHIND, f"{limit} the move does not end: {remedy}")


def _stuck(reason: Reason, why: str) -> Obstacle:
    return Obstacle(reason, f"{_SAID[reason]}{why}")


def _describe_offline(row: MovingPartition, view: Snapshot) -> str:
    """Return the words about a partition without a leader. Any broker of its last ISR has all of its records."""
    last = row.isr or row.original_replicas
    which = f"{name_all('broker', last)}, which {'was' if len(last) == 1 else 'were'} in sync last"
    if not row.isr:
        which = f"one of {name_all('broker', last)}"
    if all(broker in view.brokers for broker in last):
        return f", so nothing can be copied: look at the logs of {which}: a log directory may have failed"
    one_of = "one of " if len(row.isr) > 1 else ""
    return f", so nothing can be copied: start {one_of}{which}"
