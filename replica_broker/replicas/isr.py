"""Decisions about the ISR and the high watermark, as pure functions (seed 004, G).

`maybe_change_isr` is the seed's `maybe_change_ISR` with Kafka's rules for what the seed leaves open:

- A follower leaves if it was not caught up for MAX_TIME_LAG. (The end of an idle partition does not move, so the seed's
last move is no criterion.) All followers more than MAX_BYTES_LAG behind leave at once.
- Only the follower that is fetching may join, because others may be dead. It is at most MIN_BYTES_LAG behind the last
of the ISR, *and* has all committed messages and all from before this leader, so that no future leader lacks one.

While an ISR write is uncertain, the members of both ISRs count, the *maximal* ISR (KIP-497).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from controller_core.model.ids import BrokerId
from replica_broker.replicas.replica import Follower
from replica_broker.replicas.requests import UNKNOWN_OFFSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Lags:
    """MAX_TIME_LAG, MAX_BYTES_LAG and MIN_BYTES_LAG. None means no limit."""

    max_time_lag_ms: int
    max_bytes_lag: int | None = None
    min_bytes_lag: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderView:
    """The leader's basis for a decision. `followers` are the assigned ones."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]
    maximal_isr: frozenset[BrokerId]
    followers: Mapping[BrokerId, Follower]
    end_offset: int
    high_watermark: int
    epoch_start_offset: int
    """The log's end at the start of this leader epoch."""
    bytes_between: Callable[[int, int], int]
    """Returns the bytes of the leader's log between two offsets."""
    now_ms: float


def maybe_change_isr(view: LeaderView, lags: Lags, *, fetching: BrokerId | None) -> tuple[BrokerId, ...] | None:
    """Return the ISR that should replace the current one, or None. `fetching` is the follower that has just fetched."""
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
    """Return the smallest end in the maximal ISR, but at least the current high watermark.

    It does not move if the ISR is smaller than `min_insync_replicas`. Like in Kafka, a follower that is about to join
    counts, too. Otherwise a follower of a busy partition would never catch up with a high watermark that only the
    leader moves.
    """
    if len(view.isr) < min_insync_replicas:
        return view.high_watermark
    smallest = view.end_offset
    for broker, follower in view.followers.items():
        if broker in view.maximal_isr or not _is_behind(view, follower, lags):
            smallest = min(smallest, follower.end_offset)
    return max(view.high_watermark, smallest)


def _is_out(view: LeaderView, member: BrokerId, lags: Lags) -> bool:
    follower = view.followers.get(member)
    return follower is not None and _is_behind(
        view, follower, lags
    )  # the leader does not know why this member is not assigned


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
        return False  # it would be removed at once
    return lags.min_bytes_lag is None or view.bytes_between(follower.end_offset, smallest_end) <= lags.min_bytes_lag


def _ends(view: LeaderView, members: tuple[BrokerId, ...]) -> list[int]:
    known = [view.followers[member].end_offset for member in members if member in view.followers]
    return [end for end in known if end != UNKNOWN_OFFSET]
