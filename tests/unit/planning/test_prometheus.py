"""Traffic from a Prometheus: queries, results, what stays unknown, and servers that answer anything else."""

import asyncio
import json
import ssl
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from typer.testing import CliRunner

from controller_core.security.token_file import UnusableToken
from controller_planner.loads import LoadSnapshot
from devcluster.clusters.certificates import make_certificate
from kontroller.command_line import main
from kontroller.planning.prometheus import Prometheus, UnusablePrometheusError, fill_traffic
from kontroller.planning.snapshot_file import StoredLoads, read_snapshot, write_snapshot
from simulation.cluster.names import tp
from tests.unit.pipeline.test_journal_http import serve
from tests.unit.planning.snapshots import GIB, make_partition, make_snapshot

IN, OUT = "rate(in)", "rate(out)"
MIB = 1 << 20
Series = tuple[Mapping[str, str], object]
Results = Mapping[str, Sequence[Series]]


def make_unknown() -> LoadSnapshot:
    """Return two partitions of a topic, the second three times as large, and one of another, without rates."""
    sizes = {tp("orders", 0): GIB, tp("orders", 1): 3 * GIB, tp("logs", 0): GIB}
    return make_snapshot({at: make_partition(1, 2, size=size, rate=None) for at, size in sizes.items()})


def make_answer(series: Sequence[Series]) -> dict[str, Any]:
    result = [{"metric": dict(labels), "value": [1_700_000_000.0, str(value)]} for labels, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@contextmanager
def serve_results(results: Results, asked: list[web.Request] | None = None) -> Iterator[str]:
    """Serve the API of a Prometheus below a path, with a result for each query."""

    async def query(request: web.Request) -> web.Response:
        if asked is not None:
            asked.append(request)
        return web.json_response(make_answer(results.get(request.query["query"], ())))

    with serve(web.get("/prefix/api/v1/query", query)) as address:
        yield f"{address}/prefix"


@contextmanager
def serve_answers_of(answer: Callable[[web.Request], Any]) -> Iterator[str]:
    async def query(request: web.Request) -> web.StreamResponse:
        made: web.StreamResponse = await answer(request)
        return made

    with serve(web.get("/api/v1/query", query)) as address:
        yield address


def fill(url: str, snapshot: LoadSnapshot | None = None, **access: Any) -> StoredLoads:
    loads = StoredLoads(snapshot=make_unknown() if snapshot is None else snapshot)
    return asyncio.run(fill_traffic(loads, Prometheus(url=url, in_query=IN, out_query=OUT, **access)))


def list_rates(snapshot: LoadSnapshot, name: str) -> dict[str, float]:
    partitions = snapshot.partitions
    values = getattr(partitions, f"{name}_bytes_per_second").tolist()
    return {partitions.name(at): value for at, value in enumerate(values) if not np.isnan(value)}


def fail(url: str, **access: Any) -> str:
    with pytest.raises(UnusablePrometheusError) as raised:
        fill(url, **access)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def refuse(*series: Series) -> str:
    """Return the message about a result."""
    with serve_results({IN: series}) as url:
        return fail(url)


def test_rates_of_partitions_are_taken_and_what_the_result_lacks_stays_unknown() -> None:
    series = [({"topic": "orders", "partition": "1"}, 30), ({"topic": "elsewhere", "partition": "0"}, 5)]
    with serve_results({OUT: series}) as url:
        filled = fill(url)
    assert list_rates(filled.snapshot, "out") == {"orders-1": 30}
    assert list_rates(filled.snapshot, "in") == {}
    assert filled.troubles == ("write traffic: the result of the query has no topic of this cluster",)


def test_the_rate_of_a_topic_is_divided_among_its_partitions_and_that_is_said() -> None:
    with serve_results({IN: [({"topic": "orders", "job": "kafka"}, 400)], OUT: [({"topic": "orders"}, 80)]}) as url:
        filled = fill(url)
    assert list_rates(filled.snapshot, "in") == {"orders-0": 100, "orders-1": 300}, "as their sizes"
    assert list_rates(filled.snapshot, "out") == {"orders-0": 20, "orders-1": 60}, "as what producers write"
    assert filled.troubles == tuple(
        f"{kind} traffic known by topic for 1 topic, and divided among the partitions" for kind in ("write", "read")
    )


def test_what_is_known_of_a_topic_is_not_divided_again() -> None:
    sizes = {tp("orders", 0): 100.0, tp("orders", 1): None, tp("orders", 2): None}
    snapshot = make_snapshot({at: make_partition(1, 2, size=GIB, rate=rate) for at, rate in sizes.items()})
    with serve_results({IN: [({"topic": "orders"}, 150)]}) as url:
        filled = fill(url, snapshot).snapshot
    assert list_rates(filled, "in") == {"orders-0": 100, "orders-1": 25, "orders-2": 25}


def test_warnings_of_the_prometheus_are_passed_on() -> None:
    async def answer(_: web.Request) -> web.Response:
        said = make_answer([({"topic": "orders"}, 1)])
        return web.json_response({**said, "warnings": ["a store did not answer"]})

    with serve_answers_of(answer) as url:
        assert "the Prometheus warns: a store did not answer" in fill(url).troubles


def test_partitions_without_a_size_get_equal_parts() -> None:
    snapshot = make_snapshot(
        {tp("orders", at): make_partition(1, size=size, rate=None) for at, size in ((0, 9), (1, None))}
    )
    with serve_results({IN: [({"topic": "orders"}, 10)]}) as url:
        assert list_rates(fill(url, snapshot).snapshot, "in") == {"orders-0": 5, "orders-1": 5}


def test_known_rates_stay_and_their_query_is_not_asked() -> None:
    asked: list[web.Request] = []
    with serve_results({IN: [({"topic": "orders"}, 1)]}, asked) as url:
        filled = fill(url, make_snapshot())
    assert set(list_rates(filled.snapshot, "in").values()) == {1000}
    assert [request.query["query"] for request in asked] == [OUT]


def test_a_query_is_about_the_time_of_the_snapshot() -> None:
    asked: list[web.Request] = []
    with serve_results({}, asked) as url:
        fill(url)
    assert {request.query["time"] for request in asked} == {f"{make_unknown().taken_at_ms / 1000:.3f}"}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300", "many"])
def test_a_rate_that_is_no_number_of_bytes_stays_unknown_and_is_counted(value: str) -> None:
    with serve_results({IN: [({"topic": "orders"}, value), ({"topic": "logs"}, 7)]}) as url:
        filled = fill(url)
    assert list_rates(filled.snapshot, "in") == {"logs-0": 7}
    assert filled.troubles[0] == "1 rate of the Prometheus not usable: not a number, or negative"


def test_a_cluster_without_partitions_needs_no_query() -> None:
    snapshot = make_unknown()
    nothing = replace(
        snapshot.partitions,
        topics=(),
        **{each: getattr(snapshot.partitions, each)[:0] for each in snapshot.partitions.__slots__ if each != "topics"},
    )
    assert len(fill("http://127.0.0.1:1", replace(snapshot, partitions=nothing)).snapshot.partitions) == 0


def test_several_series_of_a_topic_are_refused_because_they_may_be_of_several_clusters() -> None:
    said = refuse(({"topic": "orders", "job": "a"}, 1), ({"topic": "orders", "job": "b"}, 2))
    assert 'several series of topic orders: {job="a", topic="orders"} and {job="b", topic="orders"}' in said
    assert said.endswith("Select one cluster in the query, or sum by topic")


def test_a_result_without_topics_or_with_an_unclear_partition_is_refused() -> None:
    assert "no series of its result has the label topic" in refuse(({"instance": "kafka-0"}, 1))
    assert "has the partition 'x', which is no number" in refuse(({"topic": "orders", "partition": "x"}, 1))
    both = refuse(({"topic": "orders"}, 1), ({"topic": "orders", "partition": "0"}, 1))
    assert "its result has orders with and without partition" in both


def test_the_prometheus_error_is_shown() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"status": "error", "error": "parse error: unexpected )"}, status=400)

    with serve_answers_of(answer) as url:
        assert fail(url) == f"{url} answers 400: parse error: unexpected )"


RECORDED = {
    each["what"]: each for each in json.loads((Path(__file__).parent / "files/prometheus_answers.json").read_text())
}
"""Answers of Prometheus 2.42 to queries about a JMX exporter's counters. Of the matrix, two values of each series are
kept."""


@contextmanager
def serve_recorded(what: str) -> Iterator[str]:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(RECORDED[what]["body"], status=RECORDED[what]["status"])

    with serve_answers_of(answer) as url:
        yield url


@pytest.mark.parametrize("what", ["by topic", "of instances"])
def test_recorded_answers_of_a_prometheus_give_rates(what: str) -> None:
    with serve_recorded(what) as url:
        rates = list_rates(fill(url).snapshot, "in")
    assert rates == pytest.approx({"logs-0": 65.175, "orders-0": 6_517.46, "orders-1": 19_552.37}, rel=1e-4)


@pytest.mark.parametrize("what", ["nothing", "not a number"])
def test_recorded_answers_without_a_rate_leave_it_unknown(what: str) -> None:
    with serve_recorded(what) as url:
        assert list_rates(fill(url).snapshot, "in") == {}


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("without topic", "no series of its result has the label topic"),
        ("matrix", "give a query whose result is an instant vector"),
        ("scalar", "give a query whose result is an instant vector"),
        ("string", "give a query whose result is an instant vector"),
        ("bad query", 'answers 400: invalid parameter "query": 1:22: parse error: unclosed left parenthesis'),
    ],
)
def test_recorded_answers_to_unusable_queries_say_what_to_change(what: str, said: str) -> None:
    with serve_recorded(what) as url:
        assert said in fail(url)


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("", 401, "answers 401: give a token with --prometheus-token-file"),
        ("<html>", 404, "answers 404: give the address under which /api/v1/query is"),
        ("<html>", 200, "does not answer with a vector of a Prometheus"),
        (json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}}), 200, "an instant vector"),
        ("[" * 100_000, 200, "does not answer with a vector of a Prometheus"),
        ("", 500, "answers 500"),
    ],
)
def test_another_answer_says_what_to_change(text: str, status: int, said: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text, status=status)

    with serve_answers_of(answer) as url:
        assert said in fail(url)


def test_redirects_are_not_followed_and_compressed_answers_are_refused() -> None:
    asked: list[str] = []

    async def redirect(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async def compress(_: web.Request) -> web.Response:
        return web.Response(body=b"x", headers={"Content-Encoding": "gzip"})

    with serve_answers_of(redirect) as url:
        assert "names another address, which is not followed" in fail(url)
    assert asked == ["/api/v1/query"]
    with serve_answers_of(compress) as url:
        assert "compresses its answers" in fail(url)


def test_an_endless_answer_is_given_up_at_its_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kontroller.planning.prometheus._MOST_BYTES", MIB)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * MIB)

    tracemalloc.start()
    try:
        with serve_answers_of(answer) as url:
            assert "answers with more than 1,048,576 bytes: let the query sum by topic" in fail(url)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16 * MIB


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    said = fail("http://user:secret@127.0.0.1:1")
    assert said.startswith("http://127.0.0.1:1 cannot be asked: ")
    assert "secret" not in said


def test_a_token_and_certificates_are_used(tmp_path: Path) -> None:
    files = make_certificate(tmp_path, "localhost", "IP:127.0.0.1")
    token = tmp_path / "token"
    token.write_text("a-token-of-twenty-bytes\n")
    shown: list[str] = []

    async def query(request: web.Request) -> web.Response:
        shown.append(request.headers["Authorization"])
        return web.json_response(make_answer([({"topic": "logs"}, 1)]))

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    with serve(web.get("/api/v1/query", query), tls=context) as url:
        assert list_rates(fill(url, authorities=files.certificate, token_file=token).snapshot, "in") == {"logs-0": 1}
        assert "certificate verify failed" in fail(url, token_file=token)
    assert set(shown) == {"Bearer a-token-of-twenty-bytes"}
    assert "has no certificates in PEM" in fail("https://127.0.0.1:1", authorities=token)
    assert "cannot be read" in fail("https://127.0.0.1:1", authorities=tmp_path / "none")
    token.write_text("")
    with pytest.raises(UnusableToken):
        fill("http://127.0.0.1:1", token_file=token)


def run(file: Path, *arguments: str, code: int = 0) -> Any:
    ended = CliRunner().invoke(main, ["plan", "leaders-only", "--snapshot", str(file), *arguments])
    assert ended.exit_code == code, ended.output
    return ended


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "loads.parquet"
    write_snapshot(path, StoredLoads(snapshot=make_unknown()))
    return path


def test_the_command_plans_with_traffic_that_the_prometheus_knows(file: Path) -> None:
    with serve_results({OUT: [({"topic": "orders"}, 80), ({"topic": "logs"}, 8)], IN: [({"topic": "logs"}, 1)]}) as url:
        queries = ["--bytes-in-query", IN, "--bytes-out-query", OUT]
        text = run(file, "--prometheus", url, *queries).stdout
    assert "read traffic known by topic for 1 topic, and divided among the partitions" in text
    assert "write traffic unknown for 2 of 3 partitions" in text
    assert not any(line.strip().startswith("read traffic unknown") for line in text.splitlines())
    assert list_rates(read_snapshot(file).snapshot, "out") == {}, "the file stays as it was"


def test_the_default_queries_are_those_of_the_jmx_exporter_and_tell_clusters_apart(file: Path) -> None:
    asked: list[web.Request] = []
    with serve_results({}, asked) as url:
        run(file, "--prometheus", url)
    assert [request.query["query"] for request in asked] == [
        f'sum by (job, namespace, topic) (rate(kafka_server_brokertopicmetrics_{name}_total{{topic!=""}}[5m]))'
        for name in ("bytesin", "bytesout")
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--prometheus", "prometheus:9090"], 2, "--prometheus is not an address: give one such as"),
        (["--prometheus", "http://user:hidden@prometheus:9090/?x=1"], 2, "--prometheus is not an address"),
        (["--prometheus", "http://127.0.0.1:1"], 1, "http://127.0.0.1:1 cannot be asked"),
        (["--prometheus-ca", "x"], 2, "--prometheus-ca and --prometheus-token-file are for --prometheus"),
        (["--prometheus", "http://127.0.0.1:1", "--prometheus-token-file", "/none"], 2, "/none cannot be read"),
    ],
)
def test_a_wrong_command_is_refused_in_one_line(file: Path, arguments: list[str], code: int, said: str) -> None:
    ended = run(file, *arguments, code=code)
    assert said in ended.stderr
    assert "hidden" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
