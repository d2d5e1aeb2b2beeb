"""The seed's `maybe_change_ISR` and its high watermark, decided over values."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import BrokerId
from replica_broker.replicas.isr import Lags, LeaderView, maybe_change_isr, next_high_watermark
from replica_broker.replicas.replica import NEVER_MS, Follower

LEADER, B, C, D = map(BrokerId, (1, 2, 3, 4))
NOW_MS = 100_000.0
LAGS = Lags(max_time_lag_ms=30_000)
BYTES_EACH = 100


def follower(end_offset: int, *, caught_up_ms_ago: float = 0) -> Follower:
    return Follower(end_offset=end_offset, last_caught_up_ms=NOW_MS - caught_up_ms_ago)


def view(
    followers: Mapping[BrokerId, Follower],
    *,
    isr: tuple[BrokerId, ...],
    end: int = 10,
    high_watermark: int = 0,
    epoch_start: int = 0,
) -> LeaderView:
    return LeaderView(
        leader=LEADER,
        isr=isr,
        maximal_isr=frozenset(isr),
        followers=followers,
        end_offset=end,
        high_watermark=high_watermark,
        epoch_start_offset=epoch_start,
        bytes_between=lambda start, end: max(0, end - start) * BYTES_EACH,
        now_ms=NOW_MS,
    )


def test_nothing_changes_while_all_follow() -> None:
    assert maybe_change_isr(view({B: follower(10), C: follower(9)}, isr=(LEADER, B, C)), LAGS, fetching=B) is None


def test_who_was_not_caught_up_for_longer_than_max_time_lag_leaves() -> None:
    lagging = view({B: follower(10), C: follower(9, caught_up_ms_ago=30_001)}, isr=(LEADER, B, C))
    assert maybe_change_isr(lagging, LAGS, fetching=B) == (LEADER, B)


def test_who_has_everything_stays_however_long_nothing_was_written() -> None:
    idle = view({B: follower(10, caught_up_ms_ago=10**9)}, isr=(LEADER, B))
    assert maybe_change_isr(idle, LAGS, fetching=B) is None


def test_who_has_not_fetched_since_the_leader_began_leaves_after_max_time_lag() -> None:
    silent = Follower()
    silent.begin_again(NOW_MS - 30_001, is_in_sync=True, is_new_leader=True)
    assert maybe_change_isr(view({B: silent}, isr=(LEADER, B)), LAGS, fetching=B) == (LEADER,)
    silent.begin_again(NOW_MS - 29_999, is_in_sync=True, is_new_leader=True)
    assert maybe_change_isr(view({B: silent}, isr=(LEADER, B)), LAGS, fetching=B) is None


def test_who_is_more_than_max_bytes_lag_behind_leaves_and_does_not_come_back() -> None:
    lags = replace(LAGS, max_bytes_lag=3 * BYTES_EACH)
    behind = view({B: follower(6), C: follower(7)}, isr=(LEADER, B, C))
    assert maybe_change_isr(behind, lags, fetching=B) == (LEADER, C)
    assert maybe_change_isr(view({B: follower(6), C: follower(7)}, isr=(LEADER, C)), lags, fetching=B) is None


def test_who_has_all_that_is_committed_joins() -> None:
    assert maybe_change_isr(view({B: follower(7)}, isr=(LEADER,), high_watermark=7), LAGS, fetching=B) == (LEADER, B)


def test_who_is_further_behind_the_last_of_the_isr_than_min_bytes_lag_does_not_join() -> None:
    behind = view({B: follower(7), C: follower(9)}, isr=(LEADER, C), high_watermark=5)
    assert maybe_change_isr(behind, replace(LAGS, min_bytes_lag=2 * BYTES_EACH - 1), fetching=B) is None
    assert maybe_change_isr(behind, replace(LAGS, min_bytes_lag=2 * BYTES_EACH), fetching=B) == (LEADER, C, B)


def test_who_lacks_something_committed_does_not_join_whatever_min_bytes_lag_allows() -> None:
    generous = replace(LAGS, min_bytes_lag=10**9)
    assert maybe_change_isr(view({B: follower(6)}, isr=(LEADER,), high_watermark=7), generous, fetching=B) is None


def test_who_lacks_something_from_before_this_leader_does_not_join() -> None:
    """The high watermark of a new leader may be behind records that are committed."""
    generous = replace(LAGS, min_bytes_lag=10**9)
    assert maybe_change_isr(view({B: follower(6)}, isr=(LEADER,), epoch_start=8), generous, fetching=B) is None
    assert maybe_change_isr(view({B: follower(8)}, isr=(LEADER,), epoch_start=8), generous, fetching=B) == (LEADER, B)


def test_who_does_not_fetch_does_not_join_though_it_had_everything_when_it_died() -> None:
    dead = view({B: follower(10), C: follower(10)}, isr=(LEADER, C))
    assert maybe_change_isr(dead, LAGS, fetching=C) is None
    assert maybe_change_isr(dead, LAGS, fetching=None) is None
    assert maybe_change_isr(dead, LAGS, fetching=B) == (LEADER, C, B)


def test_one_leaves_and_another_joins_in_one_change() -> None:
    both = view({B: follower(3, caught_up_ms_ago=10**6), C: follower(10)}, isr=(LEADER, B), high_watermark=3)
    assert maybe_change_isr(both, LAGS, fetching=C) == (LEADER, C)


def test_the_high_watermark_is_the_smallest_end_in_the_maximal_isr() -> None:
    now = view({B: follower(8), C: follower(5), D: follower(2, caught_up_ms_ago=10**6)}, isr=(LEADER, B))
    assert next_high_watermark(replace(now, maximal_isr=frozenset((LEADER, B, C))), LAGS, min_insync_replicas=1) == 5


def test_the_high_watermark_waits_for_who_is_about_to_join() -> None:
    chasing = view({B: follower(8)}, isr=(LEADER,))
    assert next_high_watermark(chasing, LAGS, min_insync_replicas=1) == 8
    late = view({B: follower(8, caught_up_ms_ago=30_001)}, isr=(LEADER,))
    assert next_high_watermark(late, LAGS, min_insync_replicas=1) == 10


def test_the_high_watermark_waits_until_every_member_has_fetched() -> None:
    unheard = Follower()
    unheard.begin_again(NOW_MS, is_in_sync=True, is_new_leader=True)
    assert next_high_watermark(view({B: unheard}, isr=(LEADER, B), high_watermark=4), LAGS, min_insync_replicas=1) == 4


def test_the_high_watermark_stays_while_too_few_are_in_sync() -> None:
    alone = view({B: follower(3, caught_up_ms_ago=10**6)}, isr=(LEADER,), high_watermark=3)
    assert next_high_watermark(alone, LAGS, min_insync_replicas=2) == 3
    assert next_high_watermark(alone, LAGS, min_insync_replicas=1) == 10


def test_a_follower_of_a_busy_partition_is_caught_up_by_reaching_what_was_the_end() -> None:
    busy = Follower()
    busy.record_fetch(0, leader_end=10, now_ms=1_000)
    assert busy.last_caught_up_ms == NEVER_MS
    busy.record_fetch(10, leader_end=20, now_ms=2_000)
    assert busy.last_caught_up_ms == 1_000
    busy.record_fetch(15, leader_end=30, now_ms=3_000)
    assert busy.last_caught_up_ms == 1_000
    busy.record_fetch(30, leader_end=30, now_ms=4_000)
    assert busy.last_caught_up_ms == 4_000


FOLLOWERS = st.builds(
    follower, st.integers(-1, 12), caught_up_ms_ago=st.sampled_from([0.0, 10_000.0, 30_001.0, 10.0**9])
)
VIEWS = st.builds(
    view,
    st.fixed_dictionaries({B: FOLLOWERS, C: FOLLOWERS, D: FOLLOWERS}),
    isr=st.sets(st.sampled_from([B, C, D])).map(lambda members: (LEADER, *sorted(members))),
    end=st.integers(0, 12),
    high_watermark=st.integers(0, 12),
    epoch_start=st.integers(0, 12),
)
LAGS_OF_ANY_KIND = st.builds(
    Lags,
    max_time_lag_ms=st.just(30_000),
    max_bytes_lag=st.sampled_from([None, 0, 300]),
    min_bytes_lag=st.sampled_from([None, 0, 100, 10**9]),
)


@given(VIEWS, LAGS_OF_ANY_KIND, st.sampled_from([None, B, C, D]))
def test_whoever_joins_fetches_and_has_all_that_is_committed_and_the_leader_never_leaves(
    now: LeaderView, lags: Lags, fetching: BrokerId | None
) -> None:
    changed = maybe_change_isr(now, lags, fetching=fetching)
    if changed is not None:
        assert LEADER in changed
        assert len(set(changed)) == len(changed)
        for joined in set(changed) - set(now.isr):
            assert joined == fetching
            assert now.followers[joined].end_offset >= max(now.high_watermark, now.epoch_start_offset)


@given(VIEWS, LAGS_OF_ANY_KIND, st.integers(1, 4))
def test_what_is_committed_is_in_the_whole_maximal_isr_and_never_less_than_before(
    now: LeaderView, lags: Lags, min_insync_replicas: int
) -> None:
    after = next_high_watermark(now, lags, min_insync_replicas=min_insync_replicas)
    assert after >= now.high_watermark
    if after > now.high_watermark:
        assert all(now.followers[member].end_offset >= after for member in now.maximal_isr - {LEADER})
        assert now.end_offset >= after
        assert len(now.isr) >= min_insync_replicas
