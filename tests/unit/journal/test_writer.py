"""The writer never blocks and never raises. Gaps are known, and torn files are repaired."""

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller_core.journal.batches import Batch, Committed, Context, Elected, Requested, Snapshot, StateCopy
from controller_core.journal.changes import Change, Kind
from controller_core.journal.fold import fold
from controller_core.journal.reader import Entry, Finding, Gap, Record, read
from controller_core.journal.segments import Block, SegmentFiles, Unwritable, segments
from controller_core.journal.writer import JournalWriter
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, ControllerEpoch
from devcluster.running.processes import wait_until

LARGE = 1 << 20


def context(epoch: int = 1) -> Context:
    return Context(
        cluster_id="test",
        controller_id=BrokerId(1000),
        controller_epoch=ControllerEpoch(epoch),
        event_time_us=1,
        cause="features_changed",
        correlation_id=f"{epoch}-1",
    )


def level(number: int) -> FinalizedFeatures:
    return FinalizedFeatures(features={"some.feature": number}, epoch=number)


def commit(*numbers: int, epoch: int = 1) -> Committed:
    changes = [Change(Kind.FEATURES, None, None, level(number)) for number in numbers]
    return Committed(context=context(epoch), changes=changes)


def snapshot(number: int, epoch: int = 1) -> Snapshot:
    return Snapshot(context=context(epoch), state=StateCopy(features=level(number)))


def write(directory: Path, *batches: Committed | Snapshot | Elected, segment_bytes: int = LARGE) -> None:
    writer = JournalWriter(SegmentFiles(directory, segment_bytes=segment_bytes))
    for batch in batches:
        writer.append(batch)
    assert writer.close(30)


def seqs(entries: list[Entry]) -> list[int]:
    return [entry.line.seq for entry in entries if isinstance(entry, Record)]


class SlowSink:
    """A disk that takes nothing until it is released, and fails as often as it is asked to."""

    def __init__(self, directory: Path, failures: int = 0) -> None:
        self.files = SegmentFiles(directory, segment_bytes=LARGE)
        self.released = threading.Event()
        self.reached = threading.Event()
        self.failures = failures
        self.is_closed = False

    def write(self, block: Block) -> None:
        self.reached.set()
        self.released.wait()
        if self.failures:
            self.failures -= 1
            raise OSError(28, "No space left on device")
        self.files.write(block)

    def close(self) -> None:
        self.files.close()
        self.is_closed = True


def test_what_is_written_is_read_in_its_order(tmp_path: Path) -> None:
    write(tmp_path / "new" / "directory", snapshot(1), commit(2, 3))
    entries = list(read(tmp_path / "new" / "directory"))
    assert seqs(entries) == [0, 1, 2, 3, 4]
    folded = fold(entries)
    assert folded.image is not None
    assert folded.image.features == {"finalized_features": {"some.feature": 3}, "features_epoch": 3}


def test_a_disk_that_is_too_slow_leaves_a_gap_that_the_next_snapshot_closes(tmp_path: Path) -> None:
    sink = SlowSink(tmp_path)
    writer = JournalWriter(sink, capacity=4)
    writer.append(snapshot(1))
    assert sink.reached.wait(30)
    writer.append(commit(2, 3))
    writer.append(commit(4, 5))
    writer.append(commit(6))
    assert (writer.counts.dropped, writer.counts.gaps) == (3, 1)
    assert not writer.wants_snapshot, "there is no room for it yet"
    sink.released.set()
    wait_until(lambda: writer.wants_snapshot, "the buffer is empty again")
    writer.append(snapshot(6))
    assert not writer.wants_snapshot
    writer.append(commit(7))
    assert writer.close(30)
    entries = list(read(tmp_path))
    assert [(gap.first_seq, gap.count, gap.is_recorded) for gap in entries if isinstance(gap, Gap)] == [(5, 3, True)]
    assert seqs(entries) == [0, 1, 2, 3, 4, 8, 9, 10, 11]
    folded = fold(entries)
    assert folded.findings == []
    assert folded.image is not None
    assert folded.image.features == {"finalized_features": {"some.feature": 7}, "features_epoch": 7}


def test_after_a_gap_the_state_is_unknown_until_a_snapshot(tmp_path: Path) -> None:
    sink = SlowSink(tmp_path)
    writer = JournalWriter(sink, capacity=2)
    writer.append(snapshot(1))
    assert sink.reached.wait(30)
    writer.append(commit(2))
    writer.append(commit(3))
    writer.append(commit(4))
    sink.released.set()
    assert writer.close(30)
    assert fold(read(tmp_path)).image is None


def test_a_write_that_fails_is_tried_again_and_nothing_is_lost(tmp_path: Path) -> None:
    sink = SlowSink(tmp_path, failures=3)
    sink.released.set()
    writer = JournalWriter(sink, retry_s=0.001)
    writer.append(snapshot(1))
    writer.append(commit(2))
    wait_until(lambda: writer.counts.written == 4, "all is written")
    assert writer.close(30)
    assert (writer.counts.errors, writer.counts.is_failing, writer.counts.dropped) == (3, False, 0)
    assert writer.counts.last_error_s > 0
    assert seqs(list(read(tmp_path))) == [0, 1, 2, 3]


def test_a_directory_that_cannot_be_written_fails_nothing_but_the_journal(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    writer = JournalWriter(SegmentFiles(tmp_path / "file" / "journal", segment_bytes=LARGE), retry_s=60)
    writer.append(snapshot(1))
    wait_until(lambda: writer.counts.is_failing, "the failure is known")
    assert writer.close(30), "it ends nevertheless"


def test_a_journal_that_is_closed_while_writes_fail_closes_its_sink(tmp_path: Path) -> None:
    sink = SlowSink(tmp_path)
    sink.released.set()
    writer = JournalWriter(sink, retry_s=60)
    writer.append(snapshot(1))
    wait_until(lambda: writer.is_idle, "the snapshot is written")
    sink.failures = 1
    writer.append(commit(2))
    wait_until(lambda: writer.counts.is_failing, "the failure is known")
    assert writer.close(30)
    assert sink.is_closed
    assert seqs(list(read(tmp_path))) == [0, 1, 2]


def test_a_disk_that_hangs_does_not_hold_up_the_end_of_the_process(tmp_path: Path) -> None:
    sink = SlowSink(tmp_path)
    writer = JournalWriter(sink)
    writer.append(snapshot(1))
    assert not writer.close(0.01)
    sink.released.set()


@contextmanager
def files_no_larger_than(size: int) -> Iterator[Callable[[], None]]:
    """Let writes beyond a size fail as on a full disk: a part of them is written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    def lift() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    try:
        yield lift
    finally:
        lift()


def test_a_write_that_failed_halfway_is_cut_off(tmp_path: Path) -> None:
    files = SegmentFiles(tmp_path, segment_bytes=LARGE)
    files.write(Block(epoch=1, first_seq=0, data=b"first\n"))
    block = Block(epoch=1, first_seq=1, data=b"x" * 500 + b"\n")
    with files_no_larger_than(100):
        with pytest.raises(OSError, match="large"):
            files.write(block)
        assert segments(tmp_path)[0].read_bytes() == b"first\n"
    files.write(block)
    files.close()
    assert segments(tmp_path)[0].read_bytes() == b"first\n" + block.data


def test_segments_are_rotated_by_size_and_begin_anew_with_an_epoch(tmp_path: Path) -> None:
    files = SegmentFiles(tmp_path, segment_bytes=10)
    for epoch, seq in ((1, 0), (1, 1), (2, 0)):
        files.write(Block(epoch=epoch, first_seq=seq, data=b"1234567\n"))
    files.close()
    assert [path.name for path in segments(tmp_path)] == [
        "0000000001-000000000000000.jsonl", "0000000001-000000000000001.jsonl", "0000000002-000000000000000.jsonl",
    ]  # fmt: skip


def test_the_oldest_segments_are_deleted_when_there_is_too_much(tmp_path: Path) -> None:
    files = SegmentFiles(tmp_path, segment_bytes=8, retention_bytes=16)
    for seq in range(5):
        files.write(Block(epoch=1, first_seq=seq, data=b"1234567\n"))
    files.close()
    assert [int(path.stem[-5:]) for path in segments(tmp_path)] == [2, 3, 4]


def test_segments_that_are_too_old_are_deleted(tmp_path: Path) -> None:
    files = SegmentFiles(tmp_path, segment_bytes=8, retention_ms=1000)
    for seq in range(2):
        files.write(Block(epoch=1, first_seq=seq, data=b"1234567\n"))
    os.utime(segments(tmp_path)[0], (0, 0))
    files.write(Block(epoch=1, first_seq=2, data=b"1234567\n"))
    files.close()
    assert [int(path.stem[-5:]) for path in segments(tmp_path)] == [1, 2]


YEAR_S = 365 * 24 * 3600.0


@pytest.mark.parametrize("wrong", ["at first", "later"])
@pytest.mark.parametrize("by_s", [YEAR_S, -YEAR_S])
def test_a_clock_that_jumps_deletes_nothing(tmp_path: Path, wrong: str, by_s: float) -> None:
    is_wrong = wrong == "at first"
    files = SegmentFiles(
        tmp_path, segment_bytes=8, retention_ms=60_000, wall_s=lambda: time.time() + (by_s if is_wrong else 0.0)
    )
    files.write(Block(epoch=1, first_seq=0, data=b"1234567\n"))
    is_wrong = not is_wrong
    for seq in range(1, 3):
        files.write(Block(epoch=1, first_seq=seq, data=b"1234567\n"))
    files.close()
    assert [int(path.stem[-5:]) for path in segments(tmp_path)] == [0, 1, 2]


def test_a_segment_that_was_written_while_the_clock_was_ahead_makes_no_other_one_old(tmp_path: Path) -> None:
    files = SegmentFiles(tmp_path, segment_bytes=8, retention_ms=60_000)
    for seq in range(2):
        files.write(Block(epoch=1, first_seq=seq, data=b"1234567\n"))
    ahead_s = time.time() + YEAR_S
    os.utime(segments(tmp_path)[1], (ahead_s, ahead_s))
    files.write(Block(epoch=1, first_seq=2, data=b"1234567\n"))
    files.close()
    assert [int(path.stem[-5:]) for path in segments(tmp_path)] == [0, 1, 2]


def test_a_batch_that_cannot_be_put_into_words_is_a_gap(tmp_path: Path) -> None:
    writer = JournalWriter(SegmentFiles(tmp_path, segment_bytes=LARGE))
    unspeakable = Committed(context=context(), changes=[Change(Kind.FEATURES, None, None, level(2**70))])
    writer.append(snapshot(1))
    writer.append(unspeakable)
    wait_until(lambda: writer.wants_snapshot, "a snapshot is wanted")
    writer.append(snapshot(3))
    assert writer.close(30)
    entries = list(read(tmp_path))
    assert any(isinstance(entry, Gap) for entry in entries)
    folded = fold(entries)
    assert folded.findings == []
    assert folded.image is not None


class StumblingSink(SlowSink):
    """A sink that fails in a way in which none should."""

    def write(self, block: Block) -> None:
        if self.failures:
            self.failures -= 1
            raise ValueError("nobody expected that")
        self.files.write(block)


def test_an_error_that_nobody_expected_of_a_sink_costs_a_batch_and_not_the_journal(tmp_path: Path) -> None:
    sink = StumblingSink(tmp_path, failures=2)  # the batch, and the gap in its place
    writer = JournalWriter(sink, retry_s=0.001)
    writer.append(commit(1))
    wait_until(lambda: writer.wants_snapshot and writer.is_idle, "the batch is given up")
    assert (sink.failures, writer.counts.errors) == (0, 2)
    writer.append(snapshot(2))
    assert writer.close(30)
    folded = fold(read(tmp_path))
    assert folded.image is not None


def test_an_unexpected_error_of_a_sink_while_the_journal_is_closed_closes_the_sink(tmp_path: Path) -> None:
    sink = StumblingSink(tmp_path, failures=2)
    writer = JournalWriter(sink, retry_s=60)
    writer.append(commit(1))
    wait_until(lambda: writer.counts.errors == 2, "the batch is given up")
    assert writer.close(30)
    assert sink.is_closed


class NarrowSink(SlowSink):
    """A sink that takes no line with more bytes than this."""

    def __init__(self, directory: Path, most_bytes: int) -> None:
        super().__init__(directory)
        self.most_bytes = most_bytes

    def write(self, block: Block) -> None:
        if any(len(line) > self.most_bytes for line in block.data.splitlines()):
            raise Unwritable("too large")
        self.files.write(block)


def request(size: int) -> Requested:
    return Requested(context=context(), request={"api": "x" * size})


def large_level() -> FinalizedFeatures:
    return FinalizedFeatures(features={"x" * LARGE: 1}, epoch=1)


def write_to_narrow(directory: Path, batch: Batch, most_bytes: int = 1_000_000) -> JournalWriter:
    """Return a writer that has written this batch between a snapshot and a change."""
    writer = JournalWriter(NarrowSink(directory, most_bytes))
    for each in (snapshot(1), batch, commit(2)):
        writer.append(each)
    wait_until(lambda: writer.is_idle, "all is written")
    return writer


@pytest.mark.parametrize("place", [0, 1, 2, 5])
def test_a_record_that_is_too_large_is_a_gap_and_all_others_are_written(tmp_path: Path, place: int) -> None:
    changes = list(commit(*range(10, 16)).changes)
    changes[place] = Change(Kind.FEATURES, None, None, large_level())
    writer = write_to_narrow(tmp_path, Committed(context=context(), changes=changes))
    assert (writer.counts.dropped, writer.counts.gaps, writer.counts.is_failing) == (1, 1, False)
    assert writer.wants_snapshot
    writer.append(snapshot(2))
    assert writer.close(30)
    entries = list(read(tmp_path))
    gap = 3 + place
    found = [(each.first_seq, each.count, each.is_recorded) for each in entries if isinstance(each, Gap)]
    assert found == [(gap, 1, True)]
    assert seqs(entries) == [seq for seq in range(13) if seq != gap]
    folded = fold(entries)
    assert (folded.findings, folded.image is not None) == ([], True)


def test_a_request_that_is_too_large_is_a_gap_and_the_next_change_is_written(tmp_path: Path) -> None:
    writer = write_to_narrow(tmp_path, request(1_100_000))
    assert writer.close(30)
    assert seqs(list(read(tmp_path))) == [0, 1, 2, 4]


def test_a_snapshot_with_a_record_that_is_too_large_is_not_taken_again_at_once(tmp_path: Path) -> None:
    writer = write_to_narrow(tmp_path, Snapshot(context=context(), state=StateCopy(features=large_level())))
    assert writer.counts.gaps == 1
    assert not writer.wants_snapshot
    assert writer.close(30)
    assert fold(read(tmp_path)).image is None


def test_a_sink_that_does_not_take_the_gap_itself_does_not_stop_the_journal(tmp_path: Path) -> None:
    writer = write_to_narrow(tmp_path, request(1_000), most_bytes=100)
    assert (writer.counts.written, writer.counts.dropped) == (0, 5)
    assert writer.close(30)


def tear(directory: Path, data: bytes = b'{"v":1,"contr') -> None:
    with segments(directory)[-1].open("ab") as file:
        file.write(data)


def test_a_torn_last_line_is_a_finding_and_the_next_writer_heals_it(tmp_path: Path) -> None:
    write(tmp_path, snapshot(1), commit(2))
    tear(tmp_path)
    torn = [entry for entry in read(tmp_path) if isinstance(entry, Finding)]
    assert [str(finding.position) for finding in torn] == ["0000000001-000000000000000.jsonl:5"]
    write(tmp_path, snapshot(2, epoch=2))
    folded = fold(read(tmp_path))
    assert folded.findings == []
    assert folded.controller_epoch == 2
    assert folded.image is not None


def test_a_torn_line_is_cut_off_from_its_beginning_however_long_it_is(tmp_path: Path) -> None:
    write(tmp_path, snapshot(1), commit(2))
    whole = segments(tmp_path)[0].read_bytes()
    tear(tmp_path, b"x" * (3 * LARGE))
    write(tmp_path, snapshot(2, epoch=2))
    assert segments(tmp_path)[0].read_bytes() == whole
    (tmp_path / "0000000003-000000000000000.jsonl").write_bytes(b"x" * (3 * LARGE))
    write(tmp_path, snapshot(3, epoch=4))
    assert segments(tmp_path)[2].read_bytes() == b""


def test_a_line_that_someone_is_still_writing_is_not_cut(tmp_path: Path) -> None:
    other = SegmentFiles(tmp_path, segment_bytes=LARGE)
    other.write(Block(epoch=1, first_seq=0, data=b"half of"))
    write(tmp_path, snapshot(1, epoch=2))
    assert segments(tmp_path)[0].read_bytes() == b"half of"
    other.close()


@pytest.mark.parametrize(
    "garbage", [b"\xff\xfe\n", b"[]\n", b"{}\n", b"\n", b'{"v":99}\n', b'{"seq":"1"}\n'],
    ids=["bytes", "list", "empty", "blank", "version", "type"],
)  # fmt: skip
def test_bad_lines_are_findings_with_their_position(tmp_path: Path, garbage: bytes) -> None:
    write(tmp_path, snapshot(1))
    tear(tmp_path, garbage)
    entries = list(read(tmp_path))
    assert seqs(entries) == [0, 1, 2]
    assert [entry.position.line for entry in entries if isinstance(entry, Finding)] == [4]


def test_a_missing_line_is_a_gap(tmp_path: Path) -> None:
    write(tmp_path, snapshot(1), commit(2, 3))
    path = segments(tmp_path)[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    gaps = [entry for entry in read(tmp_path) if isinstance(entry, Gap)]
    assert [(gap.first_seq, gap.count, gap.is_recorded) for gap in gaps] == [(3, 1, False)]


def test_lines_that_come_twice_are_read_once(tmp_path: Path) -> None:
    write(tmp_path, snapshot(1), commit(2))
    path = segments(tmp_path)[0]
    tear(tmp_path, path.read_bytes().splitlines(keepends=True)[-1])
    entries = list(read(tmp_path))
    assert seqs(entries) == [0, 1, 2, 3]
    assert any(isinstance(entry, Finding) and "comes again" in entry.problem for entry in entries)


def test_a_changed_value_is_found_at_the_next_checksum(tmp_path: Path) -> None:
    write(tmp_path, snapshot(1), commit(2), snapshot(2))
    assert fold(read(tmp_path)).proven == 1
    path = segments(tmp_path)[0]
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"some.feature":2', b'"some.feature":9')
    path.write_bytes(b"".join(lines))
    folded = fold(read(tmp_path))
    assert folded.proven == 0
    assert [finding.position.line for finding in folded.findings] == [7]
