"""Groups records of a metadata log into events: the records of a batch, or of a transaction (KIP-868) at its end.

A controller writes what belongs together into one batch, or into a transaction if that would be too large. A
transaction counts at its end, and an aborted one not at all."""

from collections.abc import Iterator
from dataclasses import dataclass

import structlog

from controller_core.model.ids import ControllerEpoch
from controller_core.model.snapshot import Controller
from controller_core.recorder.metadata_log.batches import LogBatch, LogUnreadable
from controller_core.recorder.metadata_log.image import KRAFT_VERSION
from controller_core.recorder.metadata_log.records import (
    FeatureLevel,
    KRaftVersion,
    LeaderChange,
    MetadataRecord,
    Transaction,
    UnknownKind,
    read_control,
    read_record,
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Records that take effect together."""

    position: int
    """The offset of its last record."""
    time_ms: int
    """The time by the clock of the quorum's leader."""
    records: tuple[MetadataRecord, ...] = ()
    role: Controller | None = None
    """The new leader of the quorum; None: unchanged."""


class EventReader:
    """Reads the batches of a log in order."""

    def __init__(self) -> None:
        self.records_read = 0
        self.records_unknown = 0
        """The number of records of unknown kinds."""
        self._unknown_kinds: set[int] = set()
        self._open: list[MetadataRecord] | None = None
        """The records of the open transaction; None if there is none."""

    def reset(self) -> None:
        """Forget the open transaction, because the next batch is from elsewhere in the log."""
        self._open = None

    def read(self, batch: LogBatch) -> Event:
        """Return the event of a batch, which may be empty. Raises `LogUnreadable`."""
        self.records_read += len(batch.records)
        if batch.is_control:
            return self._read_control(batch)
        decided = tuple(self._read_records(batch))
        return Event(position=batch.last_offset, time_ms=batch.time_ms, records=decided)

    def _read_control(self, batch: LogBatch) -> Event:
        role, levels = None, []
        for record in batch.records:
            match read_control(record.key, record.value):
                case LeaderChange(leader=leader):
                    role = Controller(id=leader, epoch=ControllerEpoch(batch.epoch))
                case KRaftVersion(level=level):
                    levels.append(FeatureLevel(name=KRAFT_VERSION, level=level))
        return Event(position=batch.last_offset, time_ms=batch.time_ms, records=tuple(levels), role=role)

    def _read_records(self, batch: LogBatch) -> Iterator[MetadataRecord]:
        for stored in batch.records:
            record = self._read_record(stored.value)
            match record:
                case None:
                    pass
                case Transaction.BEGIN:
                    self._open = []
                case Transaction.END:
                    yield from self._open or ()
                    self._open = None
                case Transaction.ABORT:
                    self._open = None
                case _ if self._open is not None:
                    self._open.append(record)
                case _:
                    yield record

    def _read_record(self, value: bytes | None) -> MetadataRecord | None:
        if value is None:
            raise LogUnreadable("a record of the metadata log is empty")
        try:
            return read_record(value)
        except UnknownKind as error:
            self.records_unknown += 1
            if error.api_key not in self._unknown_kinds:
                self._unknown_kinds.add(error.api_key)
                log.warning("records of an unknown kind are skipped", api_key=error.api_key)
            return None
