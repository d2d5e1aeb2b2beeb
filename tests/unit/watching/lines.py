"""Lines of journals as controllers write them, and clocks that tests move."""

from typing import Any

import orjson

START_US = 1_700_000_000_000_000


def line(seq: int, at: float, kind: str, *, cluster: str | None = "c1", epoch: int = 1, **fields: Any) -> bytes:
    named = {
        "v": 1,
        "cluster_id": cluster,
        "controller_id": 1,
        "controller_epoch": epoch,
        "seq": seq,
        "event_time_us": START_US + round(at * 1e6),
        "kind": kind,
        "cause": "broker_failed",
        "correlation_id": f"{epoch}-{seq}",
    }
    return orjson.dumps(named | fields)


def alive(seq: int, at: float, *, cluster: str = "c1", epoch: int = 1) -> bytes:
    return line(seq, at, "controller_alive", cluster=cluster, epoch=epoch)


def lead(seq: int, at: float, leader: int, *, cluster: str = "c1", epoch: int = 1, topic: str = "t") -> bytes:
    delta = {"leader": leader, "isr": [1]}
    return line(seq, at, "leadership", cluster=cluster, epoch=epoch, topic=topic, partition=0, delta=delta)


def snapshot(seq: int, at: float, *entries: dict[str, Any], cluster: str = "c1", epoch: int = 1) -> list[bytes]:
    """A whole snapshot from record `seq` on."""
    inside = [
        line(seq + 1 + number, at, "leadership", cluster=cluster, epoch=epoch, snapshot=True, **entry)
        for number, entry in enumerate(entries)
    ]
    ended = line(
        seq + 1 + len(entries), at, "snapshot_ended", cluster=cluster, epoch=epoch, entries=len(entries), checksum=0
    )
    return [line(seq, at, "snapshot_started", cluster=cluster, epoch=epoch), *inside, ended]


class Clock:
    """A clock of seconds that a test sets."""

    def __init__(self, now_s: float = START_US / 1e6) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
