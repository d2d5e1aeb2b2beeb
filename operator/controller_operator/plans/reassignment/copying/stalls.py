"""Copies without progress, by the sizes of the replicas that brokers report.

A replica is idle if it has not grown for five minutes. Under a throttle brokers copy few partitions at a time, so a
replica then counts as idle only if nothing else grows that its broker copies for the move. A move falls behind if
replicas grow but the bytes left have not fallen for five minutes: producers then write as much as brokers copy.
The memory begins with this operator's first reading, so another operator needs five minutes to report the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from controller_core.client.log_dirs.copy_sizes import Reading, Replica
from controller_core.model.ids import BrokerId, TopicPartition
from controller_operator.kafka.stalls import NO_STALLS, Stalls

STALLED_AFTER_S: Final = 300.0
"""A shorter pause may be a restarting broker, or a throttle that lets one large request through now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A size of a replica, and the time since which it is the same."""

    bytes: int
    since_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The memory of earlier readings."""

    last: Reading | None = None
    sizes: Mapping[Replica, Size] = field(default_factory=dict)
    unseen: frozenset[Replica] = frozenset()
    """The replicas that two readings in a row did not find on a broker with a failed log directory."""
    gains: tuple[tuple[float, int], ...] = ()
    """The decrease of the bytes left since the first reading, over time: those of five minutes, and one before."""


NOTHING_READ: Final = History()


def remember(history: History, latest: Reading) -> History:
    """Return the history with one more reading."""
    return History(
        last=latest,
        sizes=_sizes(history.sizes, latest),
        unseen=_unseen(latest) & (_unseen(history.last) if history.last is not None else frozenset()),
        gains=_gains(history, latest),
    )


def find_stalls(history: History, *, is_limited: bool) -> Stalls:
    """Return the stalled copies as of the last reading. `is_limited`: the move has a throttle of its own."""
    if history.last is None:
        return NO_STALLS
    now_s = history.last.at_s
    known = {each: size for each, size in history.sizes.items() if history.last.copied[each] is not None}
    idle = {each for each, size in known.items() if now_s - size.since_s >= STALLED_AFTER_S}
    growing = known.keys() - idle
    # A throttled broker copies few partitions at a time, so its other replicas only wait for their turn.
    busy = {broker for _, broker in growing} if is_limited else set()
    return Stalls(
        idle=_group_by_partition(each for each in idle if each[1] not in busy),
        on_failed_directories=_group_by_partition(history.unseen),
        falls_behind=bool(growing) and _has_gained_nothing(history.gains, now_s),
    )


def _sizes(before: Mapping[Replica, Size], latest: Reading) -> dict[Replica, Size]:
    """Return the sizes. Replicas that are no longer copied are dropped; a broker without an answer keeps its sizes."""
    sizes = {}
    for replica, size in latest.copied.items():
        known = before.get(replica)
        if size is not None and (known is None or known.bytes != size):
            sizes[replica] = Size(bytes=size, since_s=latest.at_s)
        elif known is not None:
            sizes[replica] = known
    return sizes


def _unseen(reading: Reading) -> frozenset[Replica]:
    return frozenset(each for each, size in reading.copied.items() if size is None and each[1] in reading.failed)


def _gains(history: History, latest: Reading) -> tuple[tuple[float, int], ...]:
    before = history.last
    if before is None or not before.is_complete or not latest.is_complete:
        return ()
    begun = {partition for partition, _ in (*before.copied, *latest.copied)}
    both = begun & before.bytes_left.keys() & latest.bytes_left.keys()
    gain = sum(before.bytes_left[each] - latest.bytes_left[each] for each in both)
    gains = history.gains or ((before.at_s, 0),)
    gains = (*gains, (latest.at_s, gains[-1][1] + gain))
    older = [each for each in gains if latest.at_s - each[0] >= STALLED_AFTER_S]
    return (*older[-1:], *gains[len(older) :])


def _has_gained_nothing(gains: tuple[tuple[float, int], ...], now_s: float) -> bool:
    if not gains or now_s - gains[0][0] < STALLED_AFTER_S:
        return False
    return gains[-1][1] <= gains[0][1]


def _group_by_partition(replicas: Iterable[Replica]) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    found: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    for partition, broker in sorted(replicas):
        found[partition] = (*found.get(partition, ()), broker)
    return found
