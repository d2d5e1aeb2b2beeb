"""Lines of JSON: each alarm once and complete, with any failure of the disk."""

import errno
import json
import os
from pathlib import Path

import pytest

from kontroller.history.alarms.records import Alarm
from kontroller.history.schemas import ALARMS
from kontroller.history.watching import json_lines
from kontroller.history.watching.board import Board
from kontroller.history.watching.json_lines import JsonLines
from tests.unit.watching.lines import START_US


def write_rows(path: Path, count: int = 1) -> tuple[JsonLines, int]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    lines, board = JsonLines(descriptor, str(path)), Board()
    board.tell(lines.receive)
    for number in range(count):
        alarm = Alarm(f"t{number}", 0, "leaderless", "raised", START_US, START_US + 30_000_000, "broker_failed", (1, 2))
        board.post("c1", alarm, 0)
    return lines, descriptor


def test_a_line_has_the_columns_of_the_table(tmp_path: Path) -> None:
    lines, descriptor = write_rows(tmp_path / "alarms")
    lines.write()
    os.close(descriptor)
    row = json.loads((tmp_path / "alarms").read_text())
    assert list(row) == ALARMS.schema.fieldNames()
    assert (row["topic"], row["state"], row["began"]) == ("t0", "raised", "2023-11-14T22:13:20.000000Z")
    assert row["at"] == "2023-11-14T22:13:50.000000Z"


def test_what_a_full_disk_does_not_take_waits_and_no_line_is_torn_or_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, descriptor = write_rows(tmp_path / "alarms", 3)
    room = [25, None, 40, None]

    def write_little(to: int, data: bytes) -> int:
        left = room.pop(0) if room else len(data)
        if left is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os_write(to, data[:left])

    os_write = os.write
    monkeypatch.setattr(os, "write", write_little)
    lines.write()
    lines.write()
    assert (lines.failures, lines.pending) == (2, 3)
    lines.write()
    os.close(descriptor)
    rows = [json.loads(text) for text in (tmp_path / "alarms").read_text().splitlines()]
    assert ([row["topic"] for row in rows], lines.sent, lines.pending) == (["t0", "t1", "t2"], 3, 0)


def test_what_waits_has_an_end_and_what_is_dropped_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_MOST_PENDING_BYTES", 500)
    lines, descriptor = write_rows(tmp_path / "alarms", 10)
    os.close(descriptor)
    assert lines.dropped > 0
    assert lines.pending + lines.dropped == 10
