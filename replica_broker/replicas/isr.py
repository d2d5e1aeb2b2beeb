"""Who is in sync, and what is committed (seed 004, G): decisions over values, nothing else.

`maybe_change_isr` is the seed's `maybe_change_ISR`, with what it leaves open said as Kafka does it:

- Out goes whoever was not caught up for MAX_TIME_LAG. The seed asks when its end moved last, but a follower that has
  everything of a partition to which nobody writes does not move either.
- Out goes whoever is more than MAX_BYTES_LAG behind; all of those at once, and not only the last.
- In comes who fetches at this moment, and no other: one that is dead may have everything, too. It is at most
MIN_BYTES_LAG behind the last of the ISR *and* has all that is committed, and all from before this leader: else the next
leader might lack a committed message.

Until it is known whether an ISR was written, nothing may be committed that only one of the two ISRs has: the high
watermark is the smallest end in the *maximal* ISR, which has the members of both (KIP-497).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from controller_core.model.ids import BrokerId
from replica_broker.replicas.replica import Follower
from replica_broker.replicas.requests import UNKNOWN_OFFSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Lags:
    """MAX_TIME_LAG, MAX_BYTES_LAG and MIN_BYTES_LAG (None: no such limit)."""

    max_time_lag_ms: int
    max_bytes_lag: int | None = None
    min_bytes_lag: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderView:
    """What a leader decides from. `followers` are those that are assigned."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]
    maximal_isr: frozenset[BrokerId]
    followers: Mapping[BrokerId, Follower]
    end_offset: int
    high_watermark: int
    epoch_start_offset: int
    """The log's end when this leader began."""
    bytes_between: Callable[[int, int], int]
    """How many bytes of the leader's log lie between two offsets."""
    now_ms: float


def maybe_change_isr(view: LeaderView, lags: Lags, *, fetching: BrokerId | None) -> tuple[BrokerId, ...] | None:
    """The ISR that should be, or None where it is well as it is. `fetching`: the follower that has just fetched, if any."""
    remaining = tuple(member for member in view.isr if member == view.leader or not _is_out(view, member, lags))
    smallest_end = min(_ends(view, remaining), default=view.end_offset)
    joining = tuple(
        broker
        for broker, follower in view.followers.items()
        if broker == fetching and broker not in view.isr and _may_join(view, follower, smallest_end, lags)
    )
    changed = remaining + joining
    return None if changed == view.isr else changed


def next_high_watermark(view: LeaderView, lags: Lags, *, min_insync_replicas: int) -> int:
    """The smallest end in the maximal ISR; the present one where that is not larger, or too few are in sync.

    Who is about to join is waited for as well, as Kafka does: else a follower of a busy partition would chase a high
    watermark that only the leader makes, and never reach it."""
    if len(view.isr) < min_insync_replicas:
        return view.high_watermark
    smallest = view.end_offset
    for broker, follower in view.followers.items():
        if broker in view.maximal_isr or not _is_behind(view, follower, lags):
            smallest = min(smallest, follower.end_offset)
    return max(view.high_watermark, smallest)


def _is_out(view: LeaderView, member: BrokerId, lags: Lags) -> bool:
    follower = view.followers.get(member)
    return follower is not None and _is_behind(view, follower, lags)  # why a member is not assigned, only others know


def _is_behind(view: LeaderView, follower: Follower, lags: Lags) -> bool:
    return _is_too_long_behind(view, follower, lags) or _is_too_far_behind(view, follower, lags)


def _is_too_long_behind(view: LeaderView, follower: Follower, lags: Lags) -> bool:
    return not follower.is_caught_up(view.end_offset, view.now_ms, lags.max_time_lag_ms)


def _is_too_far_behind(view: LeaderView, follower: Follower, lags: Lags) -> bool:
    if lags.max_bytes_lag is None or follower.end_offset == UNKNOWN_OFFSET:
        return False
    return view.bytes_between(follower.end_offset, view.end_offset) > lags.max_bytes_lag


def _may_join(view: LeaderView, follower: Follower, smallest_end: int, lags: Lags) -> bool:
    if follower.end_offset == UNKNOWN_OFFSET or follower.end_offset < max(view.high_watermark, view.epoch_start_offset):
        return False
    if _is_too_far_behind(view, follower, lags):
        return False  # it would go at once
    return lags.min_bytes_lag is None or view.bytes_between(follower.end_offset, smallest_end) <= lags.min_bytes_lag


def _ends(view: LeaderView, members: tuple[BrokerId, ...]) -> list[int]:
    known = [view.followers[member].end_offset for member in members if member in view.followers]
    return [end for end in known if end != UNKNOWN_OFFSET]
