"""Follows the metadata log of a quorum: sends Fetch and FetchSnapshot to its leader, as an observer without an id.

The leader does not count observers without an id, so the quorum does not depend on them. It also sends uncommitted
records, which are held back (`undecided`). Offsets that the leader has already deleted are available as a snapshot,
which is read in pieces."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v16 import FetchResponse
from kio.schema.fetch.v16.response import PartitionData
from kio.schema.fetch_snapshot.v0 import FetchSnapshotResponse
from kio.schema.fetch_snapshot.v0.response import PartitionSnapshot as SnapshotPiece

from controller_core.client.errors import AdminError, AnswerUnreadable, NotAdmittedError
from controller_core.client.transport.request_client import RequestClient
from controller_core.recorder.looker import OutOfSight
from controller_core.recorder.metadata_log.batches import BatchReader, LogBatch, LogUnreadable
from controller_core.recorder.metadata_log.quorum_leader import (
    LogRefused,
    QuorumLeader,
    SourceOf,
    find_leader,
)
from controller_core.recorder.metadata_log.undecided import DecidedOtherwise, Place, Undecided
from controller_core.recorder.observed_journal import AnotherCluster
from controller_core.wire.requests.fetches import make_metadata_log_request, make_metadata_snapshot_request

_FETCH_BYTES: Final = 8 << 20
_PIECE_BYTES: Final = 1 << 20
_NOT_THE_LEADER: Final = (
    ErrorCode.not_leader_or_follower,
    ErrorCode.fenced_leader_epoch,
    ErrorCode.unknown_leader_epoch,
    ErrorCode.broker_not_available,
)


class SnapshotDue(Exception):
    """The leader has the next offsets only as a snapshot."""

    def __init__(self, end: Place) -> None:
        super().__init__(f"the log begins at offset {end.offset}, after a snapshot")
        self.end = end


class MetadataLog:
    """The log of one cluster, from its start or a snapshot on. `cluster_id`: the cluster that the leader must belong
    to."""

    def __init__(self, brokers: RequestClient, source_of: SourceOf, cluster_id: str | None) -> None:
        self.leader: QuorumLeader | None = None
        """The last leader that answered."""
        self._brokers = brokers
        self._source_of = source_of
        self._cluster_id = cluster_id
        self._undecided = Undecided()

    @property
    def decided(self) -> Place:
        """The place up to which batches were returned."""
        return self._undecided.decided

    @property
    def is_read(self) -> bool:
        """True if everything known to be committed was returned."""
        return self._undecided.is_read

    def begin_at(self, place: Place) -> None:
        """Continue behind a place."""
        self._undecided = Undecided(place)

    def close(self) -> None:
        """Close the connection. The next request opens one."""
        if self.leader is not None:
            self.leader.client.close()
            self.leader = None

    async def fetch(self, max_wait_ms: int) -> list[LogBatch]:
        """Return the batches committed since the last call; none if nothing comes for so long.

        Raises `OutOfSight`, `SnapshotDue`, `DecidedOtherwise`, `LogRefused`, `LogUnreadable`, `AnotherCluster`."""
        leader = await self._find_leader()
        offset, epoch = self._undecided.end
        request = make_metadata_log_request(
            self._cluster_id,
            leader_epoch=leader.epoch,
            offset=offset,
            last_epoch=epoch,
            max_wait_ms=max_wait_ms,
            max_bytes=_FETCH_BYTES,
        )
        try:
            answer = await leader.client.ask(request, FetchResponse)
            partition = self._read_partition(answer)
        except AdminError as error:
            raise self._convert_error(error) from error
        self._take(partition)
        found = self._undecided.take_decided()
        if not found and self._undecided.is_stuck:
            await asyncio.sleep(max_wait_ms / 1000)  # the leader has data and answers at once, so wait here
        return found

    async def snapshot(self, end: Place) -> AsyncIterator[LogBatch]:
        """Yield the batches of a snapshot. Raises like `fetch`."""
        leader, reader, position = await self._find_leader(), BatchReader(), 0
        while True:
            piece = await self._fetch_piece(leader, end, position)
            for batch in reader.read(bytes(piece.unaligned_records or b"")):
                yield batch
            position += len(piece.unaligned_records or b"")
            if position >= piece.size:
                break
            if not piece.unaligned_records:
                raise OutOfSight(f"the leader sends no more of its snapshot at {position} of {piece.size} bytes")
        if not reader.is_between_batches:
            raise LogUnreadable(f"the snapshot at offset {end.offset} ends within a batch")

    async def _find_leader(self) -> QuorumLeader:
        if self.leader is None:
            self.leader = await find_leader(self._brokers, self._source_of)
        return self.leader

    def _read_partition(self, answer: FetchResponse) -> PartitionData:
        partition = next((each for topic in answer.responses for each in topic.partitions), None)
        if partition is not None:
            self._check(partition.error_code)
        self._check(answer.error_code)
        if partition is None:
            raise self._lose_sight("the leader of the quorum does not return its log")
        return partition

    def _take(self, partition: PartitionData) -> None:
        # -1 stands for a log that does not diverge, and below for no snapshot.
        if partition.diverging_epoch.epoch >= 0:
            self._undecided.give_up_from(int(partition.diverging_epoch.end_offset))
        if partition.snapshot_id.epoch >= 0:
            raise SnapshotDue(Place(int(partition.snapshot_id.end_offset), int(partition.snapshot_id.epoch)))
        self._undecided.add(bytes(partition.records or b""), int(partition.high_watermark))

    async def _fetch_piece(self, leader: QuorumLeader, end: Place, position: int) -> SnapshotPiece:
        request = make_metadata_snapshot_request(
            self._cluster_id,
            leader_epoch=leader.epoch,
            end_offset=end.offset,
            end_epoch=end.epoch,
            position=position,
            max_bytes=_PIECE_BYTES,
        )
        try:
            answer = await leader.client.ask(request, FetchSnapshotResponse)
        except AdminError as error:
            raise self._convert_error(error) from error
        piece = next((each for topic in answer.topics for each in topic.partitions), None)
        self._check(answer.error_code if piece is None else piece.error_code)
        if piece is None:
            raise self._lose_sight("the leader of the quorum does not return its snapshot")
        return piece

    def _check(self, code: ErrorCode) -> None:
        match code:
            case ErrorCode.none:
                return
            case ErrorCode.inconsistent_cluster_id:
                raise AnotherCluster(
                    f"the quorum is not of cluster {self._cluster_id}: its brokers lead to another cluster's "
                    "controllers"
                )
            case ErrorCode.cluster_authorization_failed:
                raise LogRefused(
                    "the controllers refuse access to the metadata log: allow ClusterAction on the cluster"
                )
            case ErrorCode.offset_out_of_range:
                raise DecidedOtherwise(f"the quorum's log has no offset {self._undecided.end.offset}")
            case _ if code in _NOT_THE_LEADER:
                raise self._lose_sight(f"another controller leads the quorum, or none: {code.name}")
            case _:
                raise self._lose_sight(f"the leader of the quorum does not send its log: {code.name}")

    def _lose_sight(self, why: str) -> OutOfSight:
        self.close()
        return OutOfSight(why)

    def _convert_error(self, error: AdminError) -> Exception:
        self.close()
        if isinstance(error, AnswerUnreadable):
            return LogUnreadable(f"the answer with the metadata log cannot be read: {error}")
        if isinstance(error, NotAdmittedError):
            return LogRefused(f"the metadata log cannot be read at the controllers' listener: {error}")
        return OutOfSight(f"the leader of the quorum does not answer: {error}")
