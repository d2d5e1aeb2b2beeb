"""A report is served as it is at each request, and nothing else of its folder."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from controller_core.process.http import NO_LIMITS, HttpAccess
from controller_core.process.http_access.door import Door
from controller_core.security.token_file import TokenFile
from devcluster.running.ports import reserve_port
from devcluster.running.scraping import open_locally
from kontroller.history.serving.levels import LevelMetrics
from kontroller.history.serving.process import serve_report

PROJECT: Final = Path(__file__).parents[3]
PAGE: Final = b"<!doctype html><title>prod</title>"
LEVEL: Final = {
    "cluster_id": "prod",
    "window_seconds": 3600,
    "availability_at_least": 0.5,
    "availability_at_most": 1.0,
    "burn_rate_at_least": 0.0,
    "burn_rate_at_most": 500.0,
    "objective": 0.999,
}


def write_report(folder: Path, *rows: dict[str, Any]) -> None:
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_bytes(PAGE)
    (folder / "tables" / "service_levels.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def ask(
    folder: Path, *paths: str, access: HttpAccess = NO_LIMITS, headers: dict[str, str] | None = None
) -> list[tuple[int, dict[str, str], bytes]]:
    """Return the answers of a server of the folder."""

    async def run() -> list[tuple[int, dict[str, str], bytes]]:
        port = reserve_port()
        stop = await serve_report(folder, "127.0.0.1", port, access)
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session:
                return [await read(session, path) for path in paths]
        finally:
            await stop()

    async def read(session: aiohttp.ClientSession, path: str) -> tuple[int, dict[str, str], bytes]:
        async with session.get(path, allow_redirects=False) as answer:
            return answer.status, dict(answer.headers), await answer.read()

    return asyncio.run(run())


def test_the_page_and_its_tables_are_served_with_headers_that_keep_them_to_themselves(tmp_path: Path) -> None:
    write_report(tmp_path, LEVEL)
    page, table = ask(tmp_path, "/", "/tables/service_levels.json")
    assert (page[0], page[2]) == (200, PAGE)
    assert page[1]["Content-Type"] == "text/html; charset=utf-8"
    assert page[1]["X-Content-Type-Options"] == "nosniff"
    assert page[1]["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert (table[0], json.loads(table[2])) == (200, LEVEL)


def test_a_page_that_did_not_change_is_not_sent_again(tmp_path: Path) -> None:
    write_report(tmp_path)
    [(_, headers, _)] = ask(tmp_path, "/")
    assert [answer[0] for answer in ask(tmp_path, "/", headers={"If-None-Match": headers["Etag"]})] == [304]


def test_nothing_else_of_the_folder_is_served(tmp_path: Path) -> None:
    write_report(tmp_path)
    (tmp_path / "secret.json").write_text("secret")
    (tmp_path / "tables" / ".hidden.json").write_text("secret")
    paths = ("/secret.json", "/tables/..%2fsecret.json", "/tables/.hidden.json", "/tables/none.json", "/tables/")
    assert [answer[0] for answer in ask(tmp_path, *paths)] == [404] * len(paths)


def test_before_the_first_report_it_says_so(tmp_path: Path) -> None:
    page, metrics = ask(tmp_path / "none", "/", "/metrics")
    assert page[0] == 404
    assert b"no report yet" in page[2]
    assert metrics[0] == 200


@pytest.mark.parametrize(("name", "target"), [("prod", "prod"), ("a b%2Fc%0D%0Ax", "a%20b/c%0D%0Ax")])
def test_a_link_of_a_cluster_leads_to_its_row(tmp_path: Path, name: str, target: str) -> None:
    [(status, headers, _)] = ask(tmp_path, f"/clusters/{name.replace(' ', '%20')}")
    assert (status, headers["Location"]) == (302, f"/#cluster={target}")


def test_who_may_not_read_metrics_may_not_read_the_page(tmp_path: Path) -> None:
    write_report(tmp_path)
    (tmp_path / "token").write_text("a-token-that-is-long-enough-0123456789")
    access = HttpAccess(door=Door(TokenFile(path=tmp_path / "token"), option="--metrics-token-file"))
    paths = ("/", "/tables/service_levels.json", "/clusters/c", "/metrics")
    assert [answer[0] for answer in ask(tmp_path, *paths, access=access)] == [401] * 4
    shown = {"Authorization": "Bearer a-token-that-is-long-enough-0123456789"}
    assert [answer[0] for answer in ask(tmp_path, *paths, access=access, headers=shown)] == [200, 200, 302, 200]


def read_samples(folder: Path) -> dict[tuple[str, ...], float]:
    [(_, _, body)] = ask(folder, "/metrics")
    return {
        (sample.name, *(sample.labels.get(name, "") for name in ("cluster", "window", "bound"))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def test_the_service_levels_are_metrics(tmp_path: Path) -> None:
    write_report(tmp_path, LEVEL, {**LEVEL, "cluster_id": 'a"\n', "availability_at_least": None})
    found = read_samples(tmp_path)
    assert found["kontroller_history_availability_ratio", "prod", "1h", "at_least"] == 0.5
    assert found["kontroller_history_burn_rate", "prod", "1h", "at_most"] == 500
    assert found["kontroller_history_objective_ratio", "", "", ""] == 0.999
    assert ("kontroller_history_availability_ratio", 'a"\n', "1h", "at_least") not in found
    assert found["kontroller_history_report_timestamp_seconds", "", "", ""] == (tmp_path / "index.html").stat().st_mtime


@pytest.mark.parametrize("damaged", ["{", "[]\n", '{"cluster_id": 3}\n', "\xff"])
def test_a_damaged_table_has_no_metrics_and_disturbs_nothing(tmp_path: Path, damaged: str) -> None:
    write_report(tmp_path)
    (tmp_path / "tables" / "service_levels.json").write_text(damaged, encoding="latin-1")
    found = {name for name, *_ in read_samples(tmp_path)}
    refusals = {"kontroller_refused_total", "kontroller_refused_created"}
    assert found == {"kontroller_history_report_timestamp_seconds"} | refusals


def test_a_new_report_is_read_and_a_removed_one_forgotten(tmp_path: Path) -> None:
    metrics = LevelMetrics(tmp_path)

    def count() -> int:
        return sum(len(family.samples) for family in metrics.collect())

    write_report(tmp_path, LEVEL)
    first = count()
    new = tmp_path / "tables" / "new"
    new.write_text("".join(f"{json.dumps({**LEVEL, 'cluster_id': name})}\n" for name in "ab"))
    os.replace(new, tmp_path / "tables" / "service_levels.json")
    assert count() == first + 4
    (tmp_path / "tables" / "service_levels.json").unlink()
    assert count() == 1


def test_the_dashboard_shows_every_metric_and_no_other(tmp_path: Path) -> None:
    text = (PROJECT / "charts" / "kontroller" / "dashboards" / "service-levels.json").read_text()
    assert set(re.findall(r"\bkontroller_\w+", text)) == {family.name for family in LevelMetrics(tmp_path).collect()}


@contextmanager
def run_serve(*options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kontroller", "history", "serve", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    write_report(tmp_path)
    port = reserve_port()
    with run_serve(f"--report={tmp_path}", f"--metrics-port={port}") as process:
        assert process.stdout is not None
        assert "serving the report" in process.stdout.readline()
        with open_locally(f"http://127.0.0.1:{port}/") as answer:
            assert answer.read() == PAGE
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_without_a_report_the_command_says_what_to_give() -> None:
    with run_serve() as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "--report" in out
