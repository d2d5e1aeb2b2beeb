"""Computes figures from the fleet's records: pure functions, without a clock or a process."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.fleet import Latencies, Look, Request

_US: int = 1_000_000


def last_news_us(requests: Iterable[Request]) -> int | None:
    """Return the time of the last request with news of a partition for a broker; None if there was none.

    Repeated requests do not count: a controller is not slower because it repeats itself.
    """
    return max((request.at_us for request in requests if request.news), default=None)


def seconds(began_us: int, requests: Iterable[Request], also_us: int = 0) -> float:
    """Return the seconds until the last news, or until another required event. Raises `ValueError` if nothing happened."""
    end_us = max(last_news_us(requests) or 0, also_us)
    if not end_us:
        raise ValueError("nothing happened that a time could end with")
    return (end_us - began_us) / _US


def milestones(began_us: int, requests: Sequence[Request]) -> dict[str, float]:
    """Return the seconds until the first news of partitions, which is time to read and decide, and until each API's
    last.
    """
    found = {"FIRST": min((request.at_us for request in requests if request.news), default=began_us)}
    for api in sorted({request.api for request in requests if request.news}):
        found[api] = max(request.at_us for request in requests if request.news and request.api == api)
    return {name: round((at_us - began_us) / _US, 4) for name, at_us in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """A controller's requests: their number and their entries of partitions, by API, and their bytes."""

    requests: Mapping[str, int]
    partitions: Mapping[str, int]
    megabytes: float


def traffic(requests: Iterable[Request]) -> Traffic:
    """Sum the requests up."""
    counted: dict[str, int] = {}
    partitions: dict[str, int] = {}
    total = 0
    for request in requests:
        counted[request.api] = counted.get(request.api, 0) + 1
        partitions[request.api] = partitions.get(request.api, 0) + request.partitions
        total += request.bytes
    return Traffic(requests=counted, partitions=partitions, megabytes=total / 1e6)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that this percentage of the values does not exceed. Raises `ValueError` without values."""
    if not values:
        raise ValueError("no values: nothing was measured")
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def latency(sample: Latencies) -> dict[str, float | int | dict[str, int]]:
    """Return the figures of one kind of probed request, in milliseconds."""
    milliseconds = [value / 1000 for value in sample.latencies_us]
    return {
        "count": len(milliseconds),
        "refusals": sample.refusals,
        "p50_ms": percentile(milliseconds, 50),
        "p99_ms": percentile(milliseconds, 99),
        "max_ms": max(milliseconds),
    }


def full_state_is_sent(look: Look, brokers: Iterable[int], partitions: int, hosted: Mapping[int, int]) -> bool:
    """Return True if every broker was sent every partition, and each of its replicas."""
    return all(
        broker in look.brokers
        and look.brokers[broker].known.partitions == partitions
        and look.brokers[broker].hosted.partitions == hosted.get(broker, 0)
        for broker in brokers
    )


def nobody_counts_on(look: Look, broker: int, live: Iterable[int]) -> bool:
    """Return True if every live broker knows that a broker leads nothing and is in no ISR."""
    return all(
        one in look.brokers
        and not look.brokers[one].known.leaders.get(broker)
        and not look.brokers[one].known.in_sync.get(broker)
        and not look.brokers[one].hosted.leaders.get(broker)
        for one in live
    )


def everybody_knows(look: Look, brokers: Iterable[int], in_sync: Mapping[int, int]) -> bool:
    """Return True if every broker knows ISRs in which each broker occurs this number of times."""
    return all(one in look.brokers and look.brokers[one].known.in_sync == in_sync for one in brokers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A Prometheus histogram: the number of observations, their sum, and cumulated counts by upper bound."""

    count: float = 0
    total: float = 0
    at_most: tuple[tuple[float, float], ...] = ()
    """Upper bounds in ascending order with cumulated counts."""


def worst(before: Distribution, after: Distribution) -> float:
    """Return the largest value observed in between: exact if there was one, otherwise an upper bound."""
    count, total = after.count - before.count, after.total - before.total
    if count <= 0:
        return 0.0
    earlier = dict(before.at_most)
    bounds = [bound for bound, up_to in after.at_most if up_to - earlier.get(bound, 0) >= count]
    return min([total, *bounds])
