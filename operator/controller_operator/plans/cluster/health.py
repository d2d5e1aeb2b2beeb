"""The health of a Kafka cluster: its registered and missing brokers, and the condition Degraded.

A broker is missing if it is not registered although replicas are assigned to it, or if it was registered when the
status was last written. A missing broker without replicas is forgotten after a time, because a broker that was drained
and removed never comes back; if the spec says that it is to be removed, it is forgotten at once. Everything else
follows from the view, so an operator that restarts says the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controller_core.client.log_dirs.log_directories import LogDirectories
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker
from controller_core.model.settings.differences import Difference
from controller_core.model.snapshot import ControllerKind, Counts, Snapshot
from controller_core.model.wording import MOST_NAMED, format_count, list_some, name_subject
from controller_operator.plans.outcome import Notice, Said
from controller_operator.resources.cluster import BrokerDisk, BrokerState, BrokerStatus
from controller_operator.resources.conditions import Condition, ConditionStatus, ConditionType, Reason
from controller_operator.resources.schema import MAX_STATUS_ENTRIES

Directories = Mapping[BrokerId, LogDirectories]
FORGOTTEN_AFTER: Final = timedelta(minutes=10)
"""Longer than Kubernetes waits before it restarts a container that crashes again and again, which is five minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerList:
    """The brokers of a cluster."""

    rows: tuple[BrokerStatus, ...]
    """By id; if there are too many for a status, registered brokers are left out first."""
    missing: tuple[BrokerId, ...]
    next_forgotten_in_s: float | None
    """Seconds until a missing broker leaves the list; None if all stay."""


def list_brokers(
    before: Iterable[BrokerStatus], view: Snapshot, now: datetime, directories: Directories | None = None
) -> BrokerList:
    """Return the brokers that a status shows. `before` are those that it showed last.

    `directories`: the brokers' log directories; None if they were not read yet."""
    known = {row.id: row for row in before}
    registered = [
        _add_disk(_show_registered(broker, known.get(broker.id), now), known.get(broker.id), directories)
        for broker in view.brokers.values()
    ]
    gone = sorted((known.keys() | view.holders) - view.brokers.keys() - _find_phantom(view))
    rows = [_miss_broker(each, known.get(each), now) for each in gone if each not in view.to_remove - view.holders]
    left = {row.id: (row.since or now) + FORGOTTEN_AFTER - now for row in rows if row.id not in view.holders}
    missing = [row for row in rows if left.get(row.id, FORGOTTEN_AFTER) > timedelta()]
    shown = sorted([*missing, *registered][:MAX_STATUS_ENTRIES], key=lambda row: row.id)
    return BrokerList(
        rows=tuple(shown),
        missing=tuple(row.id for row in missing),
        next_forgotten_in_s=min((time.total_seconds() for time in left.values() if time > timedelta()), default=None),
    )


def _find_phantom(view: Snapshot) -> frozenset[BrokerId]:
    """Return Kontroller's id. A broker that creates `__consumer_offsets` takes it for a broker, until the controller
    replaces these replicas."""
    controller = view.controller
    if controller is None or controller.kind is not ControllerKind.KONTROLLER:
        return frozenset()
    return frozenset({controller.id})


def disk_notices(
    before: Iterable[BrokerStatus], brokers: Iterable[BrokerStatus], now: datetime, nearly_full_percent: int
) -> tuple[Notice, ...]:
    """Return the warnings about disks that were not nearly full, and directories that had not failed, before.

    Kubernetes keeps events for an hour, so trouble that returns within the hour makes no new event."""
    known = {row.id: row for row in before}
    full = [
        row
        for row in brokers
        if _is_nearly_full(row, nearly_full_percent) and not _is_nearly_full(known.get(row.id), nearly_full_percent)
    ]
    failed = [
        row
        for row in brokers
        if row.failed_log_directories and not (row.id in known and known[row.id].failed_log_directories)
    ]
    told = [
        (Reason.DISK_NEARLY_FULL, full, _full_disks),
        (Reason.LOG_DIRECTORY_FAILED, failed, _describe_failed_directories),
    ]
    return tuple(
        Notice(
            reason=reason,
            message=words(rows),
            is_warning=True,
            series=f"{list_some(row.id for row in rows)} {now:%Y-%m-%dT%H}",
        )
        for reason, rows, words in told
        if rows
    )


def judge_health(
    missing: Iterable[BrokerId], counts: Counts, brokers: Iterable[BrokerStatus], nearly_full_percent: int
) -> Said:
    """Return the condition Degraded. The first reason is the cause of the others, so it stays while the counts
    change."""
    rows = list(brokers)
    found = [
        (Reason.BROKERS_MISSING, _describe_missing_brokers(list(missing))),
        (
            Reason.LOG_DIRECTORY_FAILED,
            _describe_failed_directories([row for row in rows if row.failed_log_directories]),
        ),
        (Reason.PARTITIONS_OFFLINE, _describe_share(counts.lost_leader, counts, "without a leader")),
        (Reason.PARTITIONS_UNDER_REPLICATED, _describe_share(counts.lost_replicas, counts, "under-replicated")),
        (Reason.DISK_NEARLY_FULL, _full_disks([row for row in rows if _is_nearly_full(row, nearly_full_percent)])),
    ]
    troubles = [(reason, words) for reason, words in found if words]
    if not troubles:
        return ConditionType.DEGRADED, ConditionStatus.FALSE, Reason.HEALTHY, Reason.HEALTHY.meaning
    message = "; ".join(words for _, words in troubles)
    return ConditionType.DEGRADED, ConditionStatus.TRUE, troubles[0][0], message


def judge_settings(differences: Sequence[Difference] | None, before: Condition | None) -> tuple[Said, ...]:
    """Return the condition SettingsDiffer; the one before, or none, while nothing is known."""
    if differences is None:
        return ((before.type, before.status, before.reason, before.message),) if before is not None else ()
    if not differences:
        reason = Reason.SETTINGS_AGREE
        return ((ConditionType.SETTINGS_DIFFER, ConditionStatus.FALSE, reason, reason.meaning),)
    message = "; ".join(map(str, differences))
    return ((ConditionType.SETTINGS_DIFFER, ConditionStatus.TRUE, Reason.SETTINGS_DIFFER, message),)


def _is_nearly_full(row: BrokerStatus | None, percent: int) -> bool:
    return row is not None and row.disk is not None and row.disk.used_percent >= percent


def _show_registered(broker: Broker, before: BrokerStatus | None, now: datetime) -> BrokerStatus:
    epoch = broker.epoch if broker.epoch >= 0 else None
    is_same = before is not None and before.state is BrokerState.REGISTERED and before.epoch == epoch
    return BrokerStatus(
        id=broker.id,
        state=BrokerState.REGISTERED,
        since=_find_since(before if is_same else None, now),
        epoch=epoch,
        rack=broker.rack,
        endpoints=tuple(f"{each.security_protocol}://{each.host}:{each.port}" for each in broker.endpoints),
    )


def _miss_broker(number: BrokerId, before: BrokerStatus | None, now: datetime) -> BrokerStatus:
    is_same = before is not None and before.state is BrokerState.MISSING
    since = _find_since(before if is_same else None, now)
    return (before or BrokerStatus(id=number)).model_copy(update={"state": BrokerState.MISSING, "since": since})


def _add_disk(row: BrokerStatus, before: BrokerStatus | None, directories: Directories | None) -> BrokerStatus:
    if directories is None:
        known = before or row
        return row.model_copy(update={"disk": known.disk, "failed_log_directories": known.failed_log_directories})
    found = directories.get(row.id, LogDirectories())
    fullest = found.fullest
    disk = (
        BrokerDisk(directory=fullest.path, used_percent=fullest.used_percent, total_bytes=fullest.total_bytes)
        if fullest is not None
        else None
    )
    return row.model_copy(update={"disk": disk, "failed_log_directories": found.failed})


def _full_disks(rows: list[BrokerStatus]) -> str:
    return "; ".join(
        [
            f"broker {row.id} {'had' if row.state is BrokerState.MISSING else 'has'} used {row.disk.used_percent} % of the "
            f"disk of {row.disk.directory}"
            for row in rows[:MOST_NAMED]
            if row.disk is not None
        ]
        + _describe_more(rows)
    )


def _describe_failed_directories(rows: list[BrokerStatus]) -> str:
    return "; ".join(
        [f"broker {row.id} cannot use its log {_directories(row.failed_log_directories)}" for row in rows[:MOST_NAMED]]
        + _describe_more(rows)
    )


def _directories(paths: tuple[str, ...]) -> str:
    return f"{'directory' if len(paths) == 1 else 'directories'} {list_some(paths)}"


def _describe_more(rows: list[BrokerStatus]) -> list[str]:
    return [f"and {len(rows) - MOST_NAMED} more brokers"] if len(rows) > MOST_NAMED else []


def _find_since(same: BrokerStatus | None, now: datetime) -> datetime:
    """Return the time at which a state began. A time in the future was written by a clock that was wrong."""
    return now if same is None or same.since is None else min(same.since, now)


def _describe_missing_brokers(missing: list[BrokerId]) -> str:
    return f"{name_subject('broker', missing)} missing" if missing else ""


def _describe_share(count: int, counts: Counts, trouble: str) -> str:
    return f"{count} of {format_count(counts.partitions, 'partition')} {trouble}" if count else ""
