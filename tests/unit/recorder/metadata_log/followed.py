"""A recorder that follows the log of a quorum, and the journal that it finds after a restart."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controller_core.controller.loop.clock import SystemClock
from controller_core.journal.fold import Image, fold
from controller_core.journal.reader import Record
from controller_core.journal.records import Line
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.recorder.directory import NOTHING_YET, Ended, LastEvent
from controller_core.recorder.event_numbers import find_thing, read_position
from controller_core.recorder.metadata_log.looking import MetadataLogLooker
from controller_core.recorder.recorder import Recorder
from tests.unit.journal.memory import MemoryJournal
from tests.unit.recorder.metadata_log import logs
from tests.unit.recorder.metadata_log.quorums import Quorum, looker_of, serve
from tests.unit.recorder.watching import Settings


class Followed:
    """A recorder of a quorum, and its journal."""

    def __init__(self, looker: MetadataLogLooker, journal: MemoryJournal, ended: Ended = NOTHING_YET) -> None:
        self.journal = journal
        self.looker = looker
        self.recorder = Recorder(looker, journal, SystemClock(), Settings(), ended=ended, records_clock=looker.clock)

    async def look(self) -> list[Line]:
        """Return the lines that the journal gets until the log is read to its end."""
        known = len(self.journal.lines)
        while not await self.recorder.look():
            pass
        return self.lines()[known:]

    def lines(self) -> list[Line]:
        return [entry.line for entry in self.journal.entries() if isinstance(entry, Record)]

    def image(self) -> Image:
        folded = fold(self.journal.entries())
        assert folded.findings == []
        assert folded.gaps == []
        assert folded.image is not None
        return folded.image


def cluster() -> Quorum:
    """Return three brokers, of which the third is fenced, and a topic of one partition."""
    quorum = Quorum()
    quorum.append(logs.leader_change(0, 101, epoch=1))
    quorum.append(
        logs.batch(1, *(logs.register(broker, broker) for broker in (1, 2, 3)), logs.unfence(1), logs.unfence(2)),
        count=5,
    )
    quorum.append(logs.batch(6, logs.topic(), logs.partition(0, [1, 2])), count=2)
    return quorum


@asynccontextmanager
async def follow_quorum(quorum: Quorum) -> AsyncIterator[Followed]:
    async with serve(quorum):
        looker = looker_of(quorum)
        try:
            found = Followed(looker, MemoryJournal())
            await found.look()
            yield found
        finally:
            looker.close()


def make_ended(lines: list[Line]) -> Ended:
    """Return the end of the journal that a recorder finds in the directory of one that was killed after these lines."""
    last = lines[-1]
    position = read_position(last.correlation_id)
    assert position is not None
    of_the_event = [line for line in lines if read_position(line.correlation_id) == position]
    return Ended(
        cluster_id="here",
        epoch=ControllerEpoch(last.controller_epoch),
        next_seq=last.seq + 1,
        last_event=LastEvent(
            position=position,
            controller_id=BrokerId(last.controller_id),
            written=frozenset(map(find_thing, of_the_event)),
        ),
    )
