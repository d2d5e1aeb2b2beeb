"""The trail: what is recorded, what is only counted, and what a failing sink costs."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter
from structlog.testing import capture_logs

from controller_core.audit.record import AuditRecord, Outcome
from controller_core.audit.sinks import FileSink, SyslogSink
from controller_core.audit.trail import AuditTrail, SinkWriter
from controller_core.journal.segments import Unwritable

PATIENCE_S = 30


def record(
    outcome: Outcome = Outcome.REFUSED, *, who: str = "User:bob", address: str = "10.0.0.1", api: str = "CreateTopics"
) -> AuditRecord:
    return AuditRecord(
        time_ms=0, source="controller-9", api=api, outcome=outcome, principal=who, address=address, error="E"
    )


@pytest.fixture
def seen() -> list[AuditRecord]:
    return []


@pytest.fixture
def trail(seen: list[AuditRecord]) -> AuditTrail:
    return AuditTrail(source="controller-9", journal=seen.append)


def test_each_change_is_recorded(trail: AuditTrail, seen: list[AuditRecord]) -> None:
    for outcome in [Outcome.DONE, Outcome.PARTLY_DONE] * 50:
        trail.record(record(outcome))
    assert len(seen) == 100


def test_a_flood_of_refused_requests_is_one_record_and_one_sum_a_minute(
    trail: AuditTrail, seen: list[AuditRecord]
) -> None:
    for _ in range(10_000):
        trail.record(record())
    trail.record(record(who="User:carol"))
    assert [(each.principal, each.count) for each in seen] == [("User:bob", 1), ("User:carol", 1)]
    trail.sum_up()
    assert [(each.principal, each.api, each.error, each.count) for each in seen[2:]] == [
        ("User:bob", "CreateTopics", "E", 9_999)
    ]
    trail.sum_up()
    assert len(seen) == 3, "nothing was counted in this minute"


def test_callers_and_kinds_without_end_are_counted_together(trail: AuditTrail, seen: list[AuditRecord]) -> None:
    for number in range(5_000):
        trail.record(record(address=f"2001:db8::{number:x}"))
    for number in range(500):
        trail.record(record(address="10.0.0.2", api=f"api-{number}"))
    assert len(seen) == 1_000
    trail.sum_up()
    assert len(seen) < 1_050
    assert sum(each.count for each in seen) == 5_500


def test_requests_whose_end_is_unknown_may_have_changed_something_and_are_recorded_up_to_a_limit(
    trail: AuditTrail, seen: list[AuditRecord]
) -> None:
    for _ in range(1_000):
        trail.record(record(Outcome.UNKNOWN))
    assert 50 < len(seen) < 100
    trail.sum_up()
    assert sum(each.count for each in seen) == 1_000


def test_a_file_has_a_line_for_each_record_and_is_rotated(tmp_path: Path) -> None:
    file = tmp_path / "new" / "audit.jsonl"
    sink = FileSink(file, file_bytes=300, files=2)
    for number in range(20):
        sink.write({"number": number, "name": "ü" * 10})
        assert f'"number": {number},' in file.read_text(), "flushed at once"
    sink.close()
    assert sorted(path.name for path in file.parent.iterdir()) == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    assert all(path.stat().st_size <= 300 for path in file.parent.iterdir())
    oldest_first = [file.with_name(f"audit.jsonl{end}").read_text().splitlines() for end in (".2", ".1", "")]
    kept = [json.loads(line)["number"] for lines in oldest_first for line in lines]
    assert kept == list(range(kept[0], 20)), "FILE.1 is the newest finished file"


def test_a_full_disk_is_an_error_and_leaves_lines_that_can_be_read(tmp_path: Path) -> None:
    sink = FileSink(Path("/dev/full"), file_bytes=1 << 20, files=1)
    for _ in range(2):
        with pytest.raises(OSError, match="No space"):
            sink.write({"number": 1})
    file = tmp_path / "audit.jsonl"
    file.write_text('{"number": 0, "torn')
    again = FileSink(file, file_bytes=1 << 20, files=1)
    again._is_torn = True
    again.write({"number": 1})
    assert json.loads(file.read_text().splitlines()[-1]) == {"number": 1}


class FailingSink:
    """Fails until it is repaired."""

    name = "file"

    def __init__(self) -> None:
        self.repaired = threading.Event()
        self.tried = threading.Event()
        self.written: list[dict[str, Any]] = []

    def write(self, record: dict[str, Any]) -> None:
        self.tried.set()
        if not self.repaired.is_set():
            raise OSError(28, "No space left on device")
        self.written.append(record)

    def close(self) -> None: ...


async def test_a_sink_that_fails_holds_nothing_up_and_says_later_what_is_missing() -> None:
    registry, sink = CollectorRegistry(), FailingSink()
    with capture_logs() as lines:
        counts = Counter("records", "Records.", ["sink", "outcome"], registry=registry)
        writer = SinkWriter(sink, counts, capacity=3, retry_s=0.001)
        trail = AuditTrail(source="controller-9", writers=(writer,))
        trail.record(record(Outcome.DONE))
        assert sink.tried.wait(PATIENCE_S)
        for _ in range(10):
            trail.record(record(Outcome.DONE))
        sink.repaired.set()
        async with asyncio.timeout(PATIENCE_S):
            while len(sink.written) < 4:  # noqa: ASYNC110 - the sink's thread says nothing
                await asyncio.sleep(0.001)
        trail.record(record(Outcome.DONE))
        await trail.close()
    assert [line["event"] for line in lines] == ["audit record cannot be written, changes go on"]
    assert len(sink.written) == 4 + 2, "one was in work, and three waited"
    gap, last = sink.written[4:]
    assert (gap["outcome"], gap["count"], gap["message"]) == (
        "unknown", 7, "7 records are missing here, because they were dropped",
    )  # fmt: skip
    assert last["outcome"] == "done"
    dropped = registry.get_sample_value("records_total", {"sink": "file", "outcome": "dropped"})
    assert dropped == 7


@pytest.fixture
def udp() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(PATIENCE_S)
        yield server


def test_syslog_gets_messages_of_rfc_5424(udp: socket.socket) -> None:
    sink = SyslogSink(f"udp://127.0.0.1:{udp.getsockname()[1]}")
    sink.write(record().make_json())
    message = udp.recv(65_536).decode()
    head, _, body = message.partition(" audit - ")
    assert head.startswith("<86>1 1970-01-01T00:00:00.000Z ")
    assert json.loads(body)["principal"] == "User:bob"
    with pytest.raises(Unwritable, match="tcp://"):
        sink.write({"time": "t", "name": "x" * 100_000})
    sink.close()


def test_syslog_may_be_a_socket_in_a_file(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "log"))
        server.settimeout(PATIENCE_S)
        sink = SyslogSink(str(tmp_path / "log"))
        sink.write(record().make_json())
        message = server.recv(65_536).decode()
        sink.close()
    assert message.startswith("<86>1 1970-01-01T00:00:00.000Z ")
    assert json.loads(message.partition(" audit - ")[2])["api"] == "CreateTopics"


def test_syslog_over_tcp_is_connected_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        sink = SyslogSink(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        sink.write(record().make_json())
        connection, _ = server.accept()
        with connection, connection.makefile() as lines:
            assert json.loads(lines.readline().partition(" audit - ")[2])["api"] == "CreateTopics"
        sink.close()
        sink.write(record(api="DeleteTopics").make_json())
        connection, _ = server.accept()
        with connection, connection.makefile() as lines:
            assert json.loads(lines.readline().partition(" audit - ")[2])["api"] == "DeleteTopics"
        sink.close()


@pytest.mark.parametrize("target", ["tcp://127.0.0.1:1", "/nowhere/log"])
def test_a_dead_syslog_is_an_error_of_the_sink_alone(target: str) -> None:
    with pytest.raises(OSError, match=r".+"):
        SyslogSink(target).write(record().make_json())
