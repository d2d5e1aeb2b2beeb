"""The traffic of topics or partitions, from a Prometheus that has the brokers' metrics.

Names of metrics differ between installations, so the user may give the queries. The result of a query has the label
`topic`, and optionally `partition`, and bytes per second. The server is not trusted: its answer is cut at a limit,
redirects are not followed, and compressed answers are refused, because they were not asked for and expand without a limit.
"""

import asyncio
import math
import re
import ssl
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal

import aiohttp
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError
from yarl import URL

from controller_core.model.wording import format_count, list_some
from controller_core.security.oauth.endpoints import read_at_most
from controller_core.security.token_file import TokenFile
from controller_core.security.trust import make_client_context
from controller_planner.loads import Partitions
from kontroller.planning.snapshot_file import StoredLoads

_MOST_BYTES: Final = 64 << 20
"""Enough for half a million series."""
_TIMEOUT: Final = aiohttp.ClientTimeout(total=60, connect=5)
_LARGEST: Final = 1e18
"""Bytes per second that no partition has."""
_REDIRECTS: Final = range(300, 400)
_PLAIN: Final = ("", "identity")
_NUMBER: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
_MOST_WORDS: Final = 300
_MOST_WARNINGS: Final = 5
_HINTS: Final = {
    401: "give a token with --prometheus-token-file",
    403: "give a token with --prometheus-token-file, or check its rights",
    404: "give the address under which /api/v1/query is",
}


class UnusablePrometheusError(Exception):
    """A Prometheus, or its answer, that cannot be used. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """The address of a Prometheus, and the access to it."""

    url: str
    in_query: str
    """Its result has the bytes that producers write."""
    out_query: str
    """Its result has the bytes that consumers read."""
    authorities: Path | None = None
    """PEM file of the trusted authorities; None: those of the system."""
    token_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Bytes per second."""

    of_topics: Mapping[str, float]
    of_partitions: Mapping[tuple[str, int], float]
    troubles: tuple[str, ...] = ()


class _Series(BaseModel):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(BaseModel):
    result_type: Literal["vector"] = Field(alias="resultType")
    result: list[_Series]


class _Answer(BaseModel):
    status: Literal["success"]
    data: _Vector
    warnings: list[str] = []
    """Such as a part of the servers that did not answer."""


class _Refusal(BaseModel):
    error: Annotated[str, Field(min_length=1)]


async def fill_traffic(loads: StoredLoads, prometheus: Prometheus) -> StoredLoads:
    """Return the loads with the traffic of a Prometheus at the time of the snapshot, where it was unknown.

    Raises `UnusablePrometheusError` and `UnusableToken`."""
    partitions, at_ms, troubles = loads.snapshot.partitions, loads.snapshot.taken_at_ms, list(loads.troubles)
    if np.isnan(known := partitions.in_bytes_per_second).any():
        rates = await ask_rates(prometheus, prometheus.in_query, at_ms)
        values, said = _fill("write traffic", partitions, known, rates, (partitions.size_bytes,))
        partitions = replace(partitions, in_bytes_per_second=values)
        troubles += said
    if np.isnan(known := partitions.out_bytes_per_second).any():
        rates = await ask_rates(prometheus, prometheus.out_query, at_ms)
        guides = (partitions.in_bytes_per_second, partitions.size_bytes)
        values, said = _fill("read traffic", partitions, known, rates, guides)
        partitions = replace(partitions, out_bytes_per_second=values)
        troubles += said
    return StoredLoads(snapshot=replace(loads.snapshot, partitions=partitions), troubles=tuple(troubles))


async def ask_rates(prometheus: Prometheus, query: str, at_ms: int) -> Rates:
    """Return the result of a query at a time in milliseconds since 1970. Raises `UnusablePrometheusError`, and
    `UnusableToken` for a token file that cannot be used."""
    url = parse_url(prometheus.url)
    name = str(url.with_user(None))
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if prometheus.token_file is not None:
        headers["Authorization"] = await asyncio.to_thread(TokenFile(path=prometheus.token_file).authorization)
    context = await asyncio.to_thread(make_context, prometheus.authorities) if url.scheme == "https" else True
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT, auto_decompress=False) as session,
            session.get(
                url / "api/v1/query",
                params={"query": query, "time": f"{at_ms / 1000:.3f}"},
                headers=headers,
                allow_redirects=False,
                ssl=context,
            ) as answer,
        ):
            content = await read_at_most(answer.content, _MOST_BYTES)
            status, encoding = answer.status, answer.headers.get("Content-Encoding", "")
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise UnusablePrometheusError(f"{name} cannot be asked: {str(error) or type(error).__name__}") from error
    if status in _REDIRECTS:
        raise UnusablePrometheusError(
            f"{name} answers {status} and names another address, which is not followed: give that of the Prometheus itself"
        )
    if encoding.lower() not in _PLAIN:
        raise UnusablePrometheusError(f"{name} compresses its answers: turn that off in its proxy")
    if len(content) > _MOST_BYTES:
        raise UnusablePrometheusError(
            f"{name} answers with more than {_MOST_BYTES:,} bytes: let the query sum by topic, or select one cluster"
        )
    if status != 200:
        raise UnusablePrometheusError(f"{name} answers {status}{_explain_refusal(content, status)}")
    try:
        return _read_rates(_Answer.model_validate_json(content))
    except ValidationError as error:
        raise UnusablePrometheusError(
            f"{name} does not answer with a vector of a Prometheus: check the address, and give a query whose result is"
            " an instant vector, such as sum by (topic) (rate(...[5m]))"
        ) from error
    except UnusablePrometheusError as error:
        raise UnusablePrometheusError(f"{name}, query {query}: {error}") from error


def parse_url(text: str) -> URL:
    """Return the address of a Prometheus. Raises `UnusablePrometheusError`."""
    trouble = UnusablePrometheusError("--prometheus is not an address: give one such as http://prometheus:9090")
    try:
        url = URL(text)
    except ValueError:
        raise trouble from None  # the error has the text, which may have a password
    if url.scheme not in ("http", "https") or not url.host or url.query_string or url.fragment:
        raise trouble
    return url


def _read_rates(answer: _Answer) -> Rates:
    """Return the rates of a result. Raises `UnusablePrometheusError` if it is ambiguous or has no topics."""
    of_topics, of_partitions = dict[str, float](), dict[tuple[str, int], float]()
    seen = dict[tuple[str, str | None], Mapping[str, str]]()
    unusable = 0
    for series in answer.data.result:
        topic, number = series.metric.get("topic"), series.metric.get("partition")
        if not topic:
            continue
        if number is not None and not _NUMBER.fullmatch(number):
            raise UnusablePrometheusError(f"its result has the partition {number[:40]!r}, which is no number")
        if (other := seen.setdefault((topic, number), series.metric)) is not series.metric:
            raise UnusablePrometheusError(
                f"its result has several series of {_name(topic, number)}: {_show(other)} and {_show(series.metric)}."
                " Select one cluster in the query, or sum by topic"
            )
        rate = _parse_rate(series.value[1])
        if rate is None:
            unusable += 1
        elif number is None:
            of_topics[topic] = rate
        else:
            of_partitions[topic, int(number)] = rate
    if answer.data.result and not seen:
        raise UnusablePrometheusError("no series of its result has the label topic: let the query sum by (topic)")
    if both := {topic for topic, number in seen if number is None} & {
        topic for topic, number in seen if number is not None
    }:
        raise UnusablePrometheusError(f"its result has {min(both)} with and without partition: sum by one of them")
    troubles = [f"the Prometheus warns: {warning[:_MOST_WORDS]}" for warning in answer.warnings[:_MOST_WARNINGS]]
    if unusable:
        troubles.append(f"{format_count(unusable, 'rate')} of the Prometheus not usable: not a number, or negative")
    return Rates(of_topics=of_topics, of_partitions=of_partitions, troubles=tuple(troubles))


def _fill(
    name: str,
    partitions: Partitions,
    known: NDArray[np.float64],
    rates: Rates,
    guides: tuple[NDArray[np.float64], ...],
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the known rates, and for the others those of the Prometheus.

    The rate of a topic, without what is known of it, is split among its other partitions by the first guide that is known
    for all of them, otherwise evenly."""
    topics, is_unknown = partitions.topics, np.isnan(known)
    count = np.bincount(partitions.topic, is_unknown, len(topics))
    total = np.array([rates.of_topics.get(topic, math.nan) for topic in topics], dtype=np.float64)
    total = np.maximum(total - np.bincount(partitions.topic, np.nan_to_num(known), len(topics)), 0)
    part = (1.0 / np.maximum(count, 1))[partitions.topic]
    for guide in reversed(guides):
        sums = np.bincount(partitions.topic, np.where(is_unknown, guide, 0), len(topics))  # NaN if one is unknown
        usable = (sums > 0)[partitions.topic]
        part[usable] = guide[usable] / sums[partitions.topic[usable]]
    found = total[partitions.topic] * part
    if rates.of_partitions:
        keys = zip(partitions.topic.tolist(), partitions.number.tolist(), strict=True)
        of_partitions = [rates.of_partitions.get((topics[topic], number), math.nan) for topic, number in keys]
        found = np.where(np.isnan(of_partitions), found, of_partitions)
    fills = is_unknown & ~np.isnan(found)
    return np.where(fills, found, known), (*rates.troubles, *_describe(name, partitions, rates, fills))


def _describe(name: str, partitions: Partitions, rates: Rates, fills: NDArray[np.bool_]) -> Iterator[str]:
    """Yield lines about what is not measured for each partition."""
    named = {*rates.of_topics, *(topic for topic, _ in rates.of_partitions)}
    if not named & set(partitions.topics):
        more = f", but of {list_some(sorted(named)[:3])}" if named else ""
        yield f"{name}: the result of the query has no topic of this cluster{more}"
    counts = Counter(partitions.topic[fills].tolist())
    if split := [at for at, count in counts.items() if count > 1 and partitions.topics[at] in rates.of_topics]:
        yield f"{name} known by topic for {format_count(len(split), 'topic')}, and divided among the partitions"


def _parse_rate(text: str) -> float | None:
    try:
        rate = float(text)
    except ValueError:
        return None
    return rate if 0 <= rate <= _LARGEST else None


def _name(topic: str, number: str | None) -> str:
    return f"topic {topic}" if number is None else f"partition {topic}-{number}"


def _show(labels: Mapping[str, str]) -> str:
    said = ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{{{said[:_MOST_WORDS]}}}"


def _explain_refusal(content: bytes, status: int) -> str:
    try:
        return f": {_Refusal.model_validate_json(content).error[:_MOST_WORDS]}"
    except ValidationError:
        return f": {_HINTS[status]}" if status in _HINTS else ""


def make_context(authorities: Path | None) -> ssl.SSLContext:
    """Return the context of a client that trusts the authorities of a file, by default those of the system.

    Raises `UnusablePrometheusError`."""
    try:
        return make_client_context(authorities)
    except ssl.SSLError as error:
        raise UnusablePrometheusError(f"{authorities} has no certificates in PEM: {error}") from error
    except OSError as error:
        raise UnusablePrometheusError(f"{authorities} cannot be read: {error.strerror}") from error
