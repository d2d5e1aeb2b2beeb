"""An alarm as a line of JSON, and as an alert of the Alertmanager."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kontroller.history.alarms.records import LEADERLESS, SILENT, UNDER_MIN_ISR
from kontroller.history.watching.board import Key, Notice

ALERT_NAMES: Final = {
    LEADERLESS: "KafkaPartitionLeaderless",
    UNDER_MIN_ISR: "KafkaPartitionUnderMinIsr",
    SILENT: "KafkaControllerSilent",
}
_SEVERITIES: Final = {LEADERLESS: "critical", UNDER_MIN_ISR: "warning", SILENT: "critical"}
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_US: Final = 253_402_300_799_000_000
"""The end of the year 9999, the last time that calendars have. Records may claim later ones."""


def row(notice: Notice) -> dict[str, Any]:
    """Return the columns of the table `alarms`."""
    alarm = notice.alarm
    return {
        "cluster_id": notice.key.cluster_id,
        "topic": alarm.topic,
        "partition": alarm.partition,
        "problem": alarm.problem,
        "state": alarm.state,
        "began": rfc3339(alarm.began_us),
        "at": rfc3339(alarm.at_us),
        "cause": alarm.cause,
        "controller_epoch": alarm.position[0],
        "seq": alarm.position[1],
    }


def labels(key: Key) -> dict[str, str]:
    """Return the labels that identify an alert. Empty labels are left out, because an Alertmanager treats them as
    absent."""
    given = {
        "alertname": ALERT_NAMES[key.problem],
        "cluster": key.cluster_id,
        "topic": key.topic or "",
        "partition": "" if key.partition is None else str(key.partition),
        "problem": key.problem,
        "severity": _SEVERITIES[key.problem],
    }
    return {name: value for name, value in given.items() if value}


def annotations(key: Key, began_us: int, cause: str | None) -> dict[str, str]:
    cluster, began = key.cluster_id or "without an id yet", rfc3339(began_us)
    match key.problem:
        case "leaderless":
            summary = f"Partition {key.topic}-{key.partition} of cluster {cluster} has had no leader since {began}."
        case "under_min_isr":
            summary = (
                f"Partition {key.topic}-{key.partition} of cluster {cluster} has had fewer replicas in sync than "
                f"min.insync.replicas since {began}: producers with acks=all are refused."
            )
        case _:
            summary = (
                f"The journal of cluster {cluster} has been silent since {began}: its controller, its recorder or the "
                "connection to it has failed, and the state of the cluster is unknown."
            )
    return {"summary": summary, "began": began} | ({} if cause is None else {"cause": cause})


def rfc3339(at_us: int) -> str:
    """Return a time since 1970 in RFC 3339 format, with microseconds. Times outside the calendar become the nearest one
    in it."""
    at = _START + timedelta(microseconds=min(max(at_us, 0), _LATEST_US))
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
