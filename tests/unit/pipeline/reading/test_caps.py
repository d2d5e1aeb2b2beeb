"""The caps of readers are far above what our own writers produce."""

from pathlib import Path

from controller_core.journal.batches import Committed, Context
from controller_core.journal.changes import Change, Kind
from controller_core.journal.record_encoder import RecordEncoder
from controller_core.journal.segments import Block, SegmentFiles
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.process.settings import ProcessSettings
from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES
from kontroller.history.sources.caps import Caps

SHORTEST_SEGMENT_BYTES = 1 << 16
"""The least that --journal-segment-bytes may be."""
DEFAULTS = {name: field.default for name, field in ProcessSettings.model_fields.items()}


def test_a_segment_and_a_journal_may_be_sixteen_times_as_large_as_a_writers() -> None:
    assert Caps().file_bytes >= 16 * DEFAULTS["journal_segment_bytes"]
    assert Caps().journal_bytes >= 16 * DEFAULTS["journal_retention_bytes"]


def test_a_list_of_the_smallest_segments_has_room(tmp_path: Path) -> None:
    sink = SegmentFiles(tmp_path, segment_bytes=SHORTEST_SEGMENT_BYTES)
    sink.write(Block(epoch=2**31 - 1, first_seq=10**15 - 1, data=b"\n"))
    sink.close()
    (name,) = (path.name for path in tmp_path.iterdir())
    entry = len(f'{{"name": "{name}", "bytes": {SHORTEST_SEGMENT_BYTES}}}, ')
    assert entry * DEFAULTS["journal_retention_bytes"] // SHORTEST_SEGMENT_BYTES <= Caps().index_bytes


def test_a_configuration_as_large_as_a_znode_has_room_in_a_line() -> None:
    # JSON writes the worst character in six bytes.
    config = {"key": "\x01" * DEFAULT_JUTE_MAXBUFFER_BYTES}
    context = Context(
        cluster_id="c", controller_id=BrokerId(1), controller_epoch=ControllerEpoch(1), event_time_us=1, cause="startup",
        correlation_id="1-1",
    )  # fmt: skip
    changes = [Change(Kind.TOPIC_CONFIG, "t" * 249, None, config)]
    (line,) = RecordEncoder().lines(Committed(context=context, changes=changes))
    assert 6 * DEFAULT_JUTE_MAXBUFFER_BYTES < len(line) < Caps().line_bytes // 2
