"""A journal without a disk or a thread: the production encoder, and a list of lines."""

from controller_core.controller.recording.term_journal import copy_state
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.journal.batches import Batch, Context, Snapshot
from controller_core.journal.fold import Folded, Image, fold
from controller_core.journal.reader import Entry, Position, check, parse
from controller_core.journal.record_encoder import RecordEncoder
from controller_core.model.ids import BrokerId, ControllerEpoch


class MemoryJournal:
    """Keeps the lines of all that it was handed."""

    is_kept = True
    wants_snapshot = False

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._encoder = RecordEncoder()

    def append(self, batch: Batch) -> None:
        self.lines += self._encoder.lines(batch)

    def entries(self) -> list[Entry]:
        return list(
            check(
                parse(Position(segment="memory", line=number), text.removesuffix(b"\n"))
                for number, text in enumerate(self.lines, start=1)
            )
        )


def image_of(state: ClusterState) -> Image:
    """A live state in the schema's words."""
    context = Context(
        cluster_id=None,
        controller_id=BrokerId(0),
        controller_epoch=ControllerEpoch(0),
        event_time_us=0,
        cause="test",
        correlation_id="",
    )
    journal = MemoryJournal()
    journal.append(Snapshot(context=context, state=copy_state(state)))
    image = fold(journal.entries()).image
    assert image is not None
    return image


def assert_journal_folds_to(state: ClusterState, journal: MemoryJournal, *, has_files: bool = True) -> Folded:
    """The fold of the journal is the live state, and nothing is missing or wrong in it.

    `has_files`: False for the journal of a recorder, which asks no broker for its file."""
    folded = fold(journal.entries())
    assert folded.findings == []
    assert folded.gaps == []
    assert folded.image is not None
    live = image_of(state)
    if not has_files:
        live.static_configs.clear()
    assert folded.image == live
    assert folded.image.checksum() == live.checksum()
    return folded
