"""The requests of a fleet as seconds: a measurement ends with the last request that had news for a broker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.evaluation import Distribution, last_news_us, latency, milestones, percentile, seconds, traffic, worst
from bench.fleet import Latencies, Request


def request(at_us: int, *, news: int, api: str = "UPDATE_METADATA") -> Request:
    return Request(
        at_us=at_us, broker=1, api=api, bytes=1_000, controller_id=1000, controller_epoch=8, partitions=10, news=news
    )


def test_a_measurement_ends_with_the_last_request_that_had_anything_new() -> None:
    requests = [request(3_000_000, news=1), request(2_000_000, news=5), request(9_000_000, news=0)]
    assert last_news_us(requests) == 3_000_000
    assert seconds(1_000_000, requests) == 2.0


def test_a_measurement_ends_later_where_something_else_must_happen_as_well() -> None:
    assert seconds(1_000_000, [request(2_000_000, news=1)], 4_500_000) == 3.5


def test_where_nothing_happened_there_is_no_time() -> None:
    with pytest.raises(ValueError, match="nothing happened"):
        seconds(1_000_000, [request(2_000_000, news=0)])


def test_milestones_say_when_the_first_news_came_and_the_last_of_each_api() -> None:
    requests = [
        request(1_500_000, news=0),
        request(2_000_000, news=1),
        request(3_000_000, news=2, api="LEADER_AND_ISR"),
        request(4_000_000, news=2),
    ]
    assert milestones(1_000_000, requests) == {"FIRST": 1.0, "LEADER_AND_ISR": 2.0, "UPDATE_METADATA": 3.0}


def test_traffic_is_counted_by_api_whether_it_was_news_or_not() -> None:
    found = traffic([request(1, news=0), request(2, news=3), request(3, news=0, api="LEADER_AND_ISR")])
    assert found.requests == {"UPDATE_METADATA": 2, "LEADER_AND_ISR": 1}
    assert found.partitions == {"UPDATE_METADATA": 20, "LEADER_AND_ISR": 10}
    assert found.megabytes == pytest.approx(0.003)


def test_the_percentiles_of_a_hundred_values_are_the_values() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [percentile(values, percent) for percent in (1, 50, 99, 100)] == [1, 50, 99, 100]


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(0, 100))
def test_at_least_so_many_percent_are_not_above_a_percentile(values: list[float], percent: int) -> None:
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)


def test_latencies_are_given_in_milliseconds_with_the_worst_of_them() -> None:
    found = latency(Latencies(latencies_us=(1_000, 2_000, 250_000), refusals={"NOT_CONTROLLER": 4}))
    assert found == {"count": 3, "refusals": {"NOT_CONTROLLER": 4}, "p50_ms": 2.0, "p99_ms": 250.0, "max_ms": 250.0}


def test_the_worst_of_one_value_between_two_histograms_is_that_value() -> None:
    before = Distribution(count=2, total=3.0, at_most=((1.0, 1), (5.0, 2)))
    after = Distribution(count=3, total=3.4, at_most=((1.0, 2), (5.0, 3)))
    assert worst(before, after) == pytest.approx(0.4)


def test_the_worst_of_many_is_at_most_the_bound_that_all_of_them_are_below() -> None:
    before = Distribution(count=1, total=9.0, at_most=((1.0, 0), (5.0, 0), (10.0, 1)))
    after = Distribution(count=4, total=21.0, at_most=((1.0, 1), (5.0, 3), (10.0, 4)))
    assert worst(before, after) == 5.0
    assert worst(after, after) == 0.0
