"""A recorder's directory is its own, and its numbers go on."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from controller_core.journal.batches import Alive, Batch, Dropped, RecorderStarted
from controller_core.journal.fold import fold
from controller_core.journal.reader import read
from controller_core.journal.segments import SegmentFiles
from controller_core.journal.writer import JournalWriter
from controller_core.model.ids import ControllerEpoch
from controller_core.recorder.directory import Ended, UnusableDirectory, check_cluster, open_directory
from tests.unit.recorder.test_observed import CONTEXT


def record(directory: Path, batches: Sequence[Batch]) -> Ended:
    """Write batches like a recorder that finds this directory; return the end that it found there."""
    with open_directory(directory) as ended:
        writer = JournalWriter(SegmentFiles(directory, segment_bytes=1 << 20), encoder=ended.make_encoder())
        for batch in batches:
            writer.append(batch)
        assert writer.close(10)
    return ended


def test_the_numbers_of_an_epoch_go_on_after_a_torn_line_and_an_empty_segment(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    assert record(directory, [RecorderStarted(context=CONTEXT), Alive(context=CONTEXT)]) == Ended()
    (segment,) = directory.glob("*.jsonl")
    with segment.open("ab") as file:
        file.write(b'{"v":1,"torn')
    (directory / "0000000001-000000000000002.jsonl").touch()
    found = record(directory, [RecorderStarted(context=CONTEXT)])
    assert found == Ended(cluster_id="c", epoch=ControllerEpoch(1), next_seq=2)
    folded = fold(read(directory))
    assert (folded.records, folded.last_seq, folded.gaps, folded.findings) == (3, 2, [], [])


def test_the_numbers_go_on_behind_a_gap(tmp_path: Path) -> None:
    with open_directory(tmp_path) as ended:
        encoder = ended.make_encoder()
        lines = [*encoder.lines(Alive(context=CONTEXT)), *encoder.lines(Dropped(context=CONTEXT, count=5))]
        (tmp_path / "0000000001-000000000000000.jsonl").write_bytes(b"".join(lines))
    with open_directory(tmp_path) as ended:
        assert ended.next_seq == 6 == encoder.next_seq


def test_a_second_recorder_is_kept_out(tmp_path: Path) -> None:
    with open_directory(tmp_path), pytest.raises(UnusableDirectory, match="another recorder"):
        record(tmp_path, [])
    record(tmp_path, [])


def test_a_journal_of_another_cluster_is_refused(tmp_path: Path) -> None:
    record(tmp_path, [Alive(context=CONTEXT)])
    with open_directory(tmp_path) as ended:
        check_cluster(ended, "c", tmp_path)
        for other in ("d", None):
            with pytest.raises(UnusableDirectory, match="journal of cluster c"):
                check_cluster(ended, other, tmp_path)
