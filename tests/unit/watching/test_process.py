"""The command as it is started: it follows a journal, tells everybody, and ends when it is asked to."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner

from devcluster.running.ports import reserve_port
from devcluster.running.scraping import open_locally
from kontroller.command_line import main
from tests.unit.watching.alertmanagers import StrictAlertmanager
from tests.unit.watching.lines import alive, lead

SEGMENT = "0000000001-000000000000000.jsonl"
QUICK = (
    "--journal-alive-interval-seconds=0.5",
    "--silent-after-seconds=1",
    "--leaderless-after-seconds=0.5",
    "--poll-interval-seconds=0.05",
)


@contextmanager
def run_watch(*options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kontroller", "history", "watch", *QUICK, *options]
    env = {**os.environ, "COLUMNS": "500"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def end(process: subprocess.Popen[str]) -> tuple[str, str]:
    process.send_signal(signal.SIGTERM)
    out, log = process.communicate(timeout=30)
    assert process.returncode == 0, log
    return out, log


def answer(url: str) -> str:
    try:
        with open_locally(url, timeout_s=5) as got:
            return str(got.read().decode())
    except (urllib.error.URLError, ConnectionError):
        return ""


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    folder = tmp_path / "journal"
    folder.mkdir()
    (folder / SEGMENT).write_bytes(b"\n".join([alive(0, 0), lead(1, 0.1, -1)]) + b"\n")
    return folder


def write(journal: Path, record: bytes) -> None:
    with (journal / SEGMENT).open("ab") as file:
        file.write(record + b"\n")


async def keep_alive(journal: Path, first_seq: int, at: float) -> None:
    """Writes records from now on, so that the cluster does not fall silent while a test waits for something else."""
    for seq in count(first_seq):
        write(journal, alive(seq, at))
        await asyncio.sleep(0.05)


async def test_it_tells_everybody_and_ends_in_order(journal: Path, tmp_path: Path) -> None:
    """An Alertmanager, a file, and Prometheus; a second Alertmanager, and two journals, are not there at all."""
    server, port = StrictAlertmanager(), reserve_port()
    await server.start()
    alarms, kept = tmp_path / "alarms.jsonl", tmp_path / "watch.json"
    options = (
        f"--journal={journal}",
        f"--journal={tmp_path}/not-there",
        "--journal=http://127.0.0.1:1/journal",
        f"--alertmanager={server.url}",
        "--alertmanager=http://127.0.0.1:1",
        f"--output={alarms}",
        f"--checkpoint={kept}",
        f"--metrics-port={port}",
    )

    def list_told() -> list[tuple[str, str]]:
        rows = [json.loads(text) for text in alarms.read_text().splitlines()] if alarms.exists() else []
        return sorted((row["problem"], row["state"]) for row in rows)

    with run_watch(*options) as process:
        await asyncio.to_thread(wait_until, lambda: len(list_told()) == 2 and len(server.alerts) == 2, process)
        metrics = await asyncio.to_thread(answer, f"http://127.0.0.1:{port}/metrics")
        ready = await asyncio.to_thread(answer, f"http://127.0.0.1:{port}/readyz")
        write(journal, lead(2, 0.2, 1))
        writing = asyncio.create_task(keep_alive(journal, 3, 0.2))
        await asyncio.to_thread(wait_until, lambda: len(list_told()) == 4, process)
        await asyncio.to_thread(wait_until, lambda: server.list_firing(time.time()) == [], process)
        await asyncio.to_thread(end, process)
        writing.cancel()
    await server.stop()
    assert list_told() == [
        ("leaderless", "cleared"),
        ("leaderless", "raised"),
        ("silent", "cleared"),
        ("silent", "raised"),
    ]
    assert server.faults == []
    assert 'kontroller_watch_alarms{cluster="c1",problem="leaderless"} 1.0' in metrics
    assert 'kontroller_watch_alarms{cluster="c1",problem="under_min_isr"} 0.0' in metrics
    assert 'kontroller_watch_alarms_raised_total{cluster="c1",problem="silent"} 1.0' in metrics
    assert 'kontroller_watch_last_record_timestamp_seconds{cluster="c1"} 1.7000000001e+09' in metrics
    assert 'kontroller_watch_journal_readable{journal="http://127.0.0.1:1/journal"} 0.0' in metrics
    assert 'kontroller_watch_alarms_unsent{receiver="http://127.0.0.1:1"} 2.0' in metrics
    assert json.loads(ready)["journals"][str(journal)] is True
    assert json.loads(kept.read_text())["clusters"] == {"c1": 1_700_000_000_200_000}


def test_a_restart_tells_of_nothing_twice_and_of_what_is_over(journal: Path, tmp_path: Path) -> None:
    alarms = tmp_path / "alarms.jsonl"
    options = (f"--journal={journal}", f"--output={alarms}", f"--checkpoint={tmp_path}/watch.json")
    with run_watch(*options) as process:
        wait_until(lambda: alarms.exists() and alarms.read_text().count("\n") == 2, process)
        end(process)
    write(journal, lead(2, 0.2, 1))
    with run_watch(*options) as process:
        wait_until(lambda: alarms.read_text().count("\n") >= 4, process)
        end(process)
    rows = [json.loads(text) for text in alarms.read_text().splitlines()]
    assert [(row["problem"], row["state"]) for row in rows[:2]] == [("leaderless", "raised"), ("silent", "raised")]
    assert {(row["problem"], row["state"]) for row in rows[2:4]} == {("leaderless", "cleared"), ("silent", "cleared")}


def test_alarms_are_on_standard_output_where_no_file_is_given(journal: Path) -> None:
    with run_watch(f"--journal={journal}") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        _, log = end(process)
    assert (first["cluster_id"], first["topic"], first["partition"]) == ("c1", "t", 0)
    assert '"event":"stopped"' in log


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "nothing to watch"),
        (("--journal=s3a://bucket/x",), "neither a folder on this machine nor an address"),
        (("--topic=t",), "--topic and --bootstrap-server go together"),
        (("--journal=x", "--alertmanager=am:9093"), "am:9093 is not an address"),
        (("--journal=https://x", "--journal-certificate=nowhere.pem"), "nowhere.pem cannot be read: No such file"),
        (("--journal=https://x", "--journal-key=k"), "--journal-key needs --journal-certificate"),
        (("--journal=x", "--silent-after-seconds=0.1"), "alive interval"),
    ],
)
def test_a_command_that_is_wrong_ends_with_2_and_says_what_to_change(options: tuple[str, ...], message: str) -> None:
    ended = CliRunner().invoke(main, ["history", "watch", *QUICK, *options])
    assert (ended.exit_code, message in ended.stderr) == (2, True), ended.stderr


def test_a_file_that_is_no_checkpoint_is_not_written_over(journal: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    with run_watch(f"--journal={journal}", f"--checkpoint={notes}") as process:
        _, log = process.communicate(timeout=60)
    assert (process.returncode, "is not a checkpoint of a watch" in log) == (2, True), log
    assert notes.read_text() == "mine"
