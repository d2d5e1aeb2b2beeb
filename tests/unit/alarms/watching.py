"""A watch of one cluster, and records for it: times are in seconds since the first record's clock was right."""

from collections.abc import Iterable
from typing import Any

from kontroller.history.alarms.records import Alarm, Rules, Seen
from kontroller.history.alarms.watch import Course, Watch

START_US = 1_700_000_000_000_000
RULES = Rules(leaderless_after_us=30_000_000, under_min_isr_after_us=20_000_000, min_isr=1)
"""The controller writes every 10 s; nothing for 30 s is silence."""


def new_watch(rules: Rules = RULES) -> Watch:
    return Watch(rules=rules, course=Course(), topics={}, troubles={})


def record(seq: int, at: float, kind: str, *, epoch: int = 1, **fields: Any) -> Seen:
    return Seen(controller_epoch=epoch, seq=seq, at_us=START_US + round(at * 1e6), kind=kind, **fields)


def alive(seq: int, at: float, *, epoch: int = 1) -> Seen:
    return record(seq, at, "controller_alive", epoch=epoch)


def lead(seq: int, at: float, leader: int, in_sync: int = 1, *, partition: int = 0, epoch: int = 1) -> Seen:
    return record(
        seq,
        at,
        "leadership",
        epoch=epoch,
        cause="broker_failed",
        topic="t",
        partition=partition,
        leader=leader,
        in_sync=in_sync,
    )


def make_assignment(seq: int, at: float, replicas: int, *, partition: int = 0) -> Seen:
    return record(seq, at, "assignment", topic="t", partition=partition, assigned=replicas)


def make_min_isr(seq: int, at: float, min_isr: int) -> Seen:
    return record(seq, at, "topic_config", topic="t", min_isr=min_isr)


def words(alarms: Iterable[Alarm]) -> list[str]:
    """Alarms in a few words, such as `leaderless raised`."""
    return [f"{alarm.problem} {alarm.state}" for alarm in alarms]


def see_all(watch: Watch, *records: Seen) -> list[str]:
    return words(alarm for one in records for alarm in watch.see(one))


def wait_seconds(watch: Watch, seconds: float) -> list[str]:
    return words(watch.wait(round(seconds * 1e6)))
