"""What a metadata log has decided, event by event: the records of a batch, or of a transaction (KIP-868) at its end.

A controller writes what belongs together into one batch, and where that would be too much into a transaction. Nothing of
one counts before its end, and nothing of one that is aborted at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import structlog

from controller_core.model.ids import ControllerEpoch
from controller_core.recorder.looker import Role
from controller_core.recorder.metadata_log.batches import LogBatch, LogUnreadable
from controller_core.recorder.metadata_log.image import KRAFT_VERSION
from controller_core.recorder.metadata_log.records import (
    AbortTransaction,
    BeginTransaction,
    EndTransaction,
    FeatureLevel,
    KRaftVersion,
    LeaderChange,
    MetadataRecord,
    UnknownKind,
    read_control,
    read_record,
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What holds from an offset on."""

    position: int
    """The offset of its last record."""
    time_ms: int
    """When, by the clock of the quorum's leader."""
    records: tuple[MetadataRecord, ...] = ()
    role: Role | None = None
    """Who leads the quorum from here on; None: nobody else than before."""


class EventReader:
    """Reads the batches of a log in their order."""

    def __init__(self) -> None:
        self.records_read = 0
        self.records_unknown = 0
        """Those of kinds that are not known here."""
        self._unknown_kinds: set[int] = set()
        self._open: list[MetadataRecord] | None = None
        """What the transaction had so far that has not ended; None where there is none."""

    def begin_anew(self) -> None:
        """What comes next is from elsewhere in the log."""
        self._open = None

    def read(self, batch: LogBatch) -> Event:
        """What a batch decides, which may be nothing. Raises `LogUnreadable`."""
        self.records_read += len(batch.records)
        if batch.is_control:
            return self._read_control(batch)
        decided = tuple(self._decided(batch))
        return Event(position=batch.last_offset, time_ms=batch.time_ms, records=decided)

    def _read_control(self, batch: LogBatch) -> Event:
        role, levels = None, []
        for record in batch.records:
            match read_control(record.key, record.value):
                case LeaderChange(leader=leader):
                    role = Role(controller_id=leader, epoch=ControllerEpoch(batch.epoch))
                case KRaftVersion(level=level):
                    levels.append(FeatureLevel(name=KRAFT_VERSION, level=level))
        return Event(position=batch.last_offset, time_ms=batch.time_ms, records=tuple(levels), role=role)

    def _decided(self, batch: LogBatch) -> Iterator[MetadataRecord]:
        for stored in batch.records:
            record = self._known(stored.value)
            match record:
                case None:
                    pass
                case BeginTransaction():
                    self._open = []
                case EndTransaction():
                    yield from self._open or ()
                    self._open = None
                case AbortTransaction():
                    self._open = None
                case _ if self._open is not None:
                    self._open.append(record)
                case _:
                    yield record

    def _known(self, value: bytes | None) -> MetadataRecord | None:
        if value is None:
            raise LogUnreadable("a record of the metadata log is empty")
        try:
            return read_record(value)
        except UnknownKind as error:
            self.records_unknown += 1
            if error.api_key not in self._unknown_kinds:
                self._unknown_kinds.add(error.api_key)
                log.warning("records that nobody here knows are left out", api_key=error.api_key)
            return None
