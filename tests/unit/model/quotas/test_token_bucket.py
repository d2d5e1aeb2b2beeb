"""A token bucket: accepted and refused amounts, waiting times; and unusual numbers and clocks."""

from math import isfinite

from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.quotas.token_bucket import (
    LONGEST_THROTTLE_MS,
    MOST_PER_S,
    Limit,
    TokenBucket,
    charge_bucket,
    make_full_bucket,
)

FIVE = Limit(rate_per_s=5, burst=500)
"""The example of Kafka's `TokenBucket`: 5 a second, 100 windows of a second."""

RATES = st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 0.001, 1.0, 5.0, 1e6, 1e14, MOST_PER_S]) | st.floats(0, MOST_PER_S)
WINDOWS_S = st.sampled_from([1.0, 11.0, 1e12])
MUTATIONS = st.integers(0, 1_000_000)
TIMES_MS = st.floats(0, 1e15)


def limit(rate_per_s: float, windows_s: float = 11) -> Limit:
    return Limit(rate_per_s=rate_per_s, burst=rate_per_s * windows_s)


def bucket(tokens: float, at_ms: float = 0) -> TokenBucket:
    return TokenBucket(tokens=tokens, at_ms=at_ms)


def test_a_burst_brings_a_bucket_into_debt_until_it_is_filled_again() -> None:
    after = charge_bucket(make_full_bucket(FIVE, 0), 560, FIVE, is_strict=True)
    assert (after.bucket, after.is_refused, after.throttle_ms) == (bucket(-60), False, None)
    assert after.bucket.throttle_ms(FIVE) == 12_000
    assert after.bucket.fill(FIVE, 11_999).is_exhausted
    assert not after.bucket.fill(FIVE, 12_000).is_exhausted


def test_a_strict_quota_refuses_what_is_asked_of_an_exhausted_bucket_and_charges_nothing() -> None:
    charge = charge_bucket(bucket(-60), 1, FIVE, is_strict=True)
    assert (charge.bucket, charge.is_refused, charge.throttle_ms) == (bucket(-60), True, 12_000)


def test_an_empty_bucket_is_not_exhausted() -> None:
    assert not charge_bucket(bucket(0), 1, FIVE, is_strict=True).is_refused


def test_what_changes_nothing_is_refused_of_an_exhausted_bucket_as_well() -> None:
    assert charge_bucket(bucket(-1), 0, FIVE, is_strict=True).is_refused


def test_a_permissive_quota_refuses_nothing_and_makes_wait_for_all_that_is_owed() -> None:
    first = charge_bucket(make_full_bucket(FIVE, 0), 560, FIVE, is_strict=False)
    second = charge_bucket(first.bucket, 5, FIVE, is_strict=False)
    assert [(each.is_refused, each.throttle_ms) for each in (first, second)] == [(False, 12_000), (False, 13_000)]
    assert charge_bucket(make_full_bucket(FIVE, 0), 500, FIVE, is_strict=False).throttle_ms is None


def test_a_wait_is_rounded_as_java_rounds() -> None:
    thousandth = limit(1)
    waits = [bucket(-tokens).throttle_ms(thousandth) for tokens in (0.0004, 0.0005, 0.0014, 0.0015)]
    assert waits == [0, 1, 1, 2]


def test_a_bucket_holds_no_more_than_its_burst_however_long_nobody_asks() -> None:
    assert bucket(3).fill(FIVE, 1e18).tokens == 500


def test_another_rate_counts_from_when_somebody_asks_next() -> None:
    assert bucket(500).fill(limit(1, 11), 0).tokens == 11, "a lower one takes away"
    assert bucket(-10).fill(limit(10), 1000).tokens == 0, "a higher one fills faster"


def test_of_a_rate_of_nothing_one_change_fits_and_no_more() -> None:
    none = limit(0)
    first = charge_bucket(make_full_bucket(none, 0), 3, none, is_strict=True)
    assert not first.is_refused
    second = charge_bucket(first.bucket.fill(none, 1e15), 1, none, is_strict=True)
    assert (second.is_refused, second.throttle_ms) == (True, LONGEST_THROTTLE_MS)


def test_a_wait_is_never_longer_than_the_protocol_can_say() -> None:
    tiny = limit(5e-324)
    assert bucket(-1).throttle_ms(tiny) == LONGEST_THROTTLE_MS
    assert bucket(-1e9).throttle_ms(limit(0.001)) == LONGEST_THROTTLE_MS


def test_a_clock_that_runs_backwards_takes_nothing_away() -> None:
    assert bucket(7, at_ms=1000).fill(FIVE, 0).tokens == 7


def test_a_limit_that_nobody_reaches_is_none() -> None:
    assert limit(MOST_PER_S).is_none
    assert not limit(MOST_PER_S / 2).is_none


@given(
    rate=RATES,
    windows_s=WINDOWS_S,
    asked=st.lists(st.tuples(TIMES_MS, MUTATIONS), max_size=20),
    is_strict=st.booleans(),
)
def test_whatever_is_asked_when_the_numbers_stay_numbers(
    rate: float, windows_s: float, asked: list[tuple[float, int]], is_strict: bool
) -> None:
    quota = limit(rate, windows_s)
    present = make_full_bucket(quota, 0)
    for now_ms, mutations in asked:
        charge = charge_bucket(present.fill(quota, now_ms), mutations, quota, is_strict=is_strict)
        present = charge.bucket
        assert isfinite(present.tokens)
        assert present.tokens <= quota.burst
        assert 0 <= (charge.throttle_ms or 0) <= LONGEST_THROTTLE_MS
        assert not (charge.is_refused and not is_strict)


@given(rate=st.floats(1e-3, 1e6), mutations=MUTATIONS)
def test_who_has_waited_as_long_as_he_was_told_is_not_refused(rate: float, mutations: int) -> None:
    quota = limit(rate)
    owing = charge_bucket(make_full_bucket(quota, 0), mutations, quota, is_strict=True).bucket
    wait_ms = owing.throttle_ms(quota)
    if wait_ms < LONGEST_THROTTLE_MS:
        assert not charge_bucket(owing.fill(quota, wait_ms + 1), 1, quota, is_strict=True).is_refused
