"""Kafka's own tool reads the files of a log: the same records, and nothing wrong with any index."""

import re
from pathlib import Path

import pytest

from controller_core.model.ids import LeaderEpoch
from devcluster.clients.tools import run_tool
from replica_broker.disk.local_disk import LocalDisk
from replica_broker.log.config import LogConfig, TimestampType
from replica_broker.log.log import Log
from replica_broker.log.record_batches import Compression
from tests.unit.replica_broker.log.batches import EPOCH, NOW_MS, batch

pytestmark = pytest.mark.real

DUMP_LOG_SEGMENTS = "kafka.tools.DumpLogSegments"
COUNT = 400
_RECORD = re.compile(r"^\| offset: (\d+) CreateTime: (\d+) .*payload: (\S+)$", re.MULTILINE)
_BATCH = re.compile(
    r"^baseOffset: (\d+) lastOffset: (\d+) .*partitionLeaderEpoch: (\d+) .*isvalid: (\w+)", re.MULTILINE
)
_WRONG = re.compile(r"mismatch|out of order|not found|isvalid: false|exception|corrupt", re.IGNORECASE)


def dump_files(folder: Path, suffix: str, *options: str) -> str:
    """Return the tool's output about all files of a kind."""
    files = sorted(str(path) for path in folder.glob(f"*{suffix}"))
    assert len(files) > 1
    tool = run_tool(DUMP_LOG_SEGMENTS, "--files", ",".join(files), *options)
    assert tool.returncode == 0, tool.stderr
    assert not _WRONG.search(tool.stdout + tool.stderr), tool.stdout + tool.stderr
    return tool.stdout


def time_of(number: int) -> int:
    """Return the time of a record; the times are unordered, like those of producers."""
    return NOW_MS + number * 10 + (number * 7919 % 13) * 25


def write_log(folder: Path) -> list[tuple[str, str, str]]:
    """Write a log that was rolled, truncated, and closed uncleanly and cleanly; return its records: offset, time,
    value.
    """
    config = LogConfig(segment_bytes=8_000, index_interval_bytes=500)
    disk = LocalDisk()
    log = Log.open(disk, folder, config)
    records = []
    for number in range(COUNT):
        if number == COUNT // 2:
            log.append_as_leader(batch(b"cut", b"off"), EPOCH, NOW_MS)
            log.truncate_to(log.log_end_offset - 1)
            log.abandon()
            with max(folder.glob("*.log")).open("ab") as file:
                file.write(b"torn")
            log = Log.open(disk, folder, config)
        if number == COUNT * 3 // 4:
            log.close()
            log = Log.open(disk, folder, config, is_clean=True)
        values = [f"value-{number}-{part}".encode() for part in range(number % 3 + 1)]
        data = batch(
            *values,
            times_ms=[time_of(number)] * len(values),
            attributes=Compression.GZIP if number % 5 == 4 else Compression.NONE,
            producer_id=number,
            producer_epoch=0,
            base_sequence=0,
        )
        first = log.append_as_leader(data, LeaderEpoch(EPOCH + number // 100), NOW_MS).first_offset
        records += [(str(first + at), str(time_of(number)), value.decode()) for at, value in enumerate(values)]
    log.close()
    return records


def test_kafka_finds_nothing_wrong_with_a_log_and_reads_the_same_records(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    records = write_log(folder)
    printed = dump_files(folder, ".log", "--deep-iteration", "--print-data-log")
    assert _RECORD.findall(printed) == records
    batches = _BATCH.findall(printed)
    assert len(batches) == COUNT
    assert {epoch for _, _, epoch, _ in batches} == {str(EPOCH + number) for number in range(4)}
    assert {is_valid for _, _, _, is_valid in batches} == {"true"}
    for suffix in (".index", ".timeindex"):
        assert len(re.findall(r"^(?:offset|timestamp): ", dump_files(folder, suffix), re.MULTILINE)) > 10
        dump_files(folder, suffix, "--verify-index-only")
        assert "passed sanity check" in dump_files(folder, suffix, "--index-sanity-check")


def test_kafka_reads_the_times_that_the_broker_gave(tmp_path: Path) -> None:
    config = LogConfig(
        segment_bytes=400, index_interval_bytes=100, message_timestamp_type=TimestampType.LOG_APPEND_TIME
    )
    log = Log.open(LocalDisk(), tmp_path / "orders-0", config)
    for number in range(12):
        log.append_as_leader(batch(b"a", b"b", times_ms=[5, 6]), EPOCH, NOW_MS + number)
    log.close()
    printed = dump_files(tmp_path / "orders-0", ".log", "--deep-iteration")
    times = re.findall(r"^\| offset: \d+ LogAppendTime: (\d+)", printed, re.MULTILINE)
    assert times == [str(NOW_MS + number // 2) for number in range(24)]
    for suffix in (".index", ".timeindex"):
        dump_files(tmp_path / "orders-0", suffix, "--verify-index-only")
